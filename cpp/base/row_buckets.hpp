// cpp/base/row_buckets.hpp - sorts rows by keys of 32 bits, on threads

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "cpp/base/stop.hpp"

namespace gputext {

// ---- Puts elements into another order, on threads ----

/// to[i] = from(order[i]) for each i. `from` is called on the execution's threads. Error:
/// cancelled.
template <class To, class From>
Status gather(std::span<const std::uint32_t> order, To* to, const From& from,
              Execution& execution) {
    constexpr std::size_t kBlock = std::size_t{1} << 16;
    const std::size_t blocks = (order.size() + kBlock - 1) / kBlock;
    execution.begin_phase("ordering rows", blocks);
    return execution.parallel_for(blocks, [&](std::size_t block, unsigned) {
        const std::size_t end = std::min(order.size(), (block + 1) * kBlock);
        for (std::size_t i = block * kBlock; i < end; ++i) to[i] = from(order[i]);
        return Status();
    });
}

/// No bucket has rows of this key.
inline constexpr std::uint32_t kKeyOfNoBucket = UINT32_MAX;

/// Ranges of keys, in order, such that the rows of each stay in the second cache of a core.
class BucketRanges {
public:
    /// Ranges of keys up to `largest` in buckets for this number of rows.
    BucketRanges(std::uint32_t largest, std::size_t rows);

    std::size_t count() const { return count_; }
    std::size_t range_of(std::uint32_t key) const { return std::uint64_t{key} >> shift_; }

private:
    unsigned shift_;
    std::size_t count_;
};

/// The largest key but kKeyOfNoBucket, 0 where there is none, on the execution's threads. Error:
/// cancelled.
Result<std::uint32_t> largest_key(std::span<const std::uint32_t> keys, Execution& execution);

/// Rows in buckets, one a range of keys. Functions throw std::bad_alloc.
class RowBuckets {
public:
    /// A key above its row.
    using Entry = std::uint64_t;

    /// The number of steps that set() and largest_key() count.
    static std::size_t steps(std::span<const std::uint32_t> keys);

    /// Fills the buckets, each with its rows in ascending order. O(rows) time, 8 bytes a row.
    /// Error: cancelled.
    Status set(std::span<const std::uint32_t> keys, const BucketRanges& ranges,
               Execution& execution);

    std::span<Entry> bucket(std::size_t number) {
        return {entries_.get() + begins_[number], begins_[number + 1] - begins_[number]};
    }
    /// How many rows the buckets before it have.
    std::uint64_t begin(std::size_t number) const { return begins_[number]; }
    /// Sorts a bucket by key, and by row within a key. False if stopped.
    bool sort(std::size_t number, Stop stop);

private:
    std::unique_ptr<Entry[]> entries_;
    std::vector<std::uint64_t> begins_;
};

/// Fills `order` with all rows by their keys, and those of one key in ascending order. No key may
/// be kKeyOfNoBucket. O(rows) time on the execution's threads, 12 bytes a row. Error: cancelled.
Status order_by_key(std::span<const std::uint32_t> keys, std::vector<std::uint32_t>& order,
                    Execution& execution);

}  // namespace gputext
