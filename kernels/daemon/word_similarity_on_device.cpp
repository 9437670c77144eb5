#include "cpp/daemon/word_similarity_on_device.hpp"
#include "cpp/link/word_similarity.hpp"
#include "kernels/daemon/kernels_of.hpp"
#include "kernels/thesaurus/word_similarity.hpp"

namespace gputext {

template <>
class Kernels<SubmitWordSimilarity> {
public:
    static void provide(CudaDevice& device) {
        device.provide<WordSimilarityOnDevice>(
            [&device](const SimilarityParameters& parameters, const WeightParameters& weights,
                      const CooccurrenceShape& shape, const TokenStream& tokens,
                      std::uint64_t memory, Execution& execution) -> Result<Thesaurus> {
                return device.run(memory, [&](const gpu::DeviceWork& work) {
                    return gpu::word_similarities(parameters, weights, shape, tokens, work,
                                                  device.ring(), execution);
                });
            });
        device.provide<CountedSimilarityOnDevice>(
            [&device](const SimilarityParameters& parameters, const WeightParameters& weights,
                      const Cooccurrences& counts, std::uint64_t memory,
                      Execution& execution) -> Result<Thesaurus> {
                return device.run(memory, [&](const gpu::DeviceWork& work) {
                    return gpu::word_similarities(parameters, weights, counts, work, device.ring(),
                                                  execution);
                });
            });
    }
};

template void provide_kernels<SubmitWordSimilarity>(CudaDevice& device);

}  // namespace gputext
