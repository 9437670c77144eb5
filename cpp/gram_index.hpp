// cpp/gram_index.hpp - documents that may be within an edit rate of another one, by an index
//
// A document of the index is cut into k + 1 chunks, where k is the most edits that any pair of it
// with a document no longer than it may have. Each edit is counted for one chunk: that whose symbol
// it changes or removes, or before or inside which it inserts (at the document's end, the last
// one). So a chunk remains without an edit, occurs in the other document, and with it every gram
// (substring of q symbols) of that chunk. The index holds the rarest gram of each chunk; the other
// document is looked up by all its grams.
//
// The longer document of a pair is the one in the index. Its own length then bounds the edits:
// k = threshold * 2 * length. If the shorter one were in the index, k would have to allow for the
// longest partner, 1 / (1 - threshold) times as many, and the chunks would be shorter.
//
// Places: within k edits a gram's distance from the middle of its document changes by at most k / 2
// (cpp/gram_filter.hpp). The index's key is made of the gram and a block of places that is as wide
// as this reach to both sides, so two keys for each place find all grams within reach.
//
// Confirmation, by the pigeonring principle (Qin and Xiao, 2018): if k + 1 chunks in a ring have at
// most k edits, then from one of them on, for each m, it and its m - 1 successors have at most
// m - 1. This is the cycle lemma for the numbers of edits less 1, whose sum is negative. Such a
// chunk has no edit itself, so one of the hits is this chunk, aligned as the edits align it. Its
// successor has at most one edit, which leaves one half of the eight symbols behind the gram as it
// is, moved by at most 1: this is seen without a look at the document. From the chunk's begin on
// the furthest symbol that m - 1 edits reach must not lie before the end of the m-th chunk.
// Beyond the document's end the ring goes on with its begin, which is aligned with the other
// document's begin, and where all m - 1 edits are allowed.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cpp/execution.hpp"
#include "cpp/status.hpp"

namespace gputext {

/// A range of places in the order of length.
struct PlaceRange {
    std::size_t begin, end;
    std::size_t size() const { return end - begin; }
};

/// A folded document (cpp/gram_filter.hpp) where the order of length has put it.
struct PlacedDocument {
    const std::uint8_t* symbols;
    std::uint32_t size;
    std::uint32_t document;
};

/// A document's length in parts whose lengths differ by at most 1.
class Chunks {
public:
    Chunks(std::size_t length, std::size_t count)
        : count_(count), shortest_(length / count), longer_(length % count) {}

    std::size_t count() const { return count_; }
    std::size_t shortest() const { return shortest_; }
    /// Of a chunk, or for count() the document's end.
    std::size_t begin(std::size_t chunk) const {
        return chunk * shortest_ + (chunk < longer_ ? chunk : longer_);
    }

private:
    std::size_t count_, shortest_, longer_;
};

/// An index of the documents at a range of places.
class GramIndex {
public:
    static constexpr std::size_t shortest_gram = 2;
    static constexpr std::size_t longest_gram = 16;

    /// A gram of the index.
    struct Entry {
        std::uint32_t key;
        std::uint32_t column;  // place of the document in the order of length
        std::uint32_t at;      // half symbols from the left of the longest document
        std::uint32_t chunk : 31;
        std::uint32_t has_next : 1;
        std::uint64_t next;  // the eight symbols behind it, if this and the next chunk have as many
    };

    /// Scratch memory of a thread.
    struct Probe {
        struct Hit {
            const Entry* entry;
            std::uint32_t at;  // of the gram in the row
        };
        std::vector<std::uint8_t> symbols;
        std::vector<std::uint32_t> keys, places;
        std::vector<Hit> hits;
        std::vector<std::uint32_t> columns;
        std::uint64_t hit_count = 0;
    };

    /// The chunks of a document of the index.
    static Chunks chunks_of(std::size_t length, double threshold);

    /// How long the grams of an index of these documents may be; 0 if it cannot have any. `places`
    /// are all documents in the order of length.
    static std::size_t gram_length(std::span<const PlacedDocument> places, PlaceRange columns,
                                   double threshold);

    /// The bytes that an index of so many grams takes.
    static std::size_t bytes_of(std::size_t grams);

    /// `rows` are the documents that the index will be asked for. Memory: bytes_of the chunks, up
    /// to twice as much while it is made, and 8 MB at most for counts of grams.
    /// Requires a gram_length above 0. Error: cancelled.
    Status build(std::span<const PlacedDocument> places, PlaceRange columns, PlaceRange rows,
                 double threshold, Execution& execution);

    /// Number of entries that candidates() would look at.
    std::uint64_t count_hits(std::size_t row, std::size_t edits, Probe& probe) const;

    /// Columns after `row` and before `end`, ascending, each once, among them all that are within
    /// `edits` edits of the row; `edits` must suffice for all of them. None if stopped.
    std::span<const std::uint32_t> candidates(std::size_t row, std::size_t end, std::size_t edits,
                                              Probe& probe, Stop stop) const;

    /// For tests.
    std::span<const Entry> entries() const { return entries_; }
    std::size_t gram() const { return gram_; }

private:
    bool count_grams(PlaceRange rows, Stop stop);
    bool sort_entries(Stop stop);
    void choose_grams(std::size_t column, std::size_t first, Probe& probe);
    void make_keys(std::size_t row, std::size_t edits, Probe& probe) const;
    std::span<const Entry> entries_after(std::size_t row, std::uint32_t key) const;
    void confirm_hits(std::size_t row, Probe& probe) const;
    bool confirm(const PlacedDocument& row, std::size_t row_at, const Entry& entry) const;
    std::uint64_t hash(const std::uint8_t* symbols) const;
    void load(const PlacedDocument& document, std::vector<std::uint8_t>& symbols) const;
    const std::uint32_t* bucket(std::uint32_t key) const {
        return begins_.data() + (key >> (32 - bucket_bits_));
    }

    std::span<const PlacedDocument> places_;
    PlaceRange columns_{0, 0};
    double threshold_ = 0;
    std::size_t gram_ = 0;
    std::uint64_t mask_ = 0;  // for grams shorter than a word
    std::size_t longest_ = 0;
    std::size_t block_ = 1;  // width of a block of places in half symbols
    unsigned bucket_bits_ = 1, filter_bits_ = 1, count_bits_ = 1;
    std::vector<std::uint16_t> counts_;  // by hash, of a sample
    std::vector<Entry> entries_;         // by bucket
    std::vector<std::uint32_t> begins_;  // of buckets
    std::vector<std::uint64_t> filter_;  // a bit for each key that there is
};

}  // namespace gputext
