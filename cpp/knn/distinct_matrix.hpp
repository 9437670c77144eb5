// cpp/knn/distinct_matrix.hpp - copies one row of each class of equal rows into a matrix to be
// searched

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "cpp/base/vectors.hpp"
#include "cpp/knn/distinct_rows.hpp"

namespace gputext {

/// The first members of all classes as a matrix of their own: row c is of class c.
class DistinctMatrix {
public:
    /// Copies the distinct rows; keeps a view of `vectors` where all its rows are distinct. Error:
    /// cancelled.
    Status set(const Vectors& vectors, const DistinctRows& distinct, Execution& execution);
    const Vectors& vectors() const { return vectors_; }

private:
    Status copy_dense(const Vectors& from, const DistinctRows& distinct, Execution& execution);
    Status copy_sparse(const Vectors& from, const DistinctRows& distinct, Stop stop);

    Vectors vectors_;
    std::unique_ptr<std::byte[]> dense_;
    std::vector<std::byte> elements_;
    std::vector<std::uint64_t> row_begins_;
    std::vector<std::uint32_t> columns_;
};

}  // namespace gputext
