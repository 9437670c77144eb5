// cpp/hnsw/detail/chooser.hpp - chooses the neighbors of a row, as cpp/hnsw/links.hpp defines it

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cpp/base/simd.hpp"
#include "cpp/base/vectors.hpp"
#include "cpp/hnsw/detail/chosen_rows.hpp"

namespace gputext {

/// A row, and how far another one is from it.
struct NearRow {
    double distance;
    std::uint32_t row;

    bool operator<(const NearRow& other) const {
        return distance != other.distance ? distance < other.distance : row < other.row;
    }
};

/// With the memory that choosing takes. Used by one thread.
class Chooser {
public:
    /// Dense rows, which outlive the object.
    Chooser(Metric metric, const Vectors& values, Simd simd) : rows_(metric, values, simd) {}

    /// Choose() for a row. The list is sorted, and so is not what is returned, which is valid until
    /// the next call.
    std::span<const NearRow> choose(std::uint32_t row, std::span<const NearRow> sorted,
                                    std::size_t limit, double slack);

    /// The rows from `begin` on before this one that are at most so far from it, by their
    /// distances.
    void nearest_of(std::uint32_t row, std::size_t begin, double radius,
                    std::vector<NearRow>& nearest);

    /// Scratch for a list.
    std::vector<NearRow>& list() { return list_; }

private:
    ChosenRows rows_;
    std::vector<NearRow> list_, chosen_, left_;
};

}  // namespace gputext
