// cpp/strings/detail/string_index.hpp - items by length, and how many symbols each of them may have
// in common with a query

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cpp/base/simd.hpp"
#include "cpp/base/status.hpp"
#include "cpp/base/stop.hpp"
#include "cpp/strings/strings.hpp"

namespace gputext {

/// Items of one length, at neighboring places. Groups do not go beyond a block.
struct LengthGroup {
    std::size_t begin, end;  // places
    std::size_t length;
    std::size_t excess;  // the most symbols of one of them that are excess: see LetterIndex
};

/// Groups whose items are searched for many queries while they stay in a processor's cache.
struct IndexBlock {
    std::size_t first_group, end_group;
};

/// Some items in the order of their lengths, and those of equal length in their own order.
class LengthOrder {
public:
    /// Places of a block.
    static constexpr std::size_t block_places = std::size_t{1} << 15;

    /// O(items log items). Error: cancelled.
    Status set(const Strings& strings, std::span<const std::uint32_t> items, Stop stop);

    std::size_t size() const { return items_.size(); }
    /// The number of the item at a place.
    std::uint32_t item(std::size_t place) const { return items_[place]; }
    std::span<const LengthGroup> groups() const { return groups_; }
    std::span<LengthGroup> groups() { return groups_; }
    std::span<const IndexBlock> blocks() const { return blocks_; }

private:
    std::vector<std::uint32_t> items_;
    std::vector<LengthGroup> groups_;
    std::vector<IndexBlock> blocks_;
};

// ---- Counts of symbols ----

/// Upper bounds of what items have in common with a query. Symbols fall into 32 kinds. The n-th
/// symbol of a kind sets bit n of the kind's 2, 4 or 8 bits; a symbol for which none is left is
/// excess. Two strings have at most as many symbols in common as bits are set in both, and the
/// smaller excess.
class LetterIndex {
public:
    /// The largest count of a query and an item; it also stands for one more.
    static constexpr std::uint8_t most = UINT8_MAX;

    /// The order's groups get their excess. O(symbols). Error: cancelled.
    Status set(const Strings& strings, LengthOrder& order, Simd simd, Stop stop);

    class Query {
    public:
        std::size_t excess() const { return excess_; }

    private:
        friend class LetterIndex;
        std::uint64_t words_[4];
        std::size_t excess_;
    };

    Query query(Symbols string) const;
    /// Writes the common ones of the query and each of the places, the first one at counts[0].
    void count(const Query& query, std::size_t begin, std::size_t end, std::uint8_t* counts) const;

    std::size_t excess(std::size_t place) const { return excess_[place]; }

private:
    std::size_t depth_ = 1;  // words an item
    std::size_t stride_ = 0;
    std::vector<std::uint64_t> words_;  // [word][place]
    std::vector<std::uint32_t> excess_;
    Simd simd_ = Simd::portable;
};

// ---- Pairs of adjacent symbols, and beginnings ----

/// Upper bounds of the pairs of adjacent symbols that an item has in common with a query: 256 bits
/// an item, of which a pair sets one. A pair whose bit was set before is excess.
class PairIndex {
public:
    /// O(symbols). Error: cancelled.
    Status set(const Strings& strings, const LengthOrder& order, Simd simd, Stop stop);

    struct Pairs {
        std::uint64_t words[4];
        std::size_t excess;
    };
    static Pairs of(Symbols string);
    std::size_t common(const Pairs& query, std::size_t place) const {
        return common_(query, pairs_[place]);
    }

private:
    std::vector<Pairs> pairs_;  // by place
    std::size_t (*common_)(const Pairs& a, const Pairs& b) = nullptr;
};

/// Upper bounds of the symbols that items and a query begin with alike: a byte of each symbol.
class PrefixIndex {
public:
    /// O(items). Error: cancelled.
    Status set(const Strings& strings, const LengthOrder& order, Stop stop);

    static std::uint32_t of(Symbols string);
    std::size_t common(std::uint32_t query, std::size_t place) const;

private:
    std::vector<std::uint32_t> prefixes_;  // by place
};

// ---- Common trigrams ----

/// What items have in common with a query, counted by an inverted index.
class TrigramIndex {
public:
    /// O(trigrams log trigrams). Error: cancelled.
    Status set(const Strings& strings, const LengthOrder& order, Stop stop);

    /// Whether a count may not fit into 8 bits.
    bool wide() const { return wide_; }

    /// The places of a trigram's items, of all blocks.
    using Places = std::span<const std::uint32_t>;
    /// Those of each of the query's trigrams that an item has.
    void find(Symbols query, std::vector<Places>& found) const;

private:
    std::vector<std::uint32_t> trigrams_;  // distinct, ascending
    std::vector<std::uint64_t> begins_;    // of a trigram's places, and the end
    std::vector<std::uint32_t> places_;
    bool wide_ = false;
};

}  // namespace gputext
