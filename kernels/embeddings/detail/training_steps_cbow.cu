// Rows of up to 128 dimensions.

#include "kernels/embeddings/detail/training_steps.cuh"

namespace gputext::gpu {

StepChoice cbow_steps(unsigned elements) {
    switch (elements) {
        case 1:
            return step_choice<WordModel::cbow, 1>();
        case 2:
            return step_choice<WordModel::cbow, 2>();
        case 3:
            return step_choice<WordModel::cbow, 3>();
        case 4:
            return step_choice<WordModel::cbow, 4>();
        default:
            return cbow_wide_steps(elements);
    }
}

}  // namespace gputext::gpu
