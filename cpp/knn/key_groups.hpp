// cpp/knn/key_groups.hpp - rows of two matrices that have equal keys, in groups

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"

namespace gputext {

/// The key of a row that is nobody's neighbor.
inline constexpr std::uint32_t kNoKey = UINT32_MAX;

/// A number for each query and each item. Only a query and an item of equal numbers may be
/// neighbors, and none of kNoKey. No numbers at all where every pair counts.
struct MatchKeys {
    std::span<const std::uint32_t> queries, items;

    bool none() const { return queries.empty() && items.empty(); }
    bool match(std::size_t query, std::size_t item) const {
        return none() || (queries[query] == items[item] && queries[query] != kNoKey);
    }
};

/// A group for each key that occurs on both sides, in the order of keys. Group g has the queries
/// [query_begins[g], query_begins[g + 1]) of `queries`, and likewise items; within a group rows
/// ascend. Rows whose key does not occur on the other side are in no group.
struct KeyGroups {
    std::vector<std::uint32_t> queries, items;
    std::vector<std::uint64_t> query_begins, item_begins;  // one more than there are groups

    std::size_t size() const { return query_begins.empty() ? 0 : query_begins.size() - 1; }
    std::span<const std::uint32_t> queries_of(std::size_t group) const {
        return std::span(queries).subspan(query_begins[group],
                                          query_begins[group + 1] - query_begins[group]);
    }
    std::span<const std::uint32_t> items_of(std::size_t group) const {
        return std::span(items).subspan(item_begins[group],
                                        item_begins[group + 1] - item_begins[group]);
    }
    /// Queries times items, of all groups together: what a search has to look at.
    std::uint64_t pairs() const;
};

/// Whether there is a key for each row, or none at all. Error: invalid_argument.
Status check_match_keys(const MatchKeys& match, std::size_t queries, std::size_t items);

/// Groups rows by their keys, of which there is one for each row. Time: a few passes over the keys,
/// on the execution's threads. Memory: 8 to 24 bytes a row meanwhile, 4 bytes a row of a group, 16
/// bytes a group. Error: cancelled.
Result<KeyGroups> group_by_key(const MatchKeys& match, Execution& execution);

// ---- The group of each row, by its number ----

/// Writes the group of each of `count` rows, or kNoKey: rows[begins[g]] to rows[begins[g + 1] - 1]
/// are of group g. O(count) time, on the execution's threads. Error: cancelled.
Status number_groups(std::span<const std::uint32_t> rows, std::span<const std::uint64_t> begins,
                     std::size_t count, Execution& execution, std::vector<std::uint32_t>& numbers);

/// Keys of rows that group_by_key() makes the same groups of again.
class GroupNumbers {
public:
    /// Numbers the rows by their groups, as number_groups() does.
    Status set(const KeyGroups& groups, std::size_t queries, std::size_t items,
               Execution& execution);
    MatchKeys matches() const { return {queries_, items_}; }

private:
    std::vector<std::uint32_t> queries_, items_;
};

}  // namespace gputext
