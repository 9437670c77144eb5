#include "cpp/groups/detail/id_numbers.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>
#include <vector>

#include "cpp/base/large_pages.hpp"

namespace gputext {
namespace {

/// An id as its distance from the least one, and the place where it was.
struct [[gnu::packed]] Entry {
    std::uint64_t key;
    std::uint32_t place;
};
static_assert(sizeof(Entry) == 12);

constexpr unsigned kMostBits = 10;  // of a key that one pass over a part looks at
constexpr std::size_t kMostParts = std::size_t{1} << kMostBits;
constexpr unsigned kFirstBits = 12;  // that the first pass looks at, so that parts fit into caches
constexpr std::size_t kSlice = std::size_t{1} << 20;  // ids of one step
constexpr std::size_t kFew = 32;                      // entries that are sorted by comparing
constexpr std::size_t kAhead = 32;  // places that are fetched before they are written

/// Divides keys by their highest bits.
class KeyParts {
public:
    /// For so many entries: about eight a part, where keys up to `greatest` and so many bits allow
    /// it.
    KeyParts(std::uint64_t greatest, std::size_t entries, unsigned most_bits) {
        const auto key_bits = static_cast<unsigned>(std::bit_width(greatest));
        const auto wanted = static_cast<unsigned>(std::bit_width(entries / 8));
        const unsigned bits = std::min({key_bits, most_bits, std::max(wanted, 1u)});
        shift_ = key_bits - bits;
        count_ = (greatest >> shift_) + 1;
    }

    std::size_t of(std::uint64_t key) const { return key >> shift_; }
    std::size_t count() const { return count_; }

private:
    unsigned shift_;
    std::size_t count_;
};

/// Ends of parts that lie one behind the other, from their sizes.
void sum_up(std::span<std::uint64_t> sizes) {
    std::uint64_t end = 0;
    for (std::uint64_t& size : sizes) size = end += size;
}

// ---- One part, on one thread ----

void sort_few(std::span<Entry> entries) {
    for (std::size_t i = 1; i < entries.size(); ++i) {
        const Entry moved = entries[i];
        std::size_t to = i;
        for (; to > 0 && entries[to - 1].key > moved.key; --to) entries[to] = entries[to - 1];
        entries[to] = moved;
    }
}

/// Sorts by keys, from the highest bits in which they differ: McIlroy, Bostic and McIlroy,
/// "Engineering radix sort" (Computing Systems 6, 1993), the American flag sort.
Status sort_entries(std::span<Entry> entries, Stop stop) {
    if (entries.size() <= kFew) {
        sort_few(entries);
        return {};
    }
    if (entries.size() > kSlice / 16 && stop()) return Status::cancelled();
    std::uint64_t least = entries[0].key, greatest = least;
    for (const Entry& entry : entries) {
        least = std::min<std::uint64_t>(least, entry.key);
        greatest = std::max<std::uint64_t>(greatest, entry.key);
    }
    if (least == greatest) return {};
    const KeyParts parts(greatest - least, entries.size(), kMostBits);
    std::array<std::uint64_t, kMostParts> next, ends;  // most calls need few of them
    std::fill_n(ends.begin(), parts.count(), 0);
    next[0] = 0;
    for (const Entry& entry : entries) ++ends[parts.of(entry.key - least)];
    sum_up(std::span(ends).first(parts.count()));
    std::copy_n(ends.begin(), parts.count() - 1, next.begin() + 1);
    if (entries.size() > kSlice / 16 && stop()) return Status::cancelled();
    for (std::size_t part = 0; part < parts.count(); ++part) {
        while (next[part] < ends[part]) {
            Entry moved = entries[next[part]];
            for (std::size_t to; (to = parts.of(moved.key - least)) != part;)
                std::swap(moved, entries[next[to]++]);
            entries[next[part]++] = moved;
        }
    }
    std::uint64_t begin = 0;
    for (std::size_t part = 0; part < parts.count(); ++part) {
        const std::uint64_t size = ends[part] - begin;
        if (size > 1) GPUTEXT_TRY(sort_entries(entries.subspan(begin, size), stop));
        begin = ends[part];
    }
    return {};
}

// ---- All of them ----

class Numbering {
public:
    Numbering(std::span<const std::int64_t> ids, const IdRange& range, Execution& execution)
        : ids_(ids),
          least_(static_cast<std::uint64_t>(range.least)),
          execution_(execution),
          slices_((ids.size() + kSlice - 1) / kSlice),
          parts_(range.distance(), ids.size(), kFirstBits) {}

