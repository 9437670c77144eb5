// cpp/daemon/keyed_parts.hpp - a search within equal keys in parts, for several devices
//
// A part has some of the queries that are in groups, in the order of groups, so that each device
// needs the items of its own groups alone; a group that is most of the work is cut by its queries.
// Every query is in one part at most, and the answer is that of the whole search, to the bit.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "cpp/base/vectors.hpp"
#include "cpp/daemon/search_parts.hpp"
#include "cpp/knn/key_groups.hpp"
#include "cpp/knn/neighbors.hpp"

namespace gputext {

/// The groups that queries [begin, end) of groups.queries are in, with these queries alone and all
/// items of theirs. O(rows copied + log groups).
KeyGroups groups_of_queries(const KeyGroups& groups, std::uint64_t begin, std::uint64_t end);

/// Where parts of about as many pairs begin in groups.queries, and the end: parts + 1 numbers.
/// O(groups + parts).
std::vector<std::uint64_t> parts_by_pairs(const KeyGroups& groups, std::size_t parts);

/// The parts of one search, and their answers, each for all queries. Different parts may be asked
/// for, and answered, by different threads at once.
class KeyedParts {
public:
    /// Groups rows by key, and shares the groups out on up to so many devices: one part where a
    /// second device would take longer to begin than it saves. Returns the number of parts. Errors:
    /// those of group_by_key().
    Result<std::size_t> prepare(const MatchKeys& matches, const Vectors& queries,
                                const Vectors& items, std::size_t devices, Execution& execution);

    const KeyGroups& groups(std::size_t part) const { return groups_[part]; }
    Neighbors& answer(std::size_t part) { return answers_[part]; }
    /// Makes one answer of all parts'. Errors: cancelled; memory_limit.
    Status merge(const AnswerLimit& limit, Execution& execution);
    /// After merge().
    std::span<const Neighbors> answers() const { return answers_; }

private:
    std::vector<KeyGroups> groups_;  // of each part
    std::vector<Neighbors> answers_;
};

}  // namespace gputext
