// cpp/documents/detail/exact_search_methods.hpp - the exact search and its three methods
//
// A search puts the documents in the order of length, and compares each of them, a row, with those
// behind it, its columns. Between two sides the rows are the documents of one side and the columns
// those of the other one (cpp/documents/distinct_documents.hpp), each in the order of length;
// then a column may be shorter than its row. For each range of lengths the fastest method is
// estimated (exact_search_choice.cpp): counts, for long columns (exact_search_by_counts.cpp), an
// index (exact_search_by_index.cpp), or tiles (exact_search_by_tiles.cpp). All candidates are
// verified, and pairs added, in exact_search.cpp.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "cpp/base/memory_budget.hpp"
#include "cpp/documents/detail/count_filter.hpp"
#include "cpp/documents/distinct_documents.hpp"
#include "cpp/documents/detail/exact_search.hpp"
#include "cpp/documents/detail/gram_filter.hpp"
#include "cpp/documents/detail/gram_index.hpp"
#include "cpp/documents/detail/gram_set.hpp"
#include "cpp/documents/detail/index_pair.hpp"
#include "cpp/documents/detail/lane_distance.hpp"
#include "cpp/documents/detail/wanted_pairs.hpp"
#include "cpp/documents/edit_distance.hpp"

namespace gputext {

class ExactSearch {
public:
    ExactSearch(const NearDuplicateParameters& parameters, const DistinctDocuments& documents,
                const PairPart& part, Execution& execution, ExactMethod method, WantedPairs& wanted)
        : parameters_(parameters),
          documents_(documents),
          part_(part),
          execution_(execution),
          method_(method),
          wanted_(wanted),
          shared_(shared_features(parameters.simd)),
          budget_(parameters.memory_limit) {
        for (unsigned i = 0; i < execution.threads(); ++i) workers_.emplace_back(parameters.simd);
    }

    Status run(std::vector<NearPair>& pairs, ExactSearchCounts* counts);

private:
    using Range = PlaceRange;
    using Place = PlacedDocument;

    /// Rows to be compared with a tile of columns.
    struct Task {
        Range rows, columns;
        unsigned gram;  // length of the grams that are compared
    };

    static constexpr std::size_t kSamples = 12;
    /// What a pair takes until it is part of the answer.
    static constexpr std::size_t kPairBytes = 48;
    static constexpr std::size_t kPairsAtOnce = 256;
    /// Of a tile's documents together, or one document: what a thread takes while it makes a table.
    static constexpr std::size_t kTileCharacters = std::size_t{1} << 23;
    /// Fewer are faster compared one by one.
    static constexpr std::size_t kFewCandidates = 3;
    /// Documents whose features are computed together, at least.
    static constexpr std::size_t kLeastTile = 1024;
    /// Documents so long share so many grams that counts are worth a look before them, up to this
    /// threshold.
    static constexpr std::size_t kLeastFiltered = 4096;
    static constexpr double kMostFilteredThreshold = 0.12;
    /// Up to so many candidates of counts, and so many a document, are verified one by one.
    static constexpr std::uint64_t kFewCounted = 1 << 16, kCountedPerDocument = 8;
    /// What a candidate takes while candidates are sorted.
    static constexpr std::size_t kCountedBytes = 32;
    /// Candidates of counts that are verified between two looks at what their verification took.
    static constexpr std::size_t kVerifiedTogether = 1024;
    /// What a thread takes for the grams of the rows that it looks up together.
    static constexpr std::size_t kProbeBytes = std::size_t{20} << 20;
    static constexpr std::size_t kSampledRows = 1024, kSampledPairs = 128;
    /// Rows and columns: times of fewer are not worth an estimate, which looks at pairs.
    static constexpr std::size_t kLeastEstimated = 4096;
    static constexpr std::size_t kLeastIndexBytes = std::size_t{1} << 24;
    /// From so many columns on an index of one column in so many is tried before.
    static constexpr std::size_t kLeastTried = 4 * kLeastIndexed, kTriedPart = 8;
    /// Measured nanoseconds for a row's character: to walk along a tile, to look up its gram in an
    /// index, to count it; for a column's character: to choose it for an index; for an entry in a
    /// gram's bucket; and for a pair: to compare its classes of characters, its characters, its
    /// trigrams; and to verify it, for a character and a step of its band.
    static constexpr double kTileTime = 3.5, kProbeTime = 15, kFeatureTime = 3, kBuildTime = 15,
                            kEntryTime = 15, kClassesTime = 1, kCharactersTime = 25,
                            kTrigramsTime = 90, kVerifyTime = 5, kStepTime = 1;

