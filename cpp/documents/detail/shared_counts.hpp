// cpp/documents/detail/shared_counts.hpp - sums of minima of the counts of a query and a sketch

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cpp/base/simd.hpp"
#include "cpp/documents/detail/sketch_levels.hpp"

namespace gputext {

/// One part of a query, to be compared with that part of sketches of one length class.
class QueryPart {
public:
    /// What the query and a document share can be no more than at_least(), and what SharedCounts
    /// finds.
    QueryPart(const SketchLevels& levels, std::span<const std::uint32_t> counts);

    std::size_t bytes() const { return bytes_; }  // of a sketch
    std::uint64_t at_least() const { return at_least_; }

    /// Of the lower halves of a sketch's bytes, or of the upper ones; with zeros up to a multiple
    /// of `vector`.
    struct Half {
        std::vector<std::uint8_t> units;    // of the query, by byte of a sketch
        std::vector<std::uint8_t> levels;   // 16 for each 16 bytes of a sketch
        std::vector<std::uint64_t> shifts;  // of 8 bytes each
    };
    const Half& low() const { return low_; }
    const Half& high() const { return high_; }

    static constexpr std::size_t vector = 64;

private:
    std::size_t bytes_;
    std::uint64_t at_least_ = 0;
    Half low_, high_;
};

struct SharedCounts {
    /// For each of `count` sketches of SketchShape::letters bytes, one after the other, the sum of
    /// the minima of the query's units and the sketch's levels, as counts.
    void (*letters)(const QueryPart& query, const std::uint8_t* sketches, std::size_t count,
                    std::uint64_t* sums);

    /// The same of one sketch of query.bytes() bytes, a multiple of 16.
    std::uint64_t (*grams)(const QueryPart& query, const std::uint8_t* sketch);
};
SharedCounts shared_counts(Simd simd);

}  // namespace gputext
