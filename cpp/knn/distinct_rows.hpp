// cpp/knn/distinct_rows.hpp - groups equal rows of vectors into classes
//
// Real tables repeat themselves: three rows of four in KDD Cup 99 have an equal before them. A
// search among the distinct ones does that much less, and ties of copies cost nothing.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/memory_budget.hpp"
#include "cpp/base/status.hpp"
#include "cpp/base/vectors.hpp"
#include "cpp/knn/nearest_lists.hpp"
#include "cpp/knn/neighbors.hpp"

namespace gputext {

/// How many rows are equal to a row, itself counted: the mean over all rows, estimated from a
/// sample of at most 2,048. 1 where that holds too few equal rows to tell. O(elements of the
/// sample). Error: cancelled.
Result<double> mean_class_size(const Vectors& vectors, Execution& execution);

/// A hash of a row's bytes: of its elements and, when sparse, of their columns.
std::uint64_t hash_of_row(std::span<const std::byte> elements,
                          std::span<const std::byte> columns = {});

/// Classes of rows that are equal byte for byte, numbered in the order of their first members.
class DistinctRows {
public:
    /// O(elements) time, on the execution's threads; 12 bytes a row. Error: cancelled.
    Status set(const Vectors& vectors, Execution& execution);
    /// The same, where the hash_of_row() of each is known: O(rows) time, and of the elements of rows
    /// that are equal to one before them.
    Status set(const Vectors& vectors, std::span<const std::uint64_t> hashes, Execution& execution);
    /// Without a look at them, each of so many rows is a class of its own. What is true of distinct
    /// rows is true of these, but that copies cost as much as other rows. O(rows) time.
    void set_apart(std::size_t rows);

    std::size_t size() const { return firsts_.size(); }
    /// The first member of each class.
    std::span<const std::uint32_t> firsts() const { return firsts_; }
    /// The class of each row.
    std::span<const std::uint32_t> classes() const { return class_; }
    /// The members of a class, ascending.
    std::span<const std::uint32_t> members(std::size_t of) const {
        return std::span(members_).subspan(begins_[of], begins_[of + 1] - begins_[of]);
    }

private:
    /// Fills class_ and firsts_; rows of equal hashes are of one class, or compared if `compared`.
    Status number(std::span<const std::uint64_t> hashes, const Vectors* compared,
                  Execution& execution);

    std::vector<std::uint32_t> class_, firsts_, members_, begins_;
};

// ---- Copies some rows of a matrix into a matrix of their own ----

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

// ---- Expands nearest classes of equal items into nearest items ----
//
// A search looks at each class once; which of its members are neighbors, in which order, and where
// the k-th is reached, is found here, for the CPU's search and for those of devices.

/// Appends a query's nearest classes, by distance; those at one distance in any order. Called once
/// a query, on any thread.
using NearestClasses = std::function<Status(std::size_t query, std::vector<Candidate>& nearest)>;

/// Fills in the neighbors of all queries: of parameters k and include_ties count, and the keys.
/// The classes given for a query must hold those neighbors. Without `distinct` each item is a
/// class of its own, given in order. O(neighbors), and sorting where several classes are at one
/// distance. Takes kBytesOfNeighbor for each neighbor from the budget. Errors: cancelled,
/// memory_limit, and those of `classes_of`.
Status expand_classes(const KnnParameters& parameters, std::size_t queries, const RowKeys& keys,
                      const DistinctRows* distinct, const NearestClasses& classes_of,
                      MemoryBudget& budget, Execution& execution, Neighbors& answer);

}  // namespace gputext
