// cpp/knn/distinct_rows.hpp - groups equal rows of vectors into classes
//
// Real tables repeat themselves: three rows of four in KDD Cup 99 have an equal before them. A
// search among the distinct ones does that much less, and ties of copies cost nothing.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "cpp/base/vectors.hpp"

namespace gputext {

/// How many rows are equal to a row, itself counted: the mean over all rows, estimated from a
/// sample of at most 2,048. 1 where that holds too few equal rows to tell. O(elements of the
/// sample). Error: cancelled.
Result<double> mean_class_size(const Vectors& vectors, Execution& execution);

/// Classes of rows that are equal byte for byte, numbered in the order of their first members.
class DistinctRows {
public:
    /// O(elements) time, 12 bytes a row. Error: cancelled.
    Status set(const Vectors& vectors, Execution& execution);
    /// Without a look at them, each of so many rows is a class of its own. What is true of distinct
    /// rows is true of these, but that copies cost as much as other rows. O(rows) time.
    void set_apart(std::size_t rows);

    std::size_t size() const { return firsts_.size(); }
    /// By class, the first member.
    std::span<const std::uint32_t> firsts() const { return firsts_; }
    /// By row, its class.
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

}  // namespace gputext
