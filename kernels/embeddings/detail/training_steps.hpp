// kernels/embeddings/detail/training_steps.hpp - training steps of cpp/embeddings/trainer.hpp on a
// device, many in one launch
//
// The blocks of a cooperative launch stay for all of its steps. In each, a warp takes a window: it
// reads the window's rows, and adds to the rows' sums, in integers, by reductions in memory. When
// all have done so, the rows that were met take their sums, and those are cleared; each row is left
// to the block that met it first. Which words the next window has is found while the others are
// waited for.
//
// A lane of a warp has the elements lane, lane + 32, ... of a row, as lane_dot() has them. Rows of
// numbers lie so that a lane reads up to four of them at once; rows of sums are in their elements'
// order, so that a reduction of a warp touches few sectors.

#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "cpp/base/status.hpp"
#include "cpp/embeddings/trainer.hpp"

namespace gputext::gpu {

/// What has been done, as TrainingCount has it.
struct StepTotals {
    unsigned long long windows, steps;
    double loss;
};

/// Memory of a launch's own.
struct StepSync {
    std::uint32_t arrived;     // of the blocks' barriers
    std::uint32_t spilled[2];  // rows in StepJob::spill, of even and of odd steps
};

struct StepJob {
    WordModel model = WordModel::skipgram;
    std::uint32_t dimensions = 0, window = 0, negative = 0, batch = 0, epochs = 0;
    float learning_rate = 0, damping = 0;
    std::uint32_t slots = 0;  // windows of a block that are found at a time, some 10 ms of work

    // Everything from here on is on the device. Rows: those of the words as context, then those of
    // the words as outputs.
    std::uint32_t words = 0;
    float* rows = nullptr;            // row_stride() of each
    std::int32_t* sums = nullptr;     // sum_stride() of each; 0 between steps
    std::uint32_t* counts = nullptr;  // count_size(); 0 between steps
    std::uint32_t* spill = nullptr;   // as many as rows
    const std::uint32_t* own = nullptr;
    const std::uint32_t* other = nullptr;
    const std::uint32_t* farthest = nullptr;
    std::uint32_t far_count = 0;
    StepSync* sync = nullptr;
    StepTotals* totals = nullptr;
    const std::uint32_t* stop = nullptr;  // not 0: no more windows, as soon as may be

    const std::uint32_t* entries = nullptr;
    std::uint64_t entry_count = 0;
    std::uint64_t window_key = 0;
    std::uint32_t epoch = 0;
    std::uint64_t length = 0;          // steps of the epoch
    std::uint32_t streams = 0;         // with entries
    std::uint64_t begin = 0, end = 0;  // of this launch
};

/// Elements of a lane that the kernels for rows of so many dimensions have, at least as many as
/// are needed.
std::uint32_t elements_of_lane(std::uint32_t dimensions);
/// Numbers from one row to the next.
std::uint32_t row_stride(std::uint32_t dimensions);
std::uint32_t sum_stride(std::uint32_t dimensions);
/// Numbers for the counts of all words' rows.
std::size_t count_size(std::uint64_t words);
/// Where an element of a row lies within it.
std::uint32_t place_in_row(std::uint32_t element, std::uint32_t dimensions);

/// How the current device is used.
struct StepPlan {
    unsigned blocks = 0, warps = 0;  // of the launch, of a block
    std::size_t shared_bytes = 0;
};
/// Plans the steps of a job. Only its members on the host matter; sets `slots`. Errors: a device's.
Status plan_steps(StepJob& job, StepPlan& plan);

/// Queues the steps. Errors: a device's.
Status launch_steps(const StepJob& job, const StepPlan& plan, cudaStream_t stream);

}  // namespace gputext::gpu
