// cpp/documents/detail/lane_distance.hpp - edit distances of one document and eight others, side by
// side
//
// Bit-parallel (cpp/documents/detail/bit_parallel.hpp) within the band of diagonals that the limits
// leave, a lane of a vector for each of the others. A part of the band is left out, and all of it
// as soon as possible, where even the least edits that the rest of the document needs exceed the
// limits.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cpp/base/characters.hpp"
#include "cpp/base/simd.hpp"
#include "cpp/base/stop.hpp"

namespace gputext {

/// An object keeps its scratch memory between calls; one thread uses it at a time.
class LaneDistance {
public:
    static constexpr std::size_t lanes = 8;
    /// Longer documents are left to EditDistance, whose memory depends on the limit.
    static constexpr std::size_t longest_pattern = std::size_t{1} << 16;
    static constexpr std::uint32_t far = UINT32_MAX;
    /// Rows of the pattern between two entries of `rest`.
    static constexpr std::size_t rest_step = 64;

    struct Text {
        Bytes symbols;      // at least one
        std::size_t limit;  // at least the difference to the pattern's length
    };

    explicit LaneDistance(Simd simd) : simd_(simd) {}

    /// The document that is compared with the next texts; at least one symbol, at most
    /// longest_pattern. Memory: distinct symbols * size / 8 bytes.
    void set_pattern(Bytes pattern);

    /// The distance to each of up to eight texts, or `far` when it is above the text's limit.
    /// `rest`, if not empty, holds at [i * lanes + lane] a lower bound of the edits that the
    /// pattern's symbols from i * rest_step on need beside the text, and does not grow with i; it
    /// has an entry for each begun step, and one more. All are `far` if stopped.
    std::array<std::uint32_t, lanes> operator()(std::span<const Text> texts,
                                                std::span<const std::uint32_t> rest, Stop stop);

private:
    struct Job;
    struct Runner;

    Simd simd_;
    std::size_t rows_ = 0;
    std::size_t stride_ = 0;
    std::array<std::uint16_t, 256> ids_{};  // by symbol; 0 for those that the pattern lacks
    std::vector<std::uint64_t> matches_;    // [id][word]
    std::vector<std::uint64_t> column_;     // [word][up, down][lane], from an aligned place on
    std::vector<std::uint32_t> no_rest_;
};

}  // namespace gputext
