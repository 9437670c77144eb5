// cpp/base/row_range.hpp - consecutive rows of a matrix as a matrix of their own

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpp/base/vectors.hpp"

namespace gputext {

/// Rows [begin, end) of a matrix, which keeps its memory. Begins of some of its sparse rows are
/// copied, as they count from 0 in each matrix: O(rows).
class RowRange {
public:
    RowRange(const Vectors& matrix, std::size_t begin, std::size_t end) : vectors_(matrix) {
        if (begin == 0 && end == matrix.rows) return;
        vectors_.rows = end - begin;
        vectors_.elements = matrix.row_bytes(begin);
        if (!matrix.sparse()) return;
        const std::uint64_t stored = matrix.row_begins[begin];
        begins_.reserve(end - begin + 1);
        for (std::size_t row = begin; row <= end; ++row)
            begins_.push_back(matrix.row_begins[row] - stored);
        vectors_.columns = matrix.columns.subspan(stored, begins_.back());
        vectors_.row_begins = begins_;
    }
    RowRange(RowRange&&) = default;

    const Vectors& vectors() const { return vectors_; }

private:
    std::vector<std::uint64_t> begins_;
    Vectors vectors_;
};

}  // namespace gputext
