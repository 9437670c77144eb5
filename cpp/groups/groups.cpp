#include "cpp/groups/groups.hpp"

#include <algorithm>
#include <atomic>
#include <string>
#include <utility>

#include "cpp/base/disjoint_sets.hpp"
#include "cpp/base/large_pages.hpp"
#include "cpp/base/memory_budget.hpp"
#include "cpp/groups/detail/id_numbers.hpp"

namespace gputext {
namespace {

constexpr std::size_t kSlice = std::size_t{1} << 16;  // pairs or nodes of one step
constexpr std::size_t kAhead = 16;                    // ends that are fetched before their turn
constexpr std::uint64_t kBitsInWord = 64;

// ---- Ends of pairs, as nodes ----

/// Ends that are numbers from 0 on, each of which occurs.
class NumberedEnds {
public:
    static constexpr bool kAllNodes = true;

    explicit NumberedEnds(std::span<const std::uint32_t> numbers) : numbers_(numbers) {}
    std::size_t size() const { return numbers_.size(); }
    std::uint32_t operator[](std::size_t i) const { return numbers_[i]; }

private:
    std::span<const std::uint32_t> numbers_;
};

/// Ids that are near one another: their nodes are the distances from the least one.
class NearEnds {
public:
    static constexpr bool kAllNodes = false;

    NearEnds(std::span<const std::int64_t> ids, std::int64_t least)
        : ids_(ids), least_(static_cast<std::uint64_t>(least)) {}
    std::size_t size() const { return ids_.size(); }
    std::uint32_t operator[](std::size_t i) const {
        return static_cast<std::uint32_t>(static_cast<std::uint64_t>(ids_[i]) - least_);
    }

private:
    std::span<const std::int64_t> ids_;
    std::uint64_t least_;
};

constexpr std::size_t slices_of(std::size_t size, std::size_t slice) {
    return (size + slice - 1) / slice;
}

std::uint64_t bytes_to_group(std::uint64_t nodes, GroupOrder order) {
    const std::uint64_t arrays = order == GroupOrder::by_node ? 2 : 4;
    return nodes * arrays * sizeof(std::uint32_t) + nodes / 8;
}

Status too_many_pairs(std::size_t ends) {
    return {ErrorCode::invalid_argument, "there are " + std::to_string(ends / 2) +
                                             " pairs, more than " +
                                             std::to_string(kMostGroupedPairs)};
}

// ---- Grouping ----

template <class Ends>
class Grouping {
public:
    Grouping(const Ends& ends, std::uint32_t nodes, Execution& execution)
        : ends_(ends), nodes_(nodes), execution_(execution) {}

    Result<Groups> run(GroupOrder order) {
        GPUTEXT_TRY(mark());
        GPUTEXT_TRY(join());
        GPUTEXT_TRY(name_by_node());
        if (order == GroupOrder::by_occurrence) GPUTEXT_TRY(name_by_occurrence());
        return std::move(groups_);
    }

private:
    bool marked(std::uint32_t node) const {
        return (marks_[node / kBitsInWord] >> node % kBitsInWord & 1) != 0;
    }
    Status mark();
    Status join();
    Status name_by_node();
    Status name_by_occurrence();

