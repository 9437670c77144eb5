// cpp/documents/detail/gram_index.hpp - documents that may be within an edit rate of another one,
// by an index
//
// A document of the index is cut into k + 1 chunks, where k is the most edits that any pair of it
// with a document no longer than it may have. Each edit is counted for one chunk: that whose symbol
// it changes or removes, or before or inside which it inserts (at the document's end, the last
// one). So a chunk remains without an edit, occurs in the other document, and with it every gram
// (substring of q symbols) of that chunk. The index holds a gram of each chunk; the other document
// is looked up by all its grams.
//
// Each chunk begins with its gram, but the first one, which begins with the document. Any k + 1
// grams that do not overlap give such chunks. A dynamic program chooses the grams with the fewest
// occurrences in all, by counts in a sample: the sum is about the number of entries that will be
// looked at.
//
// Among the documents of one set the longer document of a pair is the one in the index. Its own
// length then bounds the edits: k = threshold * 2 * length. Between two sets the documents of one
// of them are in the index, and k has to allow for the longest partner, 1 / (1 - threshold) times
// as many, so that the chunks are shorter.
//
// Places: within k edits a gram's distance from the middle of its document changes by at most k / 2
// (cpp/documents/detail/gram_filter.hpp). The index's key is made of the gram and a block of places
// that is three times as wide as this reach to both sides, so one or two keys for each place find
// all grams within reach.
//
// Many documents are looked up together. Their keys are sorted by parts of the index first, so that
// the processor's caches hold the part at work; without this most of the time goes into reading
// memory. An entry takes eight bytes.
//
// Confirmation, by the pigeonring principle (Qin and Xiao, 2018): if k + 1 chunks in a ring have at
// most k edits, then from one of them on, for each m, it and its m - 1 successors have at most
// m - 1. This is the cycle lemma for the numbers of edits less 1, whose sum is negative. Such a
// chunk has no edit itself, so one of the hits is this chunk, aligned as the edits align it. Its
// successor has at most one edit, which leaves one half of the eight symbols behind the gram as it
// is, moved by at most 1: hashes in the entry tell this without a look at the document. From the
// chunk's begin on the furthest symbol that m - 1 edits reach must not lie before the end of the
// m-th chunk. Beyond the document's end the ring goes on with its begin, which is aligned with the
// other document's begin, and where all m - 1 edits are allowed.

#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "cpp/base/characters.hpp"
#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"

namespace gputext {

/// A range of places in the order of length.
struct PlaceRange {
    std::size_t begin, end;
    std::size_t size() const { return end - begin; }
};

/// A folded document (cpp/documents/detail/gram_filter.hpp) where the order of length has put it.
struct PlacedDocument {
    const std::uint8_t* symbols;
    std::uint32_t size;
    std::uint32_t document;
};

/// Documents that an index is asked for.
struct ProbeRows {
    std::span<const PlacedDocument> places;  // all of them, in the order of length
    PlaceRange range;
    bool may_be_longer;  // than the documents of the index that they are compared with
};

/// A document of the index in parts that begin with their grams, but the first one.
class Chunks {
public:
    Chunks(std::span<const std::uint16_t> grams, std::size_t size) : grams_(grams), size_(size) {}

    std::size_t count() const { return grams_.size(); }
    /// Where a chunk's gram begins.
    std::size_t gram(std::size_t chunk) const { return grams_[chunk]; }
    /// Where a chunk begins; for count() the document's end.
    std::size_t begin(std::size_t chunk) const {
        if (chunk == 0) return 0;
        return chunk == count() ? size_ : grams_[chunk];
    }

private:
    std::span<const std::uint16_t> grams_;
    std::size_t size_;
};

/// An index of the documents at a range of places.
class GramIndex {
public:
    static constexpr std::size_t shortest_gram = 2;
    static constexpr std::size_t longest_gram = 12;
    static constexpr std::size_t longest_document = std::size_t{1} << 16;

    /// A gram of the index, in two words.
    class Entry {
    public:
        static constexpr unsigned column_bits = 20;

