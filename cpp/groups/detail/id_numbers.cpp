#include "cpp/groups/detail/id_numbers.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <utility>
#include <vector>

#include "cpp/base/large_pages.hpp"

namespace gputext {
namespace {

constexpr std::size_t kFew = 32;                          // that are sorted by insertion
constexpr std::size_t kLookAfter = std::size_t{1} << 16;  // keys, for a stop

template <class Element, class Below>
void sort_few(std::span<Element> elements, const Below& below) {
    for (std::size_t i = 1; i < elements.size(); ++i) {
        const Element moved = elements[i];
        std::size_t to = i;
        for (; to > 0 && below(moved, elements[to - 1]); --to) elements[to] = elements[to - 1];
        elements[to] = moved;
    }
}

/// Numbers keys, which come in ascending order, and writes each down once.
class Ranking {
public:
    explicit Ranking(std::span<std::uint64_t> keys) : keys_(keys) {}

    std::uint32_t rank(std::uint64_t key) {
        if (count_ == 0 || keys_[count_ - 1] != key) keys_[count_++] = key;
        return count_ - 1;
    }
    std::uint32_t count() const { return count_; }

private:
    std::span<std::uint64_t> keys_;
    std::uint32_t count_ = 0;
};

// ---- Keys whose rest and place are a number of 64 bits ----

constexpr std::size_t kMostPacked = std::size_t{1} << 21;  // keys, so that they stay in a cache
constexpr unsigned kMostPackedBits = 16;                   // of a key, that its part tells

/// Moves the keys to their parts, packed with their places, and sorts each part.
std::uint32_t rank_packed(std::span<std::uint64_t> keys, std::span<std::uint32_t> ranks,
                          std::uint64_t least, const KeyParts& parts, unsigned place_bits,
                          KeyRankSpace& space) {
    space.ends.assign(parts.count() + 1, 0);
    std::uint32_t* const next = space.ends.data();
    for (const std::uint64_t key : keys) ++next[parts.of(key - least) + 1];
    sum_up(std::span(space.ends));
    if (space.packed.size() < keys.size()) space.packed.resize(keys.size());
    std::uint64_t* const packed = space.packed.data();
    for (std::size_t i = 0; i < keys.size(); ++i) {
        const std::uint64_t key = keys[i] - least;
        packed[next[parts.of(key)]++] = parts.rest(key) << place_bits | i;
    }
    const std::uint64_t place_mask = (std::uint64_t{1} << place_bits) - 1;
    Ranking ranking(keys);
    std::size_t begin = 0;
    for (std::size_t part = 0; part < parts.count(); ++part) {
        const std::span<std::uint64_t> own(packed + begin, packed + next[part]);
        begin = next[part];
        if (own.size() <= kFew)
            sort_few(own, std::less<std::uint64_t>());
        else
            std::sort(own.begin(), own.end());
        for (const std::uint64_t one : own)
            ranks[one & place_mask] = ranking.rank(least + parts.key(part, one >> place_bits));
    }
    return ranking.count();
}

// ---- Any keys ----

struct [[gnu::packed]] Entry {
    std::uint64_t key;
    std::uint32_t place;
};
static_assert(sizeof(Entry) == 12);

constexpr unsigned kMostBits = 10;  // of a key that one pass over a part looks at
constexpr std::size_t kMostParts = std::size_t{1} << kMostBits;

/// Sorts by keys, from the highest bits in which they differ: McIlroy, Bostic and McIlroy,
/// "Engineering radix sort" (Computing Systems 6, 1993), the American flag sort.
Status sort_entries(std::span<Entry> entries, Stop stop) {
    if (entries.size() <= kFew) {
        sort_few(entries, [](const Entry& a, const Entry& b) { return a.key < b.key; });
        return {};
    }
    if (entries.size() > kLookAfter && stop()) return Status::cancelled();
    std::uint64_t least = entries[0].key, greatest = least;
    for (const Entry& entry : entries) {
        const std::uint64_t key = entry.key;  // no reference: it may lie at any address
        least = std::min(least, key);
        greatest = std::max(greatest, key);
    }
    if (least == greatest) return {};
    const KeyParts parts(greatest - least, entries.size(), kMostBits);
    std::array<std::uint64_t, kMostParts> next, ends;  // most calls need few of them
    std::fill_n(ends.begin(), parts.count(), 0);
    next[0] = 0;
    for (const Entry& entry : entries) ++ends[parts.of(entry.key - least)];
    sum_up(std::span(ends).first(parts.count()));
    std::copy_n(ends.begin(), parts.count() - 1, next.begin() + 1);
    if (entries.size() > kLookAfter && stop()) return Status::cancelled();
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

Result<std::uint32_t> rank_any(std::span<std::uint64_t> keys, std::span<std::uint32_t> ranks,
                               Stop stop) {
    const auto memory = unwritten_pages<Entry>(keys.size());
    const std::span<Entry> entries(memory.get(), keys.size());
    for (std::size_t i = 0; i < keys.size(); ++i) {
        if (i % kLookAfter == 0 && stop()) return Status::cancelled();
        entries[i] = {keys[i], static_cast<std::uint32_t>(i)};
    }
    GPUTEXT_TRY(sort_entries(entries, stop));
    Ranking ranking(keys);
    for (std::size_t i = 0; i < entries.size(); ++i) {
        if (i % kLookAfter == 0 && stop()) return Status::cancelled();
        ranks[entries[i].place] = ranking.rank(entries[i].key);
    }
    return ranking.count();
}

}  // namespace

Result<std::uint32_t> rank_keys(std::span<std::uint64_t> keys, std::span<std::uint32_t> ranks,
                                KeyRankSpace& space, Stop stop) {
    if (keys.empty()) return std::uint32_t{0};
    std::uint64_t least = keys[0], greatest = least;
    for (std::size_t i = 0; i < keys.size(); ++i) {
        if (i % kLookAfter == 0 && stop()) return Status::cancelled();
        least = std::min(least, keys[i]);
        greatest = std::max(greatest, keys[i]);
    }
    if (least == greatest) {
        std::fill(ranks.begin(), ranks.end(), 0u);
        return std::uint32_t{1};
    }
    const KeyParts parts(greatest - least, keys.size(), kMostPackedBits);
    const auto place_bits = static_cast<unsigned>(std::bit_width(keys.size() - 1));
    if (keys.size() <= kMostPacked && parts.rest_bits() + place_bits <= 64)
        return rank_packed(keys, ranks, least, parts, place_bits, space);
    return rank_any(keys, ranks, stop);
}

namespace {

constexpr unsigned kFirstBits = 12;                   // of a key, by which threads divide the ids
constexpr std::size_t kSlice = std::size_t{1} << 20;  // ids of one step

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
        GPUTEXT_TRY(rank());
        GPUTEXT_TRY(gather());
        GPUTEXT_TRY(number());
        return std::move(answer_);
    }

private:
    std::uint64_t key(std::size_t i) const { return static_cast<std::uint64_t>(ids_[i]) - least_; }
    std::size_t slice_end(std::size_t slice) const {
        return std::min(ids_.size(), (slice + 1) * kSlice);
    }
    std::span<std::uint64_t> sizes_of(std::size_t slice) {
        return std::span(slice_sizes_).subspan(slice * parts_.count(), parts_.count());
    }
    std::uint64_t part_begin(std::size_t part) const {
        return part == 0 ? 0 : part_ends_[part - 1];
    }
    std::uint64_t part_size(std::size_t part) const { return part_ends_[part] - part_begin(part); }
    /// The number of the first id in the part.
    std::uint64_t first_number(std::size_t part) const {
        return part == 0 ? 0 : distinct_[part - 1];
    }
    Status divide();
    Status rank();
    Status gather();
    Status number();

