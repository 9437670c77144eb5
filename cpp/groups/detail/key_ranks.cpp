#include "cpp/groups/detail/key_ranks.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <functional>

#include "cpp/base/large_pages.hpp"
#include "cpp/groups/detail/key_parts.hpp"

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

}  // namespace gputext
