// cpp/hnsw/detail/chosen_rows.hpp - rows that were chosen as neighbors of a row, and which others
// are nearer to one of them
//
// As exact distances say it. Most pairs are decided by differences from the row that neighbors are
// chosen for, rounded to bfloat16, where the processor has products of it
// (cpp/hnsw/detail/difference_bound.hpp).

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpp/base/simd.hpp"
#include "cpp/base/vectors.hpp"
#include "cpp/hnsw/detail/difference_bound.hpp"
#include "cpp/hnsw/detail/nearness.hpp"

namespace gputext {

/// Used by one thread.
class ChosenRows {
public:
    /// Dense rows, which outlive the object.
    ChosenRows(Metric metric, const Vectors& rows, Simd simd);

    /// From here on neighbors of this row are chosen. O(dimensions).
    void begin(std::uint32_t row);
    /// Whether a chosen row is at most `limit` from this one, whose exact distance from the row
    /// that they are chosen for is given. O(chosen * dimensions).
    bool has_nearer(std::uint32_t row, double distance, double limit);
    /// Chooses the row that has_nearer() was asked for last.
    void choose();

    Nearness& nearness() { return nearness_; }

private:
    struct Row {
        std::uint32_t row;
        double distance;
        double square;      // of its rounded differences
        std::size_t place;  // of these
    };

    SideOfLimit side_of(double limit, const Row& chosen) const;

    Nearness nearness_;
    bool rounds_;  // whether there are products of bfloat16
    std::size_t dimensions_, padded_;
    DifferenceBound bound_;
    std::vector<float> from_;
    std::vector<std::uint16_t> differences_;  // of the chosen rows, and behind them the last one's
    Row last_{};
    /// First those that others were near to of late: they are so most often.
    std::vector<Row> chosen_;
};

}  // namespace gputext