    /// Ranges of columns by the method that joins them, neighbouring ones as one.
    struct Ranges {
        std::vector<Range> counted, tiled;
    };

    /// Nanoseconds that a range of columns takes.
    struct MethodTimes {
        double counts = std::numeric_limits<double>::infinity();
        double tiles = std::numeric_limits<double>::max();

        double otherwise() const { return std::min(counts, tiles); }
    };

    /// Features of the long documents, which are the last ones in the order of length.
    struct LongFeatures {
        std::size_t begin = 0;  // the first one's place
        std::vector<DocumentFeatures> documents;

        const DocumentFeatures* at(std::size_t place) const {
            const bool counted = place >= begin && place - begin < documents.size();
            return counted ? &documents[place - begin] : nullptr;
        }
    };

    /// What a thread has of its own.
    struct Worker {
        explicit Worker(Simd simd) : tile(simd), lane_distance(simd) {}

        GramTile tile;
        GramIndex::Probe probe;
        std::vector<GramIndex::Query> queries;
        GramSet grams;
        std::size_t grams_of = SIZE_MAX;  // a row
        EditDistance edit_distance;
        LaneDistance lane_distance;
        std::vector<std::size_t> candidates;
        std::vector<std::uint32_t> rest;
        std::vector<Bytes> columns;
        std::vector<NearPair> found;
        std::size_t room = 0;  // pairs whose memory has been taken from the budget
        // Of the pairs that were verified and are not near:
        std::uint64_t far_characters = 0, far_steps = 0;
        ExactSearchCounts counts;
    };

    bool between_sides() const { return !documents_.sides.empty(); }

    std::size_t row_length(std::size_t row) const { return rows_[row].size; }
    std::size_t length(std::size_t column) const { return columns_[column].size; }

    /// Whether the part has the row's pairs.
    bool is_row(std::size_t row) const {
        return part_rows_.empty() || part_rows_[rows_[row].document] != 0;
    }

    static Bytes folded(const Place& place) { return {place.symbols, place.size}; }

    std::size_t most_edits(std::size_t row, std::size_t column) const {
        return most_edits_within(parameters_.threshold, row_length(row) + length(column));
    }

    /// Whether a document is too long to be near another one. This changes once along the order of
    /// length, since a threshold is below 1.
    bool too_long(std::size_t longer, std::size_t shorter) const {
        return longer > shorter &&
               longer - shorter > most_edits_within(parameters_.threshold, longer + shorter);
    }

    /// The rows that may be near some of these columns, at least one, and perhaps some that may
    /// not.
    Range rows_beside(Range columns) const;
    /// Those of the columns whose pair with the row is looked at and whose length allows the rate.
    Range columns_beside(std::size_t row, Range columns) const;
    /// Whether it is a pair, and wanted at this moment.
    bool are_pair(std::size_t row, std::size_t column) const {
        const std::uint32_t first = rows_[row].document, second = columns_[column].document;
        return gputext::are_pair(documents_.sides, first, second) && wanted_.wants(first, second);
    }

    /// False if stopped.
    bool sort_by_length();
    /// The documents on the side, or all without one, in the order of length. False if stopped.
    bool sort_side(std::uint8_t side, std::vector<Place>& places) const;
    Status add(std::size_t row, std::size_t column, std::size_t distance, Worker& worker) const;
    Status verify(std::size_t row, std::size_t column, Worker& worker) const;

    // The choice of a method.

    /// The first column that is long enough for counts, if these are wanted; else behind all.
    std::size_t begin_of_counted() const;
    /// Finds the pairs whose column lies in a range where an index is faster, and adds the other
    /// ranges to `ranges`; to those for counts only columns from `counted` on.
    Status choose(Range all, std::size_t counted, Ranges& ranges);
    /// Documents of about a length whose index fits into its memory, or one document.
    std::size_t end_of_class(std::size_t begin, std::size_t last) const;
    /// Some of the rows that are compared with the columns.
    std::vector<std::size_t> sample_rows(Range columns, std::size_t most) const;
    /// Over all rows beside the columns, from some of them.
    double sum_over_rows(Range columns, const std::function<double(std::size_t)>& of_row) const;
    Status estimate(Range columns, bool countable, MethodTimes& times) const;
    /// Nanoseconds that counts take for a pair, on average.
    Status sample_pair_time(Range columns, double& time) const;
    /// Nanoseconds that tiles would take for a row.
    double tile_time(std::size_t row, Range columns) const;
    /// Whether an index is possible, and may take less than `otherwise`.
    Status may_be_indexed(Range columns, double otherwise, bool& wanted);
    /// Nanoseconds to make an index of the columns, to look up the rows' grams that it does not
    /// have, and for the entries of those that it has.
    double build_time(Range columns) const;
    double look_up_time(Range columns) const;
    double entry_time(const GramIndex& index, Range columns);

