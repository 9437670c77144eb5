#include <memory>

#include "cpp/daemon/word2vec_on_device.hpp"
#include "cpp/link/word2vec.hpp"
#include "kernels/daemon/kernels_of.hpp"
#include "kernels/embeddings/trainer.hpp"

namespace gputext {

template <>
class Kernels<SubmitWord2Vec> {
public:
    static void provide(CudaDevice& device) {
        device.provide<Word2VecOnDevice>(
            [&device](const TrainerParameters& parameters, const WordSampling& sampling,
                      const TokenStream& tokens, std::uint64_t memory,
                      Execution& execution) -> Result<std::unique_ptr<WordTrainer>> {
                return device.run(memory, [&](const gpu::DeviceWork& work) {
                    return gpu::word_trainer(parameters, sampling, tokens, work, device.ring(),
                                             execution);
                });
            });
    }
};

template void provide_kernels<SubmitWord2Vec>(CudaDevice& device);

}  // namespace gputext
