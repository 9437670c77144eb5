#include "cpp/knn/key_groups.hpp"

#include <algorithm>
#include <bit>
#include <memory>

#include "cpp/base/large_pages.hpp"
#include "cpp/base/radix_sort.hpp"
#include "cpp/base/stoppable.hpp"

namespace gputext {
namespace {

/// Rows whose keys a thread looks at between two looks for a stop request.
constexpr std::size_t kBlock = std::size_t{1} << 18;
/// Rows that a bucket of keys has on average: they stay in a core's second cache.
constexpr std::size_t kRowsOfBucket = std::size_t{1} << 15;
/// More would be written to at once than a processor keeps the pages of.
constexpr unsigned kMostBucketBits = 11;

/// A key above its row.
using Entry = std::uint64_t;

std::uint32_t key_of(Entry entry) {
    return static_cast<std::uint32_t>(entry >> 32);
}

std::size_t blocks_of(std::size_t rows) {
    return (rows + kBlock - 1) / kBlock;
}

/// The largest key but kNoKey of one side, 0 where there is none.
Result<std::uint32_t> largest_key(std::span<const std::uint32_t> keys, Execution& execution) {
    std::vector<std::uint32_t> largest(execution.threads());
    const Status status =
        execution.parallel_for(blocks_of(keys.size()), [&](std::size_t block, unsigned worker) {
            const auto own = keys.subspan(block * kBlock);
            std::uint32_t most = largest[worker];
            for (const std::uint32_t key : own.first(std::min(kBlock, own.size())))
                if (key != kNoKey) most = std::max(most, key);
            largest[worker] = most;
            return Status();
        });
    if (!status.ok()) return status;
    return *std::max_element(largest.begin(), largest.end());
}

/// One side's rows in buckets of consecutive keys, within a bucket by row.
class Buckets {
public:
    Status set(std::span<const std::uint32_t> keys, unsigned shift, std::size_t buckets,
               Execution& execution) {
        const std::size_t blocks = blocks_of(keys.size());
        std::vector<std::uint64_t> places(blocks * buckets);  // counts at first
        const auto each = [&](std::size_t block, auto&& visit) {
            const std::size_t end = std::min(keys.size(), (block + 1) * kBlock);
            for (std::size_t row = block * kBlock; row < end; ++row)
                if (keys[row] != kNoKey)
                    visit(places[block * buckets + (std::uint64_t{keys[row]} >> shift)], keys[row],
                          row);
        };
        GPUTEXT_TRY(execution.parallel_for(blocks, [&](std::size_t block, unsigned) {
            each(block, [](std::uint64_t& count, std::uint32_t, std::size_t) { ++count; });
            return Status();
        }));
        begins_.assign(1, 0);
        std::uint64_t before = 0;
        for (std::size_t bucket = 0; bucket < buckets; ++bucket) {
            for (std::size_t block = 0; block < blocks; ++block) {
                std::uint64_t& place = places[block * buckets + bucket];
                const std::uint64_t count = place;
                place = before;
                before += count;
            }
            begins_.push_back(before);
        }
        entries_ = std::make_unique_for_overwrite<Entry[]>(before);
        prefer_large_pages(entries_.get(), before);
        return execution.parallel_for(blocks, [&](std::size_t block, unsigned) {
            each(block, [&](std::uint64_t& place, std::uint32_t key, std::size_t row) {
                entries_[place++] = Entry{key} << 32 | row;
            });
            return Status();
        });
    }

    std::span<Entry> bucket(std::size_t number) {
        return {entries_.get() + begins_[number], begins_[number + 1] - begins_[number]};
    }

    /// Sorts a bucket by key, and by row within a key. False if stopped.
    bool sort(std::size_t number, Stop stop) {
        const std::span<Entry> entries = bucket(number);
        if (std::is_sorted(entries.begin(), entries.end())) return true;
        std::vector<Entry> copy(entries.begin(), entries.end());
        if (!radix_sort(copy, stop, 32)) return false;
        std::copy(copy.begin(), copy.end(), entries.begin());
        return true;
    }

private:
    std::unique_ptr<Entry[]> entries_;
    std::vector<std::uint64_t> begins_;
};

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
Status fill_groups(Buckets& queries, Buckets& items, std::span<const Counts> before,
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
    const std::size_t rows = match.queries.size() + match.items.size();
    execution.begin_phase("sorting keys",
                          3 * (blocks_of(match.queries.size()) + blocks_of(match.items.size())));
    const auto of_queries = largest_key(match.queries, execution);
    if (!of_queries.ok()) return of_queries.status();
    const auto of_items = largest_key(match.items, execution);
    if (!of_items.ok()) return of_items.status();
    const std::uint32_t largest = std::max(*of_queries, *of_items);
    const auto key_bits = static_cast<unsigned>(std::bit_width(largest));
    const auto wanted = static_cast<unsigned>(std::bit_width(rows / kRowsOfBucket));
    const unsigned shift = key_bits - std::min({key_bits, wanted, kMostBucketBits});
    const std::size_t bucket_count = (std::uint64_t{largest} >> shift) + 1;

    Buckets queries, items;
    if (Status status = queries.set(match.queries, shift, bucket_count, execution); !status.ok())
        return status;
    if (Status status = items.set(match.items, shift, bucket_count, execution); !status.ok())
        return status;

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

}  // namespace gputext
