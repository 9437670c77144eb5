// cpp/groups/groups.hpp - groups of ids that pairs connect: connected components

#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"

namespace gputext {

/// Which node of a group comes first, and so names it; groups' nodes are listed in that order, too.
enum class GroupOrder {
    by_node,       // the smallest one
    by_occurrence  // the one that occurs first among the ends
};

/// The groups of nodes 0..n-1.
struct Groups {
    /// The name of a node that is in no pair.
    static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

    std::vector<std::uint32_t> order;  // nodes that are in pairs, in their order; empty: ascending
    std::vector<std::uint32_t> names;  // of each node the one that names its group; kNone
    std::vector<std::uint32_t> sizes;  // of a group, at the node that names it; else 0

    /// Calls visit(node) for each node that is in a pair, in their order.
    template <class Visit>
    void for_each(const Visit& visit) const {
        if (order.empty()) {
            for (std::uint32_t node = 0; node < names.size(); ++node)
                if (names[node] != kNone) visit(node);
        } else {
            for (const std::uint32_t node : order) visit(node);
        }
    }
};

/// Groups of ids: each id is a node.
struct IdGroups {
    Groups groups;
    std::unique_ptr<std::int64_t[]> ids;  // of the nodes, ascending; null where they count up
    std::int64_t least = 0;               // from this one

    std::int64_t id(std::uint32_t node) const {
        return ids == nullptr ? least + static_cast<std::int64_t>(node) : ids[node];
    }
};

/// Pairs of which both ends are numbered by 32 bits.
inline constexpr std::uint64_t kMostGroupedPairs =
    (std::uint64_t{std::numeric_limits<std::uint32_t>::max()} - 1) / 2;

/// Groups of the nodes below `nodes`, each of which is an end, that the pairs (ends[0], ends[1]),
/// (ends[2], ends[3]) and so on connect. A pair may be of one node. Takes O(ends) time, and 8 bytes
/// a node, with by_occurrence 16. Errors: cancelled; memory_limit, before it computes;
/// invalid_argument for more than kMostGroupedPairs pairs.
Result<Groups> groups_of_nodes(std::span<const std::uint32_t> ends, std::uint32_t nodes,
                               GroupOrder order, std::size_t memory_limit, Execution& execution);

/// The same with ids in place of nodes, which are numbered in their order. Takes, with e ends:
/// O(e) time, and 8 bytes for each number from the least id to the greatest, if these are at most
/// 2e; else O(e log e) time and at most 24e bytes. by_occurrence takes 8 bytes more for each.
Result<IdGroups> groups_of_ids(std::span<const std::int64_t> ends, GroupOrder order,
                               std::size_t memory_limit, Execution& execution);

}  // namespace gputext
