#include "cpp/knn/key_groups.hpp"

#include <algorithm>

#include "cpp/base/large_pages.hpp"
#include "cpp/base/row_buckets.hpp"
#include "cpp/base/stoppable.hpp"

namespace gputext {
namespace {

using Entry = RowBuckets::Entry;

std::uint32_t key_of(Entry entry) {
    return static_cast<std::uint32_t>(entry >> 32);
}

/// Calls visit(queries, items) for each key that both have, with its entries. False if stopped.
template <class Visit>
bool each_group(std::span<const Entry> queries, std::span<const Entry> items, Stop stop,
                Visit&& visit) {
    std::size_t q = 0, i = 0;
    const auto end_of_key = [](std::span<const Entry> entries, std::size_t at) {
        const std::uint32_t key = key_of(entries[at]);
        while (at < entries.size() && key_of(entries[at]) == key) ++at;
        return at;
    };
    for (std::size_t step = 1; q < queries.size() && i < items.size(); ++step) {
        if (step % (kLookEvery / 64) == 0 && stop()) return false;
        const std::uint32_t query_key = key_of(queries[q]), item_key = key_of(items[i]);
        if (query_key < item_key) {
            ++q;
        } else if (item_key < query_key) {
            ++i;
        } else {
            const std::size_t query_end = end_of_key(queries, q), item_end = end_of_key(items, i);
            visit(queries.subspan(q, query_end - q), items.subspan(i, item_end - i));
            q = query_end;
            i = item_end;
        }
    }
    return true;
}

/// What a bucket adds to the groups.
struct Counts {
    std::uint64_t groups = 0, queries = 0, items = 0;
};

void copy_rows(std::span<const Entry> entries, std::vector<std::uint32_t>& rows, std::uint64_t at) {
    for (const Entry entry : entries) rows[at++] = static_cast<std::uint32_t>(entry);
}

/// Fills `groups`, which has room for what all buckets add, from those before each.
Status fill_groups(RowBuckets& queries, RowBuckets& items, std::span<const Counts> before,
                   Execution& execution, KeyGroups& groups) {
    execution.begin_phase("grouping keys", before.size());
    const Stop stop = execution.stop();
    return execution.parallel_for(before.size(), [&](std::size_t bucket, unsigned) {
        Counts at = before[bucket];
        const auto add = [&](std::span<const Entry> of_queries, std::span<const Entry> of_items) {
            groups.query_begins[at.groups] = at.queries;
            groups.item_begins[at.groups] = at.items;
            copy_rows(of_queries, groups.queries, at.queries);
            copy_rows(of_items, groups.items, at.items);
            ++at.groups;
            at.queries += of_queries.size();
            at.items += of_items.size();
        };
        return each_group(queries.bucket(bucket), items.bucket(bucket), stop, add)
                   ? Status()
                   : Status::cancelled();
    });
}

}  // namespace

std::uint64_t KeyGroups::pairs() const {
    std::uint64_t pairs = 0;
    for (std::size_t group = 0; group < size(); ++group)
        pairs += queries_of(group).size() * items_of(group).size();
    return pairs;
}

Status check_match_keys(const MatchKeys& match, std::size_t queries, std::size_t items) {
    if (match.none() || (match.queries.size() == queries && match.items.size() == items)) return {};
    return {ErrorCode::invalid_argument, "there must be a key for each query and each item"};
}

Result<KeyGroups> group_by_key(const MatchKeys& match, Execution& execution) {
    execution.begin_phase("sorting keys",
                          3 * (RowBuckets::steps(match.queries) + RowBuckets::steps(match.items)));
    const auto of_queries = largest_key(match.queries, execution);
    if (!of_queries.ok()) return of_queries.status();
    const auto of_items = largest_key(match.items, execution);
    if (!of_items.ok()) return of_items.status();
    const BucketRanges ranges(std::max(*of_queries, *of_items),
                              match.queries.size() + match.items.size());
    const std::size_t bucket_count = ranges.count();

    RowBuckets queries, items;
    if (Status status = queries.set(match.queries, ranges, execution); !status.ok()) return status;
    if (Status status = items.set(match.items, ranges, execution); !status.ok()) return status;

    std::vector<Counts> counts(bucket_count);
    const Stop stop = execution.stop();
    execution.begin_phase("sorting keys", bucket_count);
    const Status sorted = execution.parallel_for(bucket_count, [&](std::size_t bucket, unsigned) {
        Counts& own = counts[bucket];
        const auto count = [&own](std::span<const Entry> some_queries,
                                  std::span<const Entry> some_items) {
            ++own.groups;
            own.queries += some_queries.size();
            own.items += some_items.size();
        };
        const bool done = queries.sort(bucket, stop) && items.sort(bucket, stop) &&
                          each_group(queries.bucket(bucket), items.bucket(bucket), stop, count);
        return done ? Status() : Status::cancelled();
    });
    if (!sorted.ok()) return sorted;

    Counts all;
    for (Counts& own : counts) {
        const Counts before = all;
        all.groups += own.groups;
        all.queries += own.queries;
        all.items += own.items;
        own = before;
    }
    KeyGroups groups;
    const auto make_room = [&](auto& elements, std::size_t size) {
        return assign_pages(elements, size, {}, stop);
    };
    if (!make_room(groups.queries, all.queries) || !make_room(groups.items, all.items) ||
        !make_room(groups.query_begins, all.groups + 1) ||
        !make_room(groups.item_begins, all.groups + 1))
        return Status::cancelled();
    groups.query_begins[all.groups] = all.queries;
    groups.item_begins[all.groups] = all.items;
    if (Status status = fill_groups(queries, items, counts, execution, groups); !status.ok())
        return status;
    return groups;
}

namespace {

constexpr std::size_t kRowsOfStep = std::size_t{1} << 16;

}  // namespace

Status number_groups(std::span<const std::uint32_t> rows, std::span<const std::uint64_t> begins,
                     std::size_t count, Execution& execution, std::vector<std::uint32_t>& numbers) {
    if (!assign_pages(numbers, count, kNoKey, execution.stop())) return Status::cancelled();
    const std::size_t steps = (rows.size() + kRowsOfStep - 1) / kRowsOfStep;
    execution.begin_phase("numbering groups", steps);
    return execution.parallel_for(steps, [&](std::size_t step, unsigned) {
        const std::size_t end = std::min(rows.size(), (step + 1) * kRowsOfStep);
        std::size_t at = step * kRowsOfStep;
        auto group =
            static_cast<std::size_t>(std::ranges::upper_bound(begins, at) - begins.begin() - 1);
        for (; at < end; ++at) {
            while (begins[group + 1] <= at) ++group;
            numbers[rows[at]] = static_cast<std::uint32_t>(group);
        }
        return Status();
    });
}

Status GroupNumbers::set(const KeyGroups& groups, std::size_t queries, std::size_t items,
                         Execution& execution) {
    GPUTEXT_TRY(number_groups(groups.queries, groups.query_begins, queries, execution, queries_));
    return number_groups(groups.items, groups.item_begins, items, execution, items_);
}

}  // namespace gputext
