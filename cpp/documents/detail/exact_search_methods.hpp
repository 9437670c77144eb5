// cpp/documents/detail/exact_search_methods.hpp - the three methods of the exact search
//
// Each method finds the pairs whose column lies in a range of columns: by counts of characters and
// trigrams, by an index of grams, or by tiles. It estimates how many seconds of one thread this
// takes, from measured times of its steps, and joins the range. All candidates are verified by the
// search space, so all methods find the same pairs.

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cpp/documents/detail/candidate_pairs.hpp"
#include "cpp/documents/detail/count_filter.hpp"
#include "cpp/documents/detail/exact_search.hpp"
#include "cpp/documents/detail/exact_search_space.hpp"
#include "cpp/documents/detail/gram_filter.hpp"
#include "cpp/documents/detail/gram_index.hpp"
#include "cpp/documents/detail/gram_set.hpp"
#include "cpp/documents/detail/lane_distance.hpp"

namespace gputext {

/// Counts of characters and trigrams of documents at a range of places.
struct PlaceFeatures {
    std::size_t begin = 0;  // the first one's place
    std::vector<DocumentFeatures> documents;
    CharacterClasses classes;

    /// Null for a place without counts.
    const DocumentFeatures* at(std::size_t place) const {
        const bool counted = place >= begin && place - begin < documents.size();
        return counted ? &documents[place - begin] : nullptr;
    }

    /// O(characters). Errors: cancelled, out_of_memory.
    Status count(const SearchSpace& space, std::span<const PlacedDocument> places,
                 PlaceRange range);
};

/// Compares the characters and trigrams that documents have in common, all pairs one by one: for
/// long documents and low thresholds, where these exclude nearly all pairs. Filters, in this order:
/// lengths; characters in common, by classes, then by themselves; trigrams in common
/// (cpp/documents/detail/count_filter.hpp). Time: O(characters) for each tile of documents, 16 word
/// operations for each pair of compatible length, 256 to 4352 byte operations for each of the few
/// that their classes do not exclude. Memory: at most a fourth of the limit for counts, 5 KB a
/// document in two tiles at a time, and as much for candidates.
class CountsMethod {
public:
    explicit CountsMethod(SearchSpace& space)
        : space_(space),
          filter_(class_filter(space.parameters.simd)),
          shared_(shared_features(space.parameters.simd)),
          workers_(space.execution.threads()) {}

    /// Whether memory suffices for tiles that pay.
    bool has_room() const;
    /// Estimates from a sample of pairs. Errors: cancelled, out_of_memory.
    Status seconds(PlaceRange columns, double& seconds);
    /// Leaves the range without pairs, and `joined` false, where counts exclude too few pairs, or
    /// where verifying the pairs that are not near has taken more than `limit` seconds and most
    /// candidates are left. Errors: cancelled, memory_limit, out_of_memory.
    Status join(PlaceRange columns, double limit, bool& joined);

    void add_to(ExactSearchCounts& counts) const;

private:
    struct Worker {
        GramSet grams;
        std::size_t grams_of = SIZE_MAX;  // a row
        std::uint64_t counted = 0;
    };

    std::size_t memory() const { return space_.parameters.memory_limit / 4; }
    /// The pairs that counts do not exclude, in the order of rows.
    Status find_candidates(PlaceRange rows, PlaceRange columns, std::vector<IndexPair>& candidates,
                           bool& too_many);
    Status join_tile(PlaceRange rows, PlaceRange columns, const PlaceFeatures& row_features,
                     const PlaceFeatures& column_features, PairLists& found,
                     std::atomic<bool>& too_many);
    /// At least as many as the threshold allows documents of these lengths, without its divisions.
    std::size_t enough_edits(std::size_t length, std::size_t other) const;
    /// The fewest characters that a row shares with any of the columns that it is near: with one
    /// that is as long, or nearly.
    std::size_t least_shared(std::size_t row, PlaceRange columns) const;
    Status verify(std::span<const IndexPair> candidates, double limit, bool& too_many);
    /// Whether the column has more grams that the row lacks than a near one may have.
    bool lacks_grams(std::size_t row, std::size_t column, Worker& worker) const;

    SearchSpace& space_;
    ClassFilter filter_;
    SharedFeatures shared_;
    std::vector<Worker> workers_;
};

/// Looks rows up in an index of the columns' grams (cpp/documents/detail/gram_index.hpp). Time:
/// linear in the characters, and in the number of rare grams that two documents have in common at
/// about the same place. Memory: at most a fourth of the limit for the index, and an eighth for
/// what is looked up in it at once.
class IndexMethod {
public:
    /// With `always`, wherever documents are long enough for an index, whatever it takes.
    IndexMethod(SearchSpace& space, bool always)
        : space_(space), always_(always), workers_(space.execution.threads()) {}