        Entry() = default;
        Entry(std::uint32_t key, std::size_t column, std::size_t at)
            : column_(first_word(key, column)), at_(static_cast<std::uint32_t>(at)) {}

        /// The column's number, counted from the index's first one.
        std::size_t column() const { return column_ & ((1u << column_bits) - 1); }
        /// Half symbols from the left of the longest document.
        std::uint32_t at() const { return at_ & ((1u << place_bits) - 1); }

        static std::uint32_t first_word(std::uint32_t key, std::size_t column) {
            return key << column_bits | static_cast<std::uint32_t>(column);
        }
        /// Whether the key's last bits are those of `first`, a first word, and the column is one
        /// of `columns` from that of `first` on.
        bool is_among(std::uint32_t first, std::uint32_t columns) const {
            return column_ - first < columns;
        }
        bool is_near(std::size_t at, std::size_t edits) const {
            return this->at() + edits >= at && this->at() <= at + edits;
        }

        /// The eight symbols behind the gram, if this and the next chunk have as many.
        void set_next(std::uint64_t symbols);
        /// Whether at most one edit may lead from them to the symbols from `row` on, of which nine
        /// are read.
        bool is_near_next(const std::uint8_t* row) const;

    private:
        static constexpr unsigned place_bits = 17;
        static constexpr unsigned next_bits = 7;

        static std::uint32_t hash_next(std::uint32_t symbols) {
            return symbols * 0x9e3779b1u >> (32 - next_bits);
        }

        std::uint32_t column_;  // above it the key's last bits
        std::uint32_t at_;      // above it hashes of the symbols' halves, and whether there are any
    };
    static constexpr std::size_t most_columns = std::size_t{1} << Entry::column_bits;

    /// A row that is looked up, for the columns from `begin` to `end` that are within `edits`
    /// edits; `edits` must suffice for all of them.
    struct Query {
        std::uint32_t row, begin, end;
        std::uint32_t edits;
    };

    /// Rows with their candidates' columns.
    struct Candidate {
        std::uint32_t row, column;
        auto operator<=>(const Candidate&) const = default;
    };

    /// Scratch memory of a thread.
    class Probe {
    public:
        /// Grams in common that were found until now.
        std::uint64_t hits() const { return hit_count_; }

    private:
        friend class GramIndex;
        /// A gram of a query, for one block of places.
        struct Key {
            std::uint32_t key;
            std::uint16_t query;
            std::uint16_t at;  // symbols from the row's begin
        };
        struct Hit {
            std::uint32_t slot;  // of the entry
            std::uint16_t query;
            std::uint16_t at;
        };

        void sort_candidates();
        const std::uint8_t* symbols_of(std::size_t query) const {
            return symbols_.data() + begins_[query];
        }

        std::vector<std::uint8_t> symbols_;  // of all queries
        std::vector<std::size_t> begins_;    // of queries in symbols_
        std::vector<Key> keys_, sorted_;
        std::size_t key_count_ = 0;
        std::vector<std::uint32_t> ends_;  // of parts in sorted_
        std::vector<Hit> hits_;
        std::vector<Candidate> candidates_;
        std::size_t most_candidates_ = 0;           // until they are sorted, and copies removed
        std::size_t scanned_ = 0;                   // entries since the last look at a stop request
        std::vector<std::uint16_t> counts_, sums_;  // to choose grams
        std::uint64_t hit_count_ = 0;
    };

    /// How many chunks a document of the index has, if rows may be longer than it or not.
    static std::size_t count_chunks(std::size_t length, double threshold, bool longer_rows);

    /// How long the grams of an index of these documents are; 0 if it cannot have any. `places`
    /// are all documents in the order of length.
    static std::size_t gram_length(std::span<const PlacedDocument> places, PlaceRange columns,
                                   const ProbeRows& rows, double threshold);

    /// The bytes that an index of so many grams takes, beside 2 MB at most for counts of grams
    /// while it is made.
    static std::size_t bytes_of(std::size_t grams);

