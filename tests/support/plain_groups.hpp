// tests/support/plain_groups.hpp - reference implementation of cpp/groups/groups.hpp

#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <queue>
#include <set>
#include <tuple>
#include <vector>

#include "cpp/groups/groups.hpp"

namespace gputext::testing {

/// An id, the one that names its group, and the group's size.
using GroupRow = std::tuple<std::int64_t, std::int64_t, std::uint64_t>;

/// The rows in their order, by a breadth-first search from each id that no search has met.
inline std::vector<GroupRow> plain_groups(const std::vector<std::int64_t>& ends, GroupOrder order) {
    std::map<std::int64_t, std::set<std::int64_t>> neighbors;
    std::vector<std::int64_t> ids;
    for (std::size_t i = 0; i < ends.size(); ++i) {
        if (!neighbors.contains(ends[i])) ids.push_back(ends[i]);
        neighbors[ends[i]].insert(ends[i ^ 1]);
    }
    if (order == GroupOrder::by_node) std::sort(ids.begin(), ids.end());
    std::map<std::int64_t, GroupRow> rows;
    for (const std::int64_t first : ids) {
        if (rows.contains(first)) continue;
        std::set<std::int64_t> group{first};
        for (std::queue<std::int64_t> next({first}); !next.empty(); next.pop())
            for (const std::int64_t id : neighbors[next.front()])
                if (group.insert(id).second) next.push(id);
        for (const std::int64_t id : group) rows[id] = {id, first, group.size()};
    }
    std::vector<GroupRow> answer;
    for (const std::int64_t id : ids) answer.push_back(rows[id]);
    return answer;
}

}  // namespace gputext::testing