    // By counts.

    /// Bytes of features at once.
    std::size_t count_bytes() const;
    /// Finds the pairs whose column is one of these; none where counts exclude too few pairs, or
    /// leave pairs that it takes too long to verify.
    Status join_by_counts(Range columns, bool& too_many);
    /// Verifies candidates among these. Ends early where those that are not near took longer than
    /// tiles would in all, and most candidates are left.
    Status verify_counted(std::span<const IndexPair> candidates, Range rows, Range columns,
                          bool& too_many);
    /// Nanoseconds that pairs took that were verified and are not near. By what was counted, and
    /// not by a clock: a search does the same on a busy machine.
    double far_time() const;
    /// The pairs of documents that their counts do not exclude, by their places among the rows,
    /// between two sides followed by the columns.
    Status count(Range rows, Range columns, std::vector<IndexPair>& candidates, bool& too_many);
    /// Whether the column has more grams that the row lacks than a near one may have.
    bool lacks_grams(std::size_t row, std::size_t column, Worker& worker) const;
    /// Counts the characters and trigrams of long documents, for tiles of these columns.
    Status count_long_documents(std::span<const Range> tiled);
    /// The first place of a document of at least this length.
    static std::size_t begin_of(std::size_t length, std::span<const Place> places);
    Status count_long(std::span<const Place> places, LongFeatures& features) const;
    /// Those of a tile's columns that their counts do not exclude from being near the row.
    GramTile::Mask may_be_near(std::size_t row, std::size_t tile_begin, GramTile::Mask mask) const;

    // By an index.

    /// Numbers of an index's grams have 32 bits.
    std::size_t index_bytes() const;
    ProbeRows probe_rows_beside(Range columns) const {
        return {rows_, rows_beside(columns), between_sides()};
    }
    /// Whether an index found the columns' pairs, or would take longer than `otherwise`.
    Status try_index(Range columns, double otherwise, bool& joined);
    /// `columns` are those beside the row.
    GramIndex::Query query_of(std::size_t row, Range columns) const;
    /// Rows that are looked up together, and take a bounded part of the memory.
    std::vector<Range> parts_of_rows(Range rows) const;
    /// Verifies what the index finds for the rows.
    Status probe_rows(const GramIndex& index, Range rows, Range columns, Worker& worker) const;
    Status probe(const GramIndex& index, std::span<const GramIndex::Query> queries,
                 Worker& worker) const;

    // By tiles.

    /// Tiles of documents of about a length, and rows enough to pay for a tile's table.
    std::vector<Task> make_tasks(std::span<const Range> ranges);
    void add_tiles(Range range, std::vector<Task>& tasks, std::uint64_t& work);
    /// The gram length that tells the task's documents apart best, by a few of them.
    unsigned choose_gram(const Task& task, Worker& worker) const;
    std::size_t longest_of(const Task& task) const;
    std::size_t table_bytes() const;
    /// Rows lie anywhere in memory, and their ends are looked at first.
    void prefetch_end(std::size_t row) const;
    Status run_task(const Task& task, Worker& worker) const;
    static GramTile::Mask columns_below(std::size_t end);
    Status run_row(const Task& task, std::size_t row, Range columns, Worker& worker) const;
    /// Of the row's candidates, columns of the tile, those that are near it.
    Status compare(std::size_t row, std::size_t tile_begin, Worker& worker) const;
    /// Those whose pair with the row is not wanted any more.
    void leave_out_unwanted(std::size_t row, std::size_t tile_begin,
                            std::vector<std::size_t>& columns) const;
    Status compare_some(std::size_t row, std::span<const std::size_t> columns,
                        std::size_t tile_begin, Worker& worker) const;

    const NearDuplicateParameters& parameters_;
    const DistinctDocuments& documents_;
    const PairPart& part_;
    Execution& execution_;
    const ExactMethod method_;
    WantedPairs& wanted_;
    const SharedFeatures shared_;
    mutable MemoryBudget budget_;
    FoldedDocuments folded_;
    std::vector<std::uint8_t> part_rows_;  // by document: whether it is a row of the part; or none
    std::vector<Place> columns_, other_rows_;     // the latter between two sides
    std::span<const Place> rows_;                 // these, or the columns
    LongFeatures features_, other_row_features_;  // of columns, and the same
    std::vector<Worker> workers_;
};

}  // namespace gputext
