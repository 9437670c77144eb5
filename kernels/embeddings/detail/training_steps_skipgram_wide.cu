// Rows of more than 128 dimensions.

#include "kernels/embeddings/detail/training_steps.cuh"

namespace gputext::gpu {

StepChoice skipgram_wide_steps(unsigned elements) {
    switch (elements) {
        case 7:
            return step_choice<WordModel::skipgram, 7>();
        case 10:
            return step_choice<WordModel::skipgram, 10>();
        case 16:
            return step_choice<WordModel::skipgram, 16>();
        default:
            return step_choice<WordModel::skipgram, 32>();
    }
}

}  // namespace gputext::gpu
