// kernels/documents/detail/signature_join.hpp - the joins of
// cpp/documents/detail/signature_join.hpp on one device
//
// Gives the CPU's pairs, bit for bit. Parts are sorted by block size and length; tiles of rows by
// columns that the lengths allow are filtered by the letters in common
// (cpp/documents/detail/signature_join.hpp), whose unary counts of depth 4 are just one 1-bit
// matrix product of K = 256, deeper ones 2 to 8 of them; what passes is compared by a bit-parallel
// distance, one pair a thread (kernels/documents/detail/bit_planes.cuh).
//
// Devices below compute capability 8.0 lack the AND product and count ones word by word.
//
// Time: length-compatible pairs times 512 * depth / 4 bit operations, and about 76 operations for
// each letter of a pair that passes. Device memory: join_bytes. Several launches a tile list, each
// short; the device is left at the next one after a stop request.

#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "cpp/documents/ctph.hpp"
#include "cpp/documents/detail/candidate_pairs.hpp"
#include "cpp/documents/near_duplicates_parts.hpp"
#include "kernels/base/device_work.hpp"

namespace gputext::gpu {

/// What a join takes of the device's memory.
struct JoinBytes {
    std::size_t least;  // with less it fails with out_of_memory, and says how much it would need
    std::size_t good;   // more than that does not make it faster, if pairs are not too many
};

/// For `parts` strings, two of them a signature, of up to `longest` letters and `letters` in all.
JoinBytes join_bytes(std::size_t parts, std::size_t letters, std::size_t longest);

enum class FilterKernel {
    fitting,         // what the device can do
    matrix_product,  // compute capability 8.0 or higher
    count_ones
};

/// What a join did, for those who measure.
struct JoinCounts {
    std::uint64_t filtered = 0;    // pairs that the filter looked at, diagonal tiles in full
    std::uint64_t candidates = 0;  // of them, those that passed
    std::uint64_t repeated = 0;    // launches that overflowed the candidates and were done again
    double filter_ms = 0;          // on the device
    double verify_ms = 0;
};

/// How many pairs are wanted at most.
struct PairLimit {
    std::uint64_t most;
    bool exceeded = false;
};

/// As gputext::join_signatures, on the current device. With a `limit` it ends soon after it has
/// found more pairs than that, some of them perhaps twice, and says so there; `pairs` is empty
/// then. With `sides` a signature on both of them counts as two in the memory. Errors:
/// out_of_memory (of host or device), cancelled, device_error.
Status join_signatures(std::span<const Ctph> signatures, double rate, const DeviceWork& work,
                       Execution& execution, std::vector<IndexPair>& pairs,
                       FilterKernel filter = FilterKernel::fitting, JoinCounts* counts = nullptr,
                       PairLimit* limit = nullptr, const PairPart& part = {},
                       std::span<const std::uint8_t> sides = {});

/// As gputext::join_letters, on the current device.
Status join_letters(std::span<const std::string_view> strings, double rate, const DeviceWork& work,
                    Execution& execution, std::vector<IndexPair>& pairs,
                    FilterKernel filter = FilterKernel::fitting, JoinCounts* counts = nullptr);

}  // namespace gputext::gpu
