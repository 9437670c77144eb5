// Rows of up to 128 dimensions.

#include "kernels/embeddings/detail/training_steps.cuh"

namespace gputext::gpu {

StepChoice skipgram_steps(unsigned elements) {
    switch (elements) {
        case 1:
            return step_choice<WordModel::skipgram, 1>();
        case 2:
            return step_choice<WordModel::skipgram, 2>();
        case 3:
            return step_choice<WordModel::skipgram, 3>();
        case 4:
            return step_choice<WordModel::skipgram, 4>();
        default:
            return skipgram_wide_steps(elements);
    }
}

}  // namespace gputext::gpu
