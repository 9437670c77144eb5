// Rows of more than 128 dimensions.

#include "kernels/embeddings/detail/training_steps.cuh"

namespace gputext::gpu {

StepChoice cbow_wide_steps(unsigned elements) {
    switch (elements) {
        case 7:
            return step_choice<WordModel::cbow, 7>();
        case 10:
            return step_choice<WordModel::cbow, 10>();
        case 16:
            return step_choice<WordModel::cbow, 16>();
        default:
            return step_choice<WordModel::cbow, 32>();
    }
}

}  // namespace gputext::gpu
