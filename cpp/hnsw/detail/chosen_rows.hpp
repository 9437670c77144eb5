// cpp/hnsw/detail/chosen_rows.hpp - rows that were chosen as neighbors of a row, and which others
// are nearer to one of them
//
// As exact distances say it. Most pairs are decided by products of bfloat16, where the processor
// has them. Of the row e that neighbors are chosen for, a candidate c and a chosen row s the
// differences x = c - e and y = s - e are rounded to x~ and y~, and
//
//   T = |x~|^2 + |y~|^2 - 2 x~ y~     is |x~ - y~|^2 but for G N^2, N = |x| + |y|: sums in floats
//   of d
//                                     exact products, in any order
//                                     (cpp/knn/detail/filter_space.hpp)
//   |x~ - y~|                         is |c - s| but for u N, u = 2^-9 for the rounding
//
// N is known, as both distances to e are, and what |c - s| is compared with is about |x|. So the
// margin is about 2 u of the distances themselves, however large the numbers are.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpp/base/simd.hpp"
#include "cpp/base/vectors.hpp"
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

    Nearness::Side side_of(double limit, const Row& chosen) const;

    Nearness nearness_;
    bool rounds_;  // whether there are products of bfloat16
    std::size_t dimensions_, padded_;
    double sum_error_;  // G
    std::vector<float> from_;
    std::vector<std::uint16_t> differences_;  // of the chosen rows, and behind them the last one's
    Row last_{};
    /// First those that others were near to of late: they are so most often.
    std::vector<Row> chosen_;
};

}  // namespace gputext