    /// Requires a gram_length above 0. Error: cancelled.
    Status build(std::span<const PlacedDocument> places, PlaceRange columns, const ProbeRows& rows,
                 double threshold, Execution& execution);

    /// The most queries that are looked up together, and the scratch memory that a symbol of
    /// theirs takes.
    static constexpr std::size_t most_queries = 4096;
    static constexpr std::size_t probe_bytes = 1 + 4 * sizeof(std::uint64_t);

    /// Number of entries that candidates() would look at. None if stopped.
    std::uint64_t count_entries(std::span<const Query> queries, Probe& probe, Stop stop) const;

    /// All candidates of the queries, ascending, each once. Nothing if stopped, or if they are too
    /// many to be kept for several queries.
    std::optional<std::span<const Candidate>> candidates(std::span<const Query> queries,
                                                         Probe& probe, Stop stop) const;

    /// For tests.
    std::span<const Entry> entries() const { return {entries_.get(), grams_.size()}; }
    Chunks chunks(std::size_t column) const;
    std::size_t gram() const { return gram_; }

private:
    bool count_grams(Stop stop);
    std::uint8_t& count_of(std::uint64_t hash);
    void choose_grams(std::size_t column, std::span<std::uint32_t> keys, Probe& probe);
    void choose_part(PlaceRange symbols, std::span<std::uint16_t> grams, Probe& probe) const;
    bool count_part(std::uint32_t part, std::span<const std::uint32_t> keys, Stop stop);
    bool fill_part(std::uint32_t part, std::span<const std::uint32_t> keys, Stop stop);
    Status sort_entries(std::span<const std::uint32_t> keys, Execution& execution);
    std::uint32_t part_of(std::uint32_t key) const {
        return part_bits_ == 0 ? 0 : key >> (32 - part_bits_);
    }
    Entry entry_of(std::uint32_t key, std::size_t column, std::size_t chunk) const;
    void load_queries(std::span<const Query> queries, Probe& probe) const;
    bool make_keys(std::span<const Query> queries, Probe& probe, Stop stop) const;
    void add_keys(const Query& query, std::uint16_t number, Probe& probe) const;
    void sort_keys(Probe& probe) const;
    std::span<const Probe::Key> keys_that_exist(std::span<Probe::Key> keys) const;
    bool look_up(std::span<const Query> queries, std::span<const Probe::Key> keys, Probe& probe,
                 Stop stop) const;
    bool confirm_hits(std::span<const Query> queries, Probe& probe) const;
    bool confirm(Bytes row, std::size_t row_at, std::uint32_t slot) const;
    std::uint64_t hash(const std::uint8_t* symbols) const;
    void load(const PlacedDocument& document, std::vector<std::uint8_t>& symbols) const;
    const std::uint32_t* bucket(std::uint32_t key) const {
        return begins_.data() + (key >> (32 - bucket_bits_));
    }

    std::span<const PlacedDocument> places_;
    ProbeRows rows_{};
    PlaceRange columns_{0, 0};
    double threshold_ = 0;
    std::size_t gram_ = 0;
    std::uint64_t mask_ = 0;  // for grams shorter than a word
    std::size_t longest_ = 0;
    std::size_t block_ = 1;  // width of a block of places in half symbols
    unsigned bucket_bits_ = 1, filter_bits_ = 1, probe_bits_ = 0, part_bits_ = 0, count_bits_ = 1;
    std::vector<std::uint8_t> counts_;          // by hash, of a sample
    std::vector<std::uint32_t> firsts_;         // of columns in grams_
    std::vector<std::uint16_t> grams_;          // begins of grams in their documents
    std::unique_ptr<Entry[]> entries_;          // by bucket
    std::unique_ptr<std::uint32_t[]> numbers_;  // of the entries' grams in grams_
    std::vector<std::uint32_t> begins_;         // of buckets
    std::vector<std::uint64_t> filter_;         // bits for each key that there is
};

}  // namespace gputext
