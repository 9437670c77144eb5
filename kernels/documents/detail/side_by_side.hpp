// kernels/documents/detail/side_by_side.hpp - many patterns a lane beside one text a warp

#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <span>

#include "cpp/base/status.hpp"
#include "kernels/documents/detail/signature_parts.hpp"

namespace gputext::gpu {

inline constexpr unsigned kSideBits = 512;  // a lane's

/// Patterns a lane, which may each have kSideBits / patterns - 1 letters; most first.
inline constexpr unsigned kSideLayouts[] = {12, 8, 6, 5, 4, 2, 1};

/// Patterns, at most 32 times as many as a lane holds, beside texts; both in the sorted order.
struct SideTask {
    std::uint32_t patterns_begin, patterns_end;
    std::uint32_t texts_begin, texts_end;
};

/// Bytes of shared memory that a block takes.
std::size_t side_shared_bytes();

/// Compares each pattern with the texts behind it, a block a task. Adds pairs to `pairs`, which has
/// room for all of them, at *found; `checksum` may be null. As verify_pairs.
Status run_side_by_side(unsigned layout, const PartsView& parts, const std::uint16_t* most_edits,
                        const SideTask* tasks, unsigned count, std::uint64_t* pairs,
                        unsigned long long* found, unsigned long long* checksum,
                        cudaStream_t stream);

}  // namespace gputext::gpu
