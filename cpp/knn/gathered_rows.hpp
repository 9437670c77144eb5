// cpp/knn/gathered_rows.hpp - copies some rows of a matrix into a matrix of their own

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "cpp/base/vectors.hpp"

namespace gputext {

/// Rows of a matrix, dense or sparse, as a matrix: row i is the i-th row that was named.
class GatheredRows {
public:
    /// Copies the rows, whose numbers ascend strictly; keeps a view of `vectors` where they are all
    /// of its rows. O(elements of the rows) time and memory. Error: cancelled.
    Status set(const Vectors& vectors, std::span<const std::uint32_t> rows, Execution& execution);
    const Vectors& vectors() const { return vectors_; }

private:
    Status copy_dense(const Vectors& from, std::span<const std::uint32_t> rows,
                      Execution& execution);
    Status copy_sparse(const Vectors& from, std::span<const std::uint32_t> rows, Stop stop);

    Vectors vectors_;
    std::unique_ptr<std::byte[]> dense_;
    std::vector<std::byte> elements_;
    std::vector<std::uint64_t> row_begins_;
    std::vector<std::uint32_t> columns_;
};

}  // namespace gputext
