// cpp/distinct_rows.hpp - rows of vectors with the same elements, each class of them once
//
// Real tables repeat themselves: three rows of four in KDD Cup 99 have an equal before them. A
// search among the distinct ones does that much less, and ties of copies cost nothing.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cpp/execution.hpp"
#include "cpp/vectors.hpp"

namespace gputext {

/// Classes of rows that are equal byte for byte, numbered in the order of their first members.
class DistinctRows {
public:
    /// O(elements) time, 12 bytes a row. Error: cancelled.
    Status set(const Vectors& vectors, Execution& execution);

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
    std::vector<std::uint32_t> class_, firsts_, members_, begins_;
};

}  // namespace gputext
