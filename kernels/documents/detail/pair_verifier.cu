#include <algorithm>

#include "kernels/base/launch.hpp"
#include "kernels/documents/detail/bit_planes.cuh"
#include "kernels/documents/detail/pair_verifier.hpp"

namespace gputext::gpu {
namespace {

constexpr unsigned kThreads = 128;

template <bool Long>
__global__ __launch_bounds__(kThreads) void verify(PartsView parts, const std::uint16_t* most_edits,
                                                   const Candidate* candidates, std::uint32_t count,
                                                   std::uint64_t* pairs,
                                                   unsigned long long* found) {
    const std::uint32_t i = blockIdx.x * kThreads + threadIdx.x;
    if (i >= count) return;
    const Candidate candidate = candidates[i];
    if (candidate.x >= candidate.y) return;
    const unsigned rows = parts.lengths[candidate.x] & 0xffff;
    const unsigned columns = parts.lengths[candidate.y] & 0xffff;
    const unsigned most = most_edits[rows + columns];
    const unsigned difference = columns > rows ? columns - rows : rows - columns;
    if (difference > most) return;
    const unsigned distance =
        plane_distance<Long>(parts.planes + parts.blocks[candidate.x], rows,
                             parts.planes + parts.blocks[candidate.y], columns);
    if (distance > most) return;
    const std::uint32_t a = parts.order[candidate.x] % parts.strings;
    const std::uint32_t b = parts.order[candidate.y] % parts.strings;
    pairs[atomicAdd(found, 1ull)] = std::uint64_t{min(a, b)} << 32 | max(a, b);
}

}  // namespace

Status verify_pairs(const PartsView& parts, const std::uint16_t* most_edits,
                    const Candidate* candidates, std::size_t count, std::size_t longest,
                    Execution& execution, PairSink& sink, cudaStream_t stream) {
    const bool is_long = longest > kPlaneLetters;
    const std::size_t blocks = plane_blocks(static_cast<unsigned>(longest));
    // Some milliseconds on a fast device, some tens on a slow one.
    const std::size_t step = (std::size_t{1} << 22) / std::max<std::size_t>(blocks * blocks, 1);
    for (std::size_t begin = 0; begin < count; begin += step) {
        if (execution.stop_requested()) return Status::cancelled();
        const std::size_t size = std::min(step, count - begin);
        const auto kernel = is_long ? verify<true> : verify<false>;
        kernel<<<blocks_for(size, kThreads), kThreads, 0, stream>>>(
            parts, most_edits, candidates + begin, static_cast<std::uint32_t>(size), sink.pairs(),
            sink.count());
        GPUTEXT_TRY(launched("comparing signatures"));
        GPUTEXT_TRY(cuda_status(cudaStreamSynchronize(stream), "comparing signatures"));
    }
    return {};
}

}  // namespace gputext::gpu