    const std::span<const std::int64_t> ids_;
    const std::uint64_t least_;
    Execution& execution_;
    const std::size_t slices_;
    const KeyParts parts_;
    std::vector<std::uint64_t> slice_sizes_;  // of each slice's parts, then where they end
    std::vector<std::uint64_t> part_ends_;
    std::vector<std::uint64_t> distinct_;     // ids in each part, then up to its end
    std::unique_ptr<std::uint64_t[]> keys_;   // distances from the least id, part by part
    std::unique_ptr<std::uint32_t[]> ranks_;  // of the keys in their parts
    IdNumbers answer_;
};

/// Moves the keys to their parts, in which they lie in the order of the ids.
Status Numbering::divide() {
    execution_.begin_phase("dividing ids", 2 * slices_);
    slice_sizes_.resize(slices_ * parts_.count());
    keys_ = unwritten_pages<std::uint64_t>(ids_.size());
    GPUTEXT_TRY(execution_.parallel_for(slices_, [&](std::size_t slice, unsigned) -> Status {
        const std::span<std::uint64_t> sizes = sizes_of(slice);
        for (std::size_t i = slice * kSlice; i < slice_end(slice); ++i) ++sizes[parts_.of(key(i))];
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
        for (std::size_t i = slice * kSlice; i < slice_end(slice); ++i)
            keys_[next[parts_.of(key(i))]++] = key(i);
        return {};
    });
}

Status Numbering::rank() {
    execution_.begin_phase("sorting ids", parts_.count());
    distinct_.resize(parts_.count());
    ranks_ = unwritten_pages<std::uint32_t>(ids_.size());
    std::vector<KeyRankSpace> spaces(execution_.threads());
    const Stop stop = execution_.stop();
    return execution_.parallel_for(
        parts_.count(), [&](std::size_t part, unsigned worker) -> Status {
            const std::uint64_t begin = part_begin(part), size = part_size(part);
            const Result<std::uint32_t> distinct = rank_keys(
                {keys_.get() + begin, size}, {ranks_.get() + begin, size}, spaces[worker], stop);
            if (!distinct.ok()) return distinct.status();
            distinct_[part] = *distinct;
            return {};
        });
}

/// Moves the distinct ids to where their numbers say.
Status Numbering::gather() {
    execution_.begin_phase("gathering ids", parts_.count());
    sum_up(std::span(distinct_));
    answer_.count = static_cast<std::uint32_t>(distinct_.back());
    answer_.ids = unwritten_pages<std::int64_t>(answer_.count);
    GPUTEXT_TRY(execution_.parallel_for(parts_.count(), [&](std::size_t part, unsigned) -> Status {
        const std::uint64_t* const keys = keys_.get() + part_begin(part);
        const std::uint64_t first = first_number(part), count = distinct_[part] - first;
        for (std::size_t i = 0; i < count; ++i)
            answer_.ids[first + i] = static_cast<std::int64_t>(least_ + keys[i]);
        return {};
    }));
    keys_.reset();
    return {};
}

/// Gives each id its number at its place. The ranks of a slice's ids lie in its parts in the order
/// of the ids, so that a thread reads and writes few stretches of memory at a time. It goes
/// backwards, for after divide() a slice has the ends of its parts.
Status Numbering::number() {
    execution_.begin_phase("numbering ids", slices_);
    answer_.numbers = unwritten_pages<std::uint32_t>(ids_.size());
    return execution_.parallel_for(slices_, [&](std::size_t slice, unsigned) -> Status {
        const std::span<std::uint64_t> ends = sizes_of(slice);
        for (std::size_t i = slice_end(slice); i-- > slice * kSlice;) {
            const std::size_t part = parts_.of(key(i));
            answer_.numbers[i] =
                static_cast<std::uint32_t>(first_number(part) + ranks_[--ends[part]]);
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
        IdRange range{part[0], part[0]};
        for (const std::int64_t id : part)
            range = {std::min(range.least, id), std::max(range.greatest, id)};
        ranges[slice] = range;
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
