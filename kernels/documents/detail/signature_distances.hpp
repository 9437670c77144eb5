// kernels/documents/detail/signature_distances.hpp - compares all pairs of strings of signature
// letters without a filter
//
// The oracle of the filtered join in large, and faster than it where the threshold is so high that
// the filter passes most pairs.
//
// Method: bit-parallel Levenshtein (Myers 1999, as in Hyyro 2003). A lane holds one to twelve
// patterns side by side in 512 bits, a bit between two of them keeping their sums apart; a warp
// runs them all against one text, whose letters choose rows of a table of matches in shared memory
// that the block's warps share. Ten operations for a letter and 32 bits of pattern: with five
// patterns of 100 letters in 16 words, that is 32 a pair and letter, where one pattern in four
// words takes 40. Strings above 511 letters are compared one pair a thread
// (kernels/documents/detail/bit_planes.cuh).
//
// Needs 135 KB of shared memory a block: compute capability 8.0, 8.7, 9.0 or 10.x. Elsewhere every
// pair is one thread's.

#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "cpp/documents/detail/index_pair.hpp"
#include "kernels/base/device_work.hpp"

namespace gputext::gpu {

/// Bytes of device memory that find_pairs_within takes at least.
std::size_t distances_bytes(std::size_t strings, std::size_t letters, std::size_t longest);

/// Every pair with distance / (sum of lengths) <= rate, ascending: as join_letters. Strings are of
/// at most Ctph::max_length letters. O(n^2 * length) whatever the rate. When `checksum` is not
/// null, it becomes the sum of distance_mark (kernels/documents/detail/pair_verifier.hpp) over all
/// pairs, so that every distance counts. Errors: out_of_memory, cancelled, device_error.
Status find_pairs_within(std::span<const std::string_view> strings, double rate,
                         const DeviceWork& work, Execution& execution,
                         std::vector<IndexPair>& pairs, std::uint64_t* checksum = nullptr);

}  // namespace gputext::gpu