    Result<IdNumbers> run() {
        GPUTEXT_TRY(divide());
        GPUTEXT_TRY(sort());
        GPUTEXT_TRY(number());
        return std::move(answer_);
    }

private:
    std::uint64_t key(std::size_t i) const { return static_cast<std::uint64_t>(ids_[i]) - least_; }
    std::span<std::uint64_t> sizes_of(std::size_t slice) {
        return std::span(slice_sizes_).subspan(slice * parts_.count(), parts_.count());
    }
    std::span<Entry> part(std::size_t i) {
        const std::uint64_t begin = i == 0 ? 0 : part_ends_[i - 1];
        return {entries_.get() + begin, part_ends_[i] - begin};
    }
    /// Calls take(i, part) for each id of the slice.
    template <class Take>
    void for_slice(std::size_t slice, const Take& take) const {
        const std::size_t begin = slice * kSlice, end = std::min(ids_.size(), begin + kSlice);
        for (std::size_t i = begin; i < end; ++i) take(i, parts_.of(key(i)));
    }

    Status divide();
    Status sort();
    Status number();

    const std::span<const std::int64_t> ids_;
    const std::uint64_t least_;
    Execution& execution_;
    const std::size_t slices_;
    const KeyParts parts_;
    std::vector<std::uint64_t> slice_sizes_;  // of each slice's parts, then where they begin
    std::vector<std::uint64_t> part_ends_;
    std::vector<std::uint64_t> distinct_;  // ids in each part, then up to its end
    std::unique_ptr<Entry[]> entries_;
    IdNumbers answer_;
};

/// Moves the entries to their parts.
Status Numbering::divide() {
    execution_.begin_phase("dividing ids", 2 * slices_);
    slice_sizes_.resize(slices_ * parts_.count());
    entries_ = unwritten_pages<Entry>(ids_.size());
    GPUTEXT_TRY(execution_.parallel_for(slices_, [&](std::size_t slice, unsigned) -> Status {
        const std::span<std::uint64_t> sizes = sizes_of(slice);
        for_slice(slice, [&](std::size_t, std::size_t part) { ++sizes[part]; });
        return {};
    }));
    part_ends_.resize(parts_.count());
    std::uint64_t end = 0;
    for (std::size_t part = 0; part < parts_.count(); ++part) {
        for (std::size_t slice = 0; slice < slices_; ++slice)
            end += std::exchange(sizes_of(slice)[part], end);
        part_ends_[part] = end;
    }
    return execution_.parallel_for(slices_, [&](std::size_t slice, unsigned) -> Status {
        const std::span<std::uint64_t> next = sizes_of(slice);
        for_slice(slice, [&](std::size_t i, std::size_t part) {
            entries_[next[part]++] = {key(i), static_cast<std::uint32_t>(i)};
        });
        return {};
    });
}

Status Numbering::sort() {
    execution_.begin_phase("sorting ids", parts_.count());
    distinct_.resize(parts_.count());
    const Stop stop = execution_.stop();
    return execution_.parallel_for(parts_.count(), [&](std::size_t i, unsigned) -> Status {
        const std::span<Entry> entries = part(i);
        if (entries.empty()) return {};
        GPUTEXT_TRY(sort_entries(entries, stop));
        distinct_[i] = 1;
        for (std::size_t e = 1; e < entries.size(); ++e)
            distinct_[i] += entries[e - 1].key != entries[e].key;
        return {};
    });
}

Status Numbering::number() {
    execution_.begin_phase("numbering ids", parts_.count());
    sum_up(distinct_);
    answer_.count = static_cast<std::uint32_t>(distinct_.back());
    answer_.ids = unwritten_pages<std::int64_t>(answer_.count);
    answer_.numbers = unwritten_pages<std::uint32_t>(ids_.size());
    return execution_.parallel_for(parts_.count(), [&](std::size_t i, unsigned) -> Status {
        const std::span<Entry> entries = part(i);
        std::uint64_t number = i == 0 ? 0 : distinct_[i - 1];
        for (std::size_t e = 0; e < entries.size(); ++e) {
            __builtin_prefetch(
                &answer_.numbers[entries[std::min(e + kAhead, entries.size() - 1)].place], 1);
            if (e > 0 && entries[e - 1].key != entries[e].key) ++number;
            answer_.numbers[entries[e].place] = static_cast<std::uint32_t>(number);
            answer_.ids[number] = static_cast<std::int64_t>(least_ + entries[e].key);
        }
        return {};
    });
}

}  // namespace

Result<IdRange> range_of_ids(std::span<const std::int64_t> ids, Execution& execution) {
    const std::size_t slices = (ids.size() + kSlice - 1) / kSlice;
    std::vector<IdRange> ranges(slices);
    execution.begin_phase("looking at ids", slices);
    GPUTEXT_TRY(execution.parallel_for(slices, [&](std::size_t slice, unsigned) -> Status {
        const auto part =
            ids.subspan(slice * kSlice, std::min(kSlice, ids.size() - slice * kSlice));
        const auto [least, greatest] = std::minmax_element(part.begin(), part.end());
        ranges[slice] = {*least, *greatest};
        return {};
    }));
    IdRange all = ranges[0];
    for (const IdRange& range : ranges)
        all = {std::min(all.least, range.least), std::max(all.greatest, range.greatest)};
    return all;
}

Result<IdNumbers> number_ids(std::span<const std::int64_t> ids, const IdRange& range,
                             Execution& execution) {
    return Numbering(ids, range, execution).run();
}

}  // namespace gputext
