#include "cpp/base/row_buckets.hpp"

#include <algorithm>
#include <bit>

#include "cpp/base/large_pages.hpp"
#include "cpp/base/radix_sort.hpp"

namespace gputext {
namespace {

/// Rows whose keys a thread looks at between two looks for a stop request.
constexpr std::size_t kBlock = std::size_t{1} << 17;
/// Rows that a bucket of keys has on average: they stay in a core's second cache.
constexpr std::size_t kRowsOfBucket = std::size_t{1} << 15;
/// More buckets than a processor's TLB has entries for would be written to at once.
constexpr unsigned kMostBucketBits = 11;

}  // namespace

BucketRanges::BucketRanges(std::uint32_t largest, std::size_t rows) {
    const auto key_bits = static_cast<unsigned>(std::bit_width(largest));
    const auto wanted = static_cast<unsigned>(std::bit_width(rows / kRowsOfBucket));
    shift_ = key_bits - std::min({key_bits, wanted, kMostBucketBits});
    count_ = (std::uint64_t{largest} >> shift_) + 1;
}

std::size_t RowBuckets::steps(std::span<const std::uint32_t> keys) {
    return (keys.size() + kBlock - 1) / kBlock;
}

Result<std::uint32_t> largest_key(std::span<const std::uint32_t> keys, Execution& execution) {
    std::vector<std::uint32_t> largest(execution.threads());
    const Status status =
        execution.parallel_for(RowBuckets::steps(keys), [&](std::size_t block, unsigned worker) {
            const auto own = keys.subspan(block * kBlock);
            std::uint32_t most = largest[worker];
            for (const std::uint32_t key : own.first(std::min(kBlock, own.size())))
                if (key != kKeyOfNoBucket) most = std::max(most, key);
            largest[worker] = most;
            return Status();
        });
    if (!status.ok()) return status;
    return *std::max_element(largest.begin(), largest.end());
}

Status RowBuckets::set(std::span<const std::uint32_t> keys, const BucketRanges& ranges,
                       Execution& execution) {
    const std::size_t blocks = steps(keys), buckets = ranges.count();
    std::vector<std::uint64_t> places(blocks * buckets);  // counts at first
    const auto each = [&](std::size_t block, auto&& visit) {
        const std::size_t end = std::min(keys.size(), (block + 1) * kBlock);
        for (std::size_t row = block * kBlock; row < end; ++row)
            if (keys[row] != kKeyOfNoBucket)
                visit(places[block * buckets + ranges.range_of(keys[row])], keys[row], row);
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
    entries_ = unwritten_pages<Entry>(before);
    return execution.parallel_for(blocks, [&](std::size_t block, unsigned) {
        each(block, [&](std::uint64_t& place, std::uint32_t key, std::size_t row) {
            entries_[place++] = Entry{key} << 32 | row;
        });
        return Status();
    });
}

bool RowBuckets::sort(std::size_t number, Stop stop) {
    const std::span<Entry> entries = bucket(number);
    if (std::is_sorted(entries.begin(), entries.end())) return true;
    std::vector<Entry> copy(entries.begin(), entries.end());
    if (!radix_sort(copy, stop, 32)) return false;
    std::copy(copy.begin(), copy.end(), entries.begin());
    return true;
}

Status order_by_key(std::span<const std::uint32_t> keys, std::vector<std::uint32_t>& order,
                    Execution& execution) {
    execution.begin_phase("sorting rows", 3 * RowBuckets::steps(keys));
    const auto largest = largest_key(keys, execution);
    if (!largest.ok()) return largest.status();
    const BucketRanges ranges(*largest, keys.size());
    RowBuckets buckets;
    GPUTEXT_TRY(buckets.set(keys, ranges, execution));
    const Stop stop = execution.stop();
    if (!assign_pages(order, keys.size(), 0u, stop)) return Status::cancelled();
    execution.begin_phase("sorting rows", ranges.count());
    return execution.parallel_for(ranges.count(), [&](std::size_t number, unsigned) {
        if (!buckets.sort(number, stop)) return Status::cancelled();
        std::uint64_t at = buckets.begin(number);
        for (const RowBuckets::Entry entry : buckets.bucket(number))
            order[at++] = static_cast<std::uint32_t>(entry);
        return Status();
    });
}

}  // namespace gputext