    const Ends ends_;
    const std::uint32_t nodes_;
    Execution& execution_;
    std::vector<std::uint64_t> marks_;  // a bit a node: whether it is in a pair
    Groups groups_;                     // names: the parents, before they are names
};

/// Finds the nodes that are in pairs, and makes each its own parent.
template <class Ends>
Status Grouping<Ends>::mark() {
    const std::size_t slices = Ends::kAllNodes ? 0 : slices_of(ends_.size(), 2 * kSlice);
    execution_.begin_phase("looking for ids", slices + slices_of(nodes_, kSlice));
    marks_.assign(nodes_ / kBitsInWord + 1, Ends::kAllNodes ? ~std::uint64_t{0} : 0);
    GPUTEXT_TRY(execution_.parallel_for(slices, [&](std::size_t slice, unsigned) -> Status {
        const std::size_t end = std::min(ends_.size(), (slice + 1) * 2 * kSlice);
        for (std::size_t i = slice * 2 * kSlice; i < end; ++i) {
            const std::uint32_t node = ends_[i];
            const std::atomic_ref<std::uint64_t> word(marks_[node / kBitsInWord]);
            const std::uint64_t bit = std::uint64_t{1} << node % kBitsInWord;
            if ((word.load(std::memory_order_relaxed) & bit) == 0)
                word.fetch_or(bit, std::memory_order_relaxed);
        }
        return {};
    }));
    if (!assign_pages(groups_.names, nodes_, Groups::kNone, execution_.stop()))
        return Status::cancelled();
    return execution_.parallel_for(
        slices_of(nodes_, kSlice), [&](std::size_t slice, unsigned) -> Status {
            const std::size_t end = std::min<std::size_t>(nodes_, (slice + 1) * kSlice);
            for (std::size_t node = slice * kSlice; node < end; ++node)
                if (marked(static_cast<std::uint32_t>(node)))
                    groups_.names[node] = static_cast<std::uint32_t>(node);
            return {};
        });
}

template <class Ends>
Status Grouping<Ends>::join() {
    const std::size_t slices = slices_of(ends_.size(), 2 * kSlice);
    execution_.begin_phase("joining pairs", slices);
    DisjointSets sets(std::move(groups_.names));
    GPUTEXT_TRY(execution_.parallel_for(slices, [&](std::size_t slice, unsigned) -> Status {
        const std::size_t end = std::min(ends_.size(), (slice + 1) * 2 * kSlice);
        for (std::size_t i = slice * 2 * kSlice; i < end; i += 2) {
            const std::size_t ahead = std::min(i + kAhead, end - 2);
            sets.prefetch(ends_[ahead]);
            sets.prefetch(ends_[ahead + 1]);
            sets.join(ends_[i], ends_[i + 1]);
        }
        return {};
    }));
    groups_.names = sets.release();
    return {};
}

/// Parents lie before their children, so that theirs are the names already.
template <class Ends>
Status Grouping<Ends>::name_by_node() {
    execution_.begin_phase("naming groups", nodes_);
    if (!assign_pages(groups_.sizes, nodes_, std::uint32_t{0}, execution_.stop()))
        return Status::cancelled();
    std::vector<std::uint32_t>& names = groups_.names;
    for (std::uint32_t node = 0; node < nodes_; ++node) {
        if (node % kSlice == 0) GPUTEXT_TRY(execution_.checkpoint(kSlice));
        if (!marked(node)) continue;
        const std::uint32_t name = names[names[node]];
        names[node] = name;
        ++groups_.sizes[name];
    }
    return {};
}

/// Clears the marks of the nodes that it has met.
template <class Ends>
Status Grouping<Ends>::name_by_occurrence() {
    execution_.begin_phase("ordering groups", ends_.size() + nodes_);
    std::vector<std::uint32_t> new_names;  // of the groups, by their names so far
    if (!assign_pages(new_names, nodes_, Groups::kNone, execution_.stop()))
        return Status::cancelled();
    groups_.order.reserve(nodes_);
    for (std::size_t i = 0; i < ends_.size(); ++i) {
        if (i % kSlice == 0) GPUTEXT_TRY(execution_.checkpoint(kSlice));
        const std::uint32_t node = ends_[i];
        if (!marked(node)) continue;
        marks_[node / kBitsInWord] &= ~(std::uint64_t{1} << node % kBitsInWord);
        groups_.order.push_back(node);
        std::uint32_t& name = new_names[groups_.names[node]];
        if (name == Groups::kNone) name = node;
    }
    // A group's size moves from its smallest node to the one that names it now, which is above it.
    for (std::uint32_t node = nodes_; node-- > 0;) {
        if (node % kSlice == 0) GPUTEXT_TRY(execution_.checkpoint(kSlice));
        if (groups_.names[node] == Groups::kNone) continue;
        const std::uint32_t name = new_names[groups_.names[node]];
        if (groups_.names[node] == node && name != node)
            groups_.sizes[name] = std::exchange(groups_.sizes[node], 0);
        groups_.names[node] = name;
    }
    return {};
}

template <class Ends>
Result<Groups> group(const Ends& ends, std::uint32_t nodes, GroupOrder order,
                     Execution& execution) {
    return Grouping<Ends>(ends, nodes, execution).run(order);
}

}  // namespace

Result<Groups> groups_of_nodes(std::span<const std::uint32_t> ends, std::uint32_t nodes,
                               GroupOrder order, std::size_t memory_limit, Execution& execution) {
    if (ends.size() / 2 > kMostGroupedPairs) return too_many_pairs(ends.size());
    MemoryBudget budget(memory_limit);
    GPUTEXT_TRY(budget.take(bytes_to_group(nodes, order), "the groups"));
    return group(NumberedEnds(ends), nodes, order, execution);
}

Result<IdGroups> groups_of_ids(std::span<const std::int64_t> ends, GroupOrder order,
                               std::size_t memory_limit, Execution& execution) {
    IdGroups answer;
    if (ends.empty()) return answer;
    if (ends.size() / 2 > kMostGroupedPairs) return too_many_pairs(ends.size());
    const Result<IdRange> range = range_of_ids(ends, execution);
    if (!range.ok()) return range.status();
    MemoryBudget budget(memory_limit);

    const auto take = [&](Result<Groups> groups) -> Result<IdGroups> {
        if (!groups.ok()) return groups.status();
        answer.groups = std::move(*groups);
        return std::move(answer);
    };
    if (range->distance() < std::min<std::uint64_t>(2 * ends.size(), Groups::kNone)) {
        answer.least = range->least;
        const auto nodes = static_cast<std::uint32_t>(range->distance() + 1);
        GPUTEXT_TRY(budget.take(bytes_to_group(nodes, order), "the groups"));
        return take(group(NearEnds(ends, range->least), nodes, order, execution));
    }
    GPUTEXT_TRY(budget.take(kBytesToNumberId * ends.size(), "the groups"));
    Result<IdNumbers> numbered = number_ids(ends, *range, execution);
    if (!numbered.ok()) return numbered.status();
    answer.ids = std::move((*numbered).ids);
    const std::uint32_t nodes = numbered->count;
    budget.give_back((kBytesToNumberId - kBytesOfNumber) * ends.size());
    GPUTEXT_TRY(
        budget.take(kBytesOfNumberedId * nodes + bytes_to_group(nodes, order), "the groups"));
    return take(
        group(NumberedEnds({numbered->numbers.get(), ends.size()}), nodes, order, execution));
}

}  // namespace gputext
