#include "kernels/embeddings/detail/training_steps.hpp"

#include <algorithm>

#include "kernels/base/launch.hpp"
#include "kernels/embeddings/detail/lane_rows.cuh"
#include "kernels/embeddings/detail/training_steps.cuh"

namespace gputext::gpu {
namespace {

StepChoice choice_of(const StepJob& job) {
    const std::uint32_t elements = elements_of_lane(job.dimensions);
    return job.model == WordModel::skipgram ? skipgram_steps(elements) : cbow_steps(elements);
}

/// Shared memory of a block for the data of its warps.
std::size_t bytes_of_warps(const StepJob& job, const StepChoice& choice, unsigned warps) {
    const bool at_once = job.model == WordModel::cbow || job.negative < choice.outputs;
    return at_once ? 0 : std::size_t{4} * warps * 2 * job.window * (1 + job.negative);
}

Status attribute(cudaDeviceAttr which, int& value) {
    int device = 0;
    GPUTEXT_TRY(cuda_status(cudaGetDevice(&device), "asking for the device"));
    return cuda_status(cudaDeviceGetAttribute(&value, which, device), "asking for the device");
}

}  // namespace

std::uint32_t elements_of_lane(std::uint32_t dimensions) {
    for (const std::uint32_t elements : {1u, 2u, 3u, 4u, 7u, 10u, 16u})
        if (dimensions <= 32 * elements) return elements;
    return 32;
}

std::uint32_t row_stride(std::uint32_t dimensions) {
    return 32 * stored_elements(elements_of_lane(dimensions));
}

std::uint32_t sum_stride(std::uint32_t dimensions) {
    return sum_size(dimensions);
}

std::size_t count_size(std::uint64_t words) {
    return (2 * words / kCountSpread + 1) * kCountSpread;
}

std::uint32_t place_in_row(std::uint32_t element, std::uint32_t dimensions) {
    const std::uint32_t quad = lane_quad(elements_of_lane(dimensions));
    const std::uint32_t lane = element % 32, number = element / 32;
    return number / quad * quad * 32 + lane * quad + number % quad;
}

Status plan_steps(StepJob& job, StepPlan& plan) {
    const StepChoice choice = choice_of(job);
    int most_shared = 0, processors = 0;
    GPUTEXT_TRY(attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin, most_shared));
    GPUTEXT_TRY(attribute(cudaDevAttrMultiProcessorCount, processors));
    const std::size_t shared = static_cast<std::size_t>(most_shared) - sizeof(BlockState) - 1024;
    const std::size_t slot = 4 * WindowSlot::size(job.window, job.negative);
    plan.warps = choice.warps;
    while (plan.warps > 1 && bytes_of_warps(job, choice, plan.warps) + slot > shared)
        plan.warps /= 2;
    plan.blocks = std::min(static_cast<unsigned>(processors), job.batch);
    const std::size_t warps = bytes_of_warps(job, choice, plan.warps);
    const std::uint64_t products =
        std::uint64_t{2} * job.window * (1 + job.negative) * job.dimensions;
    job.slots = static_cast<std::uint32_t>(std::min<std::uint64_t>(
        {(shared - warps) / slot, (job.batch - 1) / plan.blocks + 1, kMostSlots,
         std::max<std::uint64_t>(plan.warps, kMostProducts / products)}));
    plan.shared_bytes = warps + job.slots * slot;
    return allow_shared_bytes(choice.kernel, plan.shared_bytes);
}

Status launch_steps(const StepJob& job, const StepPlan& plan, cudaStream_t stream) {
    GPUTEXT_TRY(
        cuda_status(cudaMemsetAsync(job.sync, 0, sizeof *job.sync, stream), "training vectors"));
    StepJob copy = job;
    void* arguments[] = {&copy};
    return cuda_status(
        cudaLaunchCooperativeKernel(choice_of(job).kernel, plan.blocks, plan.warps * 32, arguments,
                                    plan.shared_bytes, stream),
        "training vectors");
}

}  // namespace gputext::gpu
