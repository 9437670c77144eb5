// kernels/knn/item_cache.hpp - what searches have made of items that stay on the device
//
// Items of resident memory (kernels/base/resident_copies.hpp) are the same in each job. What a
// search makes of them, rows in half precision with their bounds and squares, takes as long as
// reading them a few times, and a search for few queries takes no longer than reading what was
// made. So it is cached beside the copy of the items: about half of its size again for binary32.

#pragma once

#include <cuda_fp16.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <list>
#include <utility>

#include "cpp/base/resident_ranges.hpp"
#include "cpp/base/vectors.hpp"
#include "cpp/knn/distance.hpp"
#include "kernels/base/device_buffer.hpp"
#include "kernels/knn/detail/fp16_rows.hpp"

namespace gputext::gpu {

/// Rows of some items of a range, which gates are guessed from.
struct Fp16Samples {
    std::uint32_t begin = 0, end = 0;  // of the range
    DeviceBuffer<__half> rows;
    DeviceBuffer<Fp16ItemBound> bounds;

    bool are_of(std::uint32_t first, std::uint32_t last) const {
        return rows.size() > 0 && begin == first && end == last;
    }
    std::uint64_t bytes() const {
        return rows.size() * sizeof(__half) + bounds.size() * sizeof(Fp16ItemBound);
    }
};

/// All items of a search as the filter in half precision wants them.
struct Fp16ItemSet {
    Fp16SpaceChoice choice;
    DeviceBuffer<__half> rows;
    DeviceBuffer<Fp16ItemBound> bounds;
    DeviceBuffer<float> largest;   // as in Fp16Items
    DeviceBuffer<double> squares;  // as in DirectFilterInput
    Fp16Samples samples;           // of a range of them, or none

    std::uint64_t bytes() const {
        return rows.size() * sizeof(__half) + bounds.size() * sizeof(Fp16ItemBound) +
               largest.size() * sizeof(float) + squares.size() * sizeof(double) + samples.bytes();
    }
};

/// On one device, used by one thread. Functions take O(sets), of which there are few.
class ItemCache {
public:
    /// Items by their place in a resident range, and how they are compared.
    struct Key {
        std::uint64_t range = 0;  // its id; 0 of items in none
        std::uint64_t begin = 0;  // byte of the range
        std::uint64_t rows = 0;
        std::uint64_t dimensions = 0;
        ElementType type = ElementType::float32;
        Metric metric = Metric::cosine;

        bool operator==(const Key&) const = default;
    };

    /// May take so many bytes of the device's memory.
    explicit ItemCache(std::uint64_t limit) : limit_(limit) {}

    /// The items, or null; until the next add() or clear().
    const Fp16ItemSet* find(const Key& key);
    /// Adds it in place of the sets that were used longest ago, where there is no room for all;
    /// drops it where there is none for it alone.
    void add(const Key& key, Fp16ItemSet items);
    /// Drops sets of ranges that are gone.
    void drop_gone(const ResidentRanges& ranges);

    std::uint64_t bytes() const { return bytes_; }
    void clear();

private:
    struct Entry {
        Key key;
        Fp16ItemSet items;
    };

    void drop(std::list<Entry>::iterator entry);

    std::uint64_t limit_;
    std::uint64_t bytes_ = 0;
    std::list<Entry> entries_;  // the last used first
};

inline const Fp16ItemSet* ItemCache::find(const Key& key) {
    const auto found = std::find_if(entries_.begin(), entries_.end(),
                                    [&](const Entry& entry) { return entry.key == key; });
    if (key.range == 0 || found == entries_.end()) return nullptr;
    entries_.splice(entries_.begin(), entries_, found);
    return &entries_.front().items;
}

inline void ItemCache::add(const Key& key, Fp16ItemSet items) {
    const std::uint64_t bytes = items.bytes();
    if (key.range == 0 || bytes > limit_) return;
    while (!entries_.empty() && bytes_ > limit_ - bytes) drop(std::prev(entries_.end()));
    bytes_ += bytes;
    entries_.push_front({key, std::move(items)});
}

inline void ItemCache::drop_gone(const ResidentRanges& ranges) {
    for (auto entry = entries_.begin(); entry != entries_.end();) {
        const auto next = std::next(entry);
        if (!ranges.has(entry->key.range)) drop(entry);
        entry = next;
    }
}

inline void ItemCache::drop(std::list<Entry>::iterator entry) {
    bytes_ -= entry->items.bytes();
    entries_.erase(entry);
}

inline void ItemCache::clear() {
    entries_.clear();
    bytes_ = 0;
}

}  // namespace gputext::gpu
