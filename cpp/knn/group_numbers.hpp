// cpp/knn/group_numbers.hpp - the group of each row, by its number

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "cpp/knn/key_groups.hpp"

namespace gputext {

/// Writes the group of each of `count` rows, or kNoKey: rows[begins[g]] to rows[begins[g + 1] - 1]
/// are of group g. O(count) time, on the execution's threads. Error: cancelled.
Status number_groups(std::span<const std::uint32_t> rows, std::span<const std::uint64_t> begins,
                     std::size_t count, Execution& execution, std::vector<std::uint32_t>& numbers);

/// Keys of rows that group_by_key() makes the same groups of again.
class GroupNumbers {
public:
    /// As number_groups().
    Status set(const KeyGroups& groups, std::size_t queries, std::size_t items,
               Execution& execution);
    MatchKeys matches() const { return {queries_, items_}; }

private:
    std::vector<std::uint32_t> queries_, items_;
};

}  // namespace gputext
