#include "cpp/link/outlier_factor.hpp"
#include "kernels/daemon/kernels_of.hpp"

namespace gputext {

/// The neighbours are those of KnnOnDevice, and the rest is computed on the host's threads.
template <>
class Kernels<SubmitOutlierFactor> {
public:
    static void provide(CudaDevice&) {}
};

template void provide_kernels<SubmitOutlierFactor>(CudaDevice& device);

}  // namespace gputext
