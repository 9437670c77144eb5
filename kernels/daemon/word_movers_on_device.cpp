#include "cpp/daemon/word_movers_on_device.hpp"
#include "cpp/link/word_movers.hpp"
#include "kernels/daemon/kernels_of.hpp"
#include "kernels/embeddings/word_movers.hpp"

namespace gputext {

template <>
class Kernels<SubmitWordMovers> {
public:
    static void provide(CudaDevice& device) {
        device.provide<WordMoversOnDevice>(
            [&device](const MoversParameters& parameters, const WordVectors& vectors,
                      const TextPairs& pairs, std::uint64_t memory, Execution& execution,
                      std::span<double> distances) {
                return device.run(memory, [&](const gpu::DeviceWork& work) {
                    return gpu::word_movers_distances(parameters, vectors, pairs, work,
                                                      device.ring(), execution, distances);
                });
            });
    }
};

template void provide_kernels<SubmitWordMovers>(CudaDevice& device);

}  // namespace gputext
