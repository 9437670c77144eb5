#include "kernels/knn/outlier_factor.hpp"

#include "kernels/knn/knn.hpp"

namespace gputext::gpu {

Result<std::vector<double>> local_outlier_factors(const OutlierParameters& parameters,
                                                  const Vectors& items, const DeviceWork& work,
                                                  UploadRing& ring, Execution& execution) {
    const auto search = [&](const KnnParameters& wanted, const Vectors& rows, const RowKeys& keys) {
        return knn(wanted, rows, rows, keys, work, ring, execution);
    };
    return gputext::local_outlier_factors(parameters, items, search, execution);
}

}  // namespace gputext::gpu
