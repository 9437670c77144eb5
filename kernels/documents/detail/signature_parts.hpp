// kernels/documents/detail/signature_parts.hpp - strings of signature letters on the device, ready
// to be compared
//
// Parts are what a join compares: strings of at most Ctph::max_length letters, each of a group;
// only parts of one group are comparable. On the device they are sorted by group, then by length,
// then by their place in the input, and stand as bit planes
// (kernels/documents/detail/bit_planes.cuh) and as letter counts in unary
// (cpp/documents/detail/signature_join.hpp), both in that order.

#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "cpp/documents/ctph.hpp"
#include "kernels/base/device_buffer.hpp"

namespace gputext::gpu {

struct PlaneBlock;

/// Parts in the host's memory, packed. Part i has letters[begins[i]] on; several may share letters.
struct PackedParts {
    std::vector<std::uint8_t> letters;  // of kSignatureAlphabet
    std::vector<std::uint64_t> begins;
    std::vector<std::uint16_t> lengths;  // 0..Ctph::max_length
    std::vector<std::uint8_t> groups;    // below kPartGroups
    std::uint32_t strings = 0;           // parts i and i + strings belong to string i
    bool between = false;                // parts of groups 2g are joined with those of 2g + 1

    std::size_t size() const { return lengths.size(); }
    std::size_t longest() const {
        return lengths.empty() ? 0 : *std::max_element(lengths.begin(), lengths.end());
    }
};

inline constexpr unsigned kPartGroups = 2 * (Ctph::max_level + 2);
inline constexpr unsigned kPartLengths = Ctph::max_length + 1;

/// One part a string, all of group 0. Threads of `execution`; O(letters).
Status pack_parts(std::span<const std::string_view> strings, Execution& execution,
                  PackedParts& parts);
/// Two parts a signature: i is its first, of its level, and i + size its second, of the next level.
Status pack_parts(std::span<const Ctph> signatures, Execution& execution, PackedParts& parts);

/// Groups parts for a join of the first `split` strings with the others.
void separate_parts(PackedParts& parts, std::size_t split);

/// Neighbors in the sorted order that share group and length.
struct PartRun {
    std::uint32_t begin, end;
    std::uint16_t group, length;
};

/// The arrays of SortedParts as a kernel sees them; all but the last two in sorted order.
struct PartsView {
    std::uint32_t size;
    std::uint32_t strings;
    const std::uint32_t* order;    // the part's number in the input
    const std::uint32_t* lengths;  // length | letters beyond `depth` of their kind << 16
    const std::uint32_t* blocks;   // of planes, before the part's
    const PlaneBlock* planes;
    // The unary counts of 64 letters, 256 bits a step: step s of part i is [s * size + i].
    const uint4* counts;  // two of them
    // By the part's number in the input.
    const std::uint64_t* begins;
    const std::uint8_t* values;  // of letters, 0..63
};

/// Parts on the device. Bytes: see bytes_needed. O(letters) time; errors: out_of_memory, cancelled,
/// device_error.
class SortedParts {
public:
    /// Counts letters up to `depth` = 4, 8, 16 or 32 times.
    Status build(const PackedParts& parts, std::size_t depth, cudaStream_t stream);

    /// While building, for parts of up to `longest` letters, `letters` in all. After that about
    /// half remains. No less than what is really taken.
    static std::size_t bytes_needed(std::size_t parts, std::size_t letters, std::size_t longest,
                                    std::size_t depth);

    PartsView view() const;
    const std::vector<PartRun>& runs() const { return runs_; }
    std::size_t size() const { return size_; }

private:
    Status find_runs(const std::uint32_t* histogram, cudaStream_t stream);

    std::size_t size_ = 0;
    std::uint32_t strings_ = 0;
    std::vector<PartRun> runs_;
    DeviceBuffer<std::uint8_t> values_;
    DeviceBuffer<std::uint64_t> begins_;
    DeviceBuffer<std::uint32_t> order_, lengths_, blocks_;
    DeviceBuffer<PlaneBlock> planes_;
    DeviceBuffer<uint4> counts_;
};

}  // namespace gputext::gpu