    /// The end of a range of documents of about a length whose index fits into its memory, or of
    /// one document.
    std::size_t end_of_range(std::size_t begin, std::size_t last) const;
    /// To make the index and to look up the rows' grams, but for the entries that are found: these
    /// are only known once there is an index.
    double seconds(PlaceRange columns) const;
    /// Leaves the range without pairs, and `joined` false, where an index is impossible or would
    /// take `limit` seconds or more. Errors: cancelled, memory_limit, out_of_memory.
    Status join(PlaceRange columns, double limit, bool& joined);

    void add_to(ExactSearchCounts& counts) const;

private:
    struct Worker {
        GramIndex::Probe probe;
        std::vector<GramIndex::Query> queries;
        std::uint64_t confirmed = 0;
    };

    std::size_t memory() const;
    double look_up_seconds(PlaceRange columns) const;
    /// For the entries that rows find in the index.
    double entry_seconds(const GramIndex& index, PlaceRange columns);
    /// Whether an index is possible and worth being made.
    Status is_worth_making(PlaceRange columns, double limit, bool& worth);
    Status build(PlaceRange columns, GramIndex& index);
    /// `columns` are those beside the row.
    GramIndex::Query query_of(std::size_t row, PlaceRange columns) const;
    /// Rows that are looked up together, and take a bounded part of the memory.
    std::vector<PlaceRange> parts_of_rows(PlaceRange rows) const;
    /// Verifies what the index finds for the rows.
    Status probe_rows(const GramIndex& index, PlaceRange rows, PlaceRange columns, unsigned worker);
    Status probe(const GramIndex& index, std::span<const GramIndex::Query> queries,
                 unsigned worker);

    SearchSpace& space_;
    const bool always_;
    std::vector<Worker> workers_;
};

/// Compares each row with up to 512 columns at once, by the places of their grams
/// (cpp/documents/detail/gram_filter.hpp). Time: about 3 operations of 512 bits for each character
/// of a row and each tile of comparable length, fewer where all columns are told apart soon.
/// Memory: a table of up to 16 MB a thread.
class TilesMethod {
public:
    explicit TilesMethod(SearchSpace& space);

    double seconds(PlaceRange columns) const;
    /// Errors: cancelled, memory_limit, out_of_memory.
    Status join(std::span<const PlaceRange> ranges);

    void add_to(ExactSearchCounts& counts) const;

private:
    /// Rows to be compared with a tile of columns.
    struct Task {
        PlaceRange rows, columns;
        unsigned gram;  // length of the grams that are compared
    };

    struct Worker {
        explicit Worker(Simd simd) : tile(simd), lane_distance(simd) {}

        GramTile tile;
        LaneDistance lane_distance;
        std::vector<Bytes> columns;
        std::vector<std::size_t> candidates;  // columns of the tile
        std::vector<std::uint32_t> rest;
        std::uint64_t comparable = 0, by_grams = 0;
    };

    /// Counts the characters and trigrams of long documents, up to the end of the ranges.
    Status count_long_documents(std::span<const PlaceRange> ranges);
    /// Of the columns in the mask, those that counts do not exclude.
    GramTile::Mask may_be_near(std::size_t row, std::size_t tile_begin, GramTile::Mask mask) const;
    /// Tiles of documents of about a length, and rows enough to pay for a tile's table.
    std::vector<Task> make_tasks(std::span<const PlaceRange> ranges);
    void add_tiles(PlaceRange range, std::vector<Task>& tasks, std::uint64_t& work);
    /// The gram length that tells the task's documents apart best, by a few of them.
    unsigned choose_gram(const Task& task);
    /// Makes the worker's table of some documents for grams of a length. False if stopped.
    bool build(std::span<const Bytes> columns, const Task& task, unsigned gram, Worker& worker);
    /// Rows lie anywhere in memory, and their ends are looked at first.
    void prefetch_end(std::size_t row) const;
    Status run_task(const Task& task, unsigned worker);
    Status run_row(const Task& task, std::size_t row, PlaceRange columns, unsigned worker);
    /// Of the worker's candidates for the row, those that are near it.
    Status compare(std::size_t row, std::size_t tile_begin, unsigned worker);
    Status compare_some(std::size_t row, std::span<const std::size_t> columns,
                        std::size_t tile_begin, unsigned worker);

    SearchSpace& space_;
    const SharedFeatures shared_;
    PlaceFeatures row_features_, column_features_;  // of long documents; the former between sides
    std::vector<Worker> workers_;
};

}  // namespace gputext
