#include "cpp/documents/detail/exact_search.hpp"

#include <algorithm>
#include <bit>

#include "cpp/base/memory_budget.hpp"
#include "cpp/base/radix_sort.hpp"
#include "cpp/base/stoppable.hpp"
#include "cpp/documents/detail/count_filter.hpp"
#include "cpp/documents/detail/count_join.hpp"
#include "cpp/documents/detail/gram_filter.hpp"
#include "cpp/documents/detail/gram_index.hpp"
#include "cpp/documents/detail/lane_distance.hpp"
#include "cpp/documents/edit_distance.hpp"

namespace gputext {
namespace {

using Range = PlaceRange;
using Place = PlacedDocument;

/// Rows to be compared with a tile of columns.
struct Task {
    Range rows, columns;
    unsigned gram;  // length of the grams that are compared
};

class Search {
public:
    Search(const NearDuplicateParameters& parameters, const DistinctDocuments& documents,
           Execution& execution, ExactMethod method)
        : parameters_(parameters),
          documents_(documents),
          execution_(execution),
          method_(method),
          shared_(shared_features(parameters.simd)),
          budget_(parameters.memory_limit) {
        for (unsigned i = 0; i < execution.threads(); ++i) workers_.emplace_back(parameters.simd);
    }

    Status run(std::vector<NearPair>& pairs, ExactSearchCounts* counts) {
        GPUTEXT_TRY(folded_.fold(documents_.documents, documents_.lengths, execution_));
        if (!sort_by_length()) return Status::cancelled();
        Range columns{0, places_.size()};
        GPUTEXT_TRY(join_by_counts(columns));
        std::vector<Range> rest;
        GPUTEXT_TRY(join_by_index(columns.end, rest));
        GPUTEXT_TRY(count_long_documents(columns.end));
        const std::vector<Task> tasks = make_tasks(rest);
        execution_.begin_phase("comparing documents", tasks.size());
        GPUTEXT_TRY(execution_.parallel_for(tasks.size(), [&](std::size_t i, unsigned worker) {
            return run_task(tasks[i], workers_[worker]);
        }));
        pairs.clear();
        for (Worker& worker : workers_) {
            pairs.insert(pairs.end(), worker.found.begin(), worker.found.end());
            worker.found = {};
            if (counts == nullptr) continue;
            counts->comparable += worker.counts.comparable;
            counts->by_grams += worker.counts.by_grams;
            counts->hits += worker.probe.hits();
            counts->counted += worker.counts.counted;
            counts->confirmed += worker.counts.confirmed;
            counts->verified += worker.counts.verified;
        }
        return {};
    }

private:
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
    /// What a thread takes for the grams of the rows that it looks up together.
    static constexpr std::size_t kProbeBytes = std::size_t{20} << 20;
    static constexpr std::size_t kSampledRows = 1024;
    static constexpr std::size_t kLeastIndexBytes = std::size_t{1} << 24;
    /// Measured nanoseconds for a row's character: to walk along a tile, to choose it for an index,
    /// to look up its gram; and for an entry in that gram's bucket.
    static constexpr double kTileTime = 3.5, kBuildTime = 15, kProbeTime = 15, kEntryTime = 15;

    /// What a thread has of its own.
    struct Worker {
        explicit Worker(Simd simd) : tile(simd), lane_distance(simd) {}

        GramTile tile;
        GramIndex::Probe probe;
        std::vector<GramIndex::Query> queries;
        EditDistance edit_distance;
        LaneDistance lane_distance;
        std::vector<std::size_t> candidates;
        std::vector<std::uint32_t> rest;
        std::vector<Bytes> columns;
        std::vector<NearPair> found;
        std::size_t room = 0;  // pairs whose memory has been taken from the budget
        ExactSearchCounts counts;
    };

    /// False if stopped.
    bool sort_by_length() {
        std::vector<std::uint64_t> keys(documents_.size());
        for (std::size_t i = 0; i < keys.size(); ++i)
            keys[i] = std::uint64_t{documents_.lengths[i]} << 32 | i;
        if (!radix_sort(keys, execution_.stop())) return false;
        places_.resize(keys.size());
        for (std::size_t i = 0; i < keys.size(); ++i) {
            const auto document = static_cast<std::uint32_t>(keys[i]);
            const Bytes folded = folded_[document];
            places_[i] = {folded.data(), static_cast<std::uint32_t>(folded.size()), document};
        }
        return true;
    }

    std::size_t length(std::size_t place) const { return places_[place].size; }
    Bytes folded(std::size_t place) const { return {places_[place].symbols, places_[place].size}; }

    std::size_t most_edits(std::size_t a, std::size_t b) const {
        return most_edits_within(parameters_.threshold, length(a) + length(b));
    }

    /// Whether the lengths at two places, the second one no shorter, allow the rate. Whether one is
    /// too long changes once along the order, since a threshold is below 1.
    bool comparable(std::size_t shorter, std::size_t longer) const {
        return length(longer) - length(shorter) <= most_edits(shorter, longer);
    }

    /// The first row that is comparable with this column.
    std::size_t first_comparable(std::size_t column) const {
        Range range{0, column};
        while (range.size() > 0) {
            const std::size_t middle = range.begin + range.size() / 2;
            if (comparable(middle, column))
                range.end = middle;
            else
                range.begin = middle + 1;
        }
        return range.begin;
    }

    /// Finds the pairs whose longer document is a long one, and leaves the other documents in
    /// `columns`; none, and leaves all of them, where counts exclude too few pairs.
    Status join_by_counts(Range& columns) {
        const bool wanted =
            method_ == ExactMethod::counts ||
            (method_ == ExactMethod::estimated && parameters_.threshold <= kMostCountedThreshold);
        Range longs = columns;
        while (longs.begin < longs.end && length(longs.begin) < kLeastCounted) ++longs.begin;
        if (!wanted || longs.size() == 0) return {};
        const Range rows{first_comparable(longs.begin), longs.end};
        const std::size_t memory = parameters_.memory_limit / 4;
        // In smaller tiles, computing features again and again takes longer than grams do.
        if (memory < kLeastTile * sizeof(DocumentFeatures)) return {};
        std::vector<IndexPair> candidates;
        bool too_many = false;
        GPUTEXT_TRY(count(rows, memory, candidates, too_many));
        if (too_many) return {};
        execution_.begin_phase("verifying candidates", candidates.size());
        GPUTEXT_TRY(execution_.parallel_for(candidates.size(), [&](std::size_t i, unsigned worker) {
            // The documents were handed over in the order of length.
            const std::size_t row = rows.begin + candidates[i].first;
            const std::size_t column = rows.begin + candidates[i].second;
            if (column < longs.begin) return Status();
            ++workers_[worker].counts.counted;
            return verify(row, column, workers_[worker]);
        }));
        columns.end = longs.begin;
        return {};
    }

    /// The pairs of documents that their counts do not exclude, by their places among the rows.
    Status count(Range rows, std::size_t memory, std::vector<IndexPair>& candidates,
                 bool& too_many) {
        std::vector<Extent> extents(rows.size());
        std::vector<std::uint32_t> lengths(rows.size());
        for (std::size_t i = 0; i < rows.size(); ++i) {
            extents[i] = documents_.documents.extents[places_[rows.begin + i].document];
            lengths[i] = places_[rows.begin + i].size;
        }
        const std::uint64_t most =
            std::min<std::uint64_t>(kFewCounted + kCountedPerDocument * rows.size(),
                                    parameters_.memory_limit / 4 / kCountedBytes);
        const DocumentJoin join{parameters_.threshold, memory, parameters_.simd};
        return join_documents(
            join, {documents_.documents.bytes, extents, documents_.documents.characters}, lengths,
            execution_, candidates, most, &too_many);
    }

    /// Counts the characters and trigrams of long documents, up to the place `last`, for tiles.
    Status count_long_documents(std::size_t last) {
        if (parameters_.threshold > kMostFilteredThreshold) return {};
        std::size_t begin = last;
        while (begin > 0 && length(begin - 1) >= kLeastFiltered) --begin;
        if ((last - begin) * sizeof(DocumentFeatures) > parameters_.memory_limit / 4) return {};
        if (!stoppable_assign(features_, last - begin, {}, execution_.stop()))
            return Status::cancelled();
        features_begin_ = begin;
        execution_.begin_phase("counting characters", features_.size());
        return execution_.parallel_for(features_.size(), [&](std::size_t i, unsigned) {
            return features_[i].set(folded(features_begin_ + i), CharacterLengths::single_byte(),
                                    execution_.stop())
                       ? Status()
                       : Status::cancelled();
        });
    }

    /// Those of a tile's columns that their counts do not exclude from being near the row.
    GramTile::Mask may_be_near(std::size_t row, std::size_t tile_begin, GramTile::Mask mask) const {
        if (row < features_begin_ || row - features_begin_ >= features_.size()) return mask;
        for (std::size_t word = 0; word < mask.size(); ++word) {
            for (std::uint64_t bits = mask[word]; bits != 0; bits &= bits - 1) {
                const auto bit = static_cast<std::size_t>(std::countr_zero(bits));
                const std::size_t column = tile_begin + 64 * word + bit;
                if (!gputext::may_be_within(shared_, features_[row - features_begin_],
                                            features_[column - features_begin_], length(column),
                                            most_edits(row, column)))
                    mask[word] &= ~(std::uint64_t{1} << bit);
            }
        }
        return mask;
    }

    /// Finds the pairs whose longer document lies in a range where an index is faster than tiles.
    /// The other ranges, up to `last`, are added to `rest`, neighbouring ones as one.
    Status join_by_index(std::size_t last, std::vector<Range>& rest) {
        for (std::size_t begin = 0; begin < last;) {
            const Range columns{begin, std::min(last, end_of_class(begin))};
            begin = columns.end;
            bool joined = false;
            if (may_be_indexed(columns)) GPUTEXT_TRY(try_index(columns, joined));
            if (joined) continue;
            if (!rest.empty() && rest.back().end == columns.begin)
                rest.back().end = columns.end;
            else
                rest.push_back(columns);
        }
        return {};
    }

    /// Numbers of an index's grams have 32 bits.
    std::size_t index_bytes() const {
        return std::min(parameters_.memory_limit / 4, std::size_t{1} << 36);
    }

    /// Documents of about a length whose index fits into its memory, or one document.
    std::size_t end_of_class(std::size_t begin) const {
        const auto grams_of = [&](std::size_t place) {
            return GramIndex::count_chunks(length(place), parameters_.threshold);
        };
        std::size_t end = begin + 1;
        for (std::size_t grams = grams_of(begin);
             end < places_.size() && end - begin < GramIndex::most_columns &&
             length(end) <= length(begin) + length(begin) / 4 + 8;
             ++end) {
            grams += grams_of(end);
            if (GramIndex::bytes_of(grams) > index_bytes()) break;
        }
        return end;
    }

    bool may_be_indexed(Range columns) const {
        if (method_ == ExactMethod::tiles ||
            GramIndex::gram_length(places_, columns, parameters_.threshold) == 0)
            return false;
        return method_ == ExactMethod::index ||
               (columns.size() >= kLeastIndexed && index_bytes() >= kLeastIndexBytes &&
                index_may_be_faster(columns));
    }

    /// Some of the rows that are compared with the columns.
    std::vector<std::size_t> sample_rows(Range columns) const {
        const Range rows{first_comparable(columns.begin), columns.end};
        const std::size_t samples = std::min<std::size_t>(rows.size(), kSampledRows);
        std::vector<std::size_t> sample(samples);
        for (std::size_t i = 0; i < samples; ++i)
            sample[i] = rows.begin + rows.size() * i / samples;
        return sample;
    }

    /// Nanoseconds that tiles would take for a row.
    double tile_time(std::size_t row, Range columns) const {
        const std::size_t begin = std::max(row + 1, columns.begin);
        const std::size_t end = end_of_comparable(row, columns);
        if (begin >= end) return 0;
        const double tiles =
            1 + static_cast<double>(end - begin) / static_cast<double>(GramTile::most_columns);
        return static_cast<double>(length(row)) * tiles * kTileTime;
    }

    /// Whether tiles take longer than to make an index and to look up grams that it does not have.
    bool index_may_be_faster(Range columns) const {
        double by_tiles = 0, by_index = 0;
        for (const std::size_t row : sample_rows(columns)) {
            by_tiles += tile_time(row, columns);
            by_index += static_cast<double>(length(row)) * (kBuildTime + kProbeTime);
        }
        return by_index < by_tiles;
    }

    /// Whether tiles take longer than the entries that the index has.
    bool index_is_faster(const GramIndex& index, Range columns) {
        double by_tiles = 0, by_index = 0;
        for (const std::size_t row : sample_rows(columns)) {
            if (execution_.stop_requested()) return true;
            const std::size_t end = end_of_comparable(row, columns);
            if (std::max(row + 1, columns.begin) >= end) continue;
            by_tiles += tile_time(row, columns);
            const GramIndex::Query query = query_of(row, columns);
            const std::uint64_t entries =
                index.count_entries({&query, 1}, workers_.front().probe, execution_.stop());
            by_index += static_cast<double>(length(row)) * kProbeTime +
                        static_cast<double>(entries) * kEntryTime;
        }
        return by_index < by_tiles;
    }

    /// Whether an index found the range's pairs, or would take longer than tiles.
    Status try_index(Range columns, bool& joined) {
        const Range rows{first_comparable(columns.begin), columns.end};
        GramIndex index;
        GPUTEXT_TRY(index.build(places_, columns, rows, parameters_.threshold, execution_));
        joined = method_ == ExactMethod::index || index_is_faster(index, columns);
        if (!joined) return {};
        const std::vector<Range> parts = parts_of_rows(rows);
        execution_.begin_phase("comparing documents", parts.size());
        return execution_.parallel_for(parts.size(), [&](std::size_t i, unsigned worker) {
            return probe_rows(index, parts[i], columns, workers_[worker]);
        });
    }

    /// The end of the columns that are comparable with a row.
    std::size_t end_of_comparable(std::size_t row, Range columns) const {
        Range range{std::max(row + 1, columns.begin), columns.end};
        while (range.begin < range.end) {
            const std::size_t middle = range.begin + range.size() / 2;
            if (comparable(row, middle))
                range.begin = middle + 1;
            else
                range.end = middle;
        }
        return range.end;
    }

    GramIndex::Query query_of(std::size_t row, Range columns) const {
        const std::size_t end = end_of_comparable(row, columns);
        return {static_cast<std::uint32_t>(row), static_cast<std::uint32_t>(end),
                static_cast<std::uint32_t>(end > row ? most_edits(row, end - 1) : 0)};
    }

    /// Rows that are looked up together, and take a bounded part of the memory.
    std::vector<Range> parts_of_rows(Range rows) const {
        const std::size_t symbols =
            std::min(kProbeBytes, parameters_.memory_limit / 8 / execution_.threads()) /
            GramIndex::probe_bytes;
        std::vector<Range> parts;
        std::size_t taken = symbols;
        for (std::size_t row = rows.begin; row < rows.end; ++row) {
            taken += length(row);
            if (taken >= symbols || parts.back().size() == GramIndex::most_queries) {
                parts.push_back({row, row});
                taken = length(row);
            }
            ++parts.back().end;
        }
        return parts;
    }

    /// Verifies what the index finds for the rows.
    Status probe_rows(const GramIndex& index, Range rows, Range columns, Worker& worker) const {
        worker.queries.clear();
        for (std::size_t row = rows.begin; row < rows.end; ++row) {
            const GramIndex::Query query = query_of(row, columns);
            if (query.end > std::max(row + 1, columns.begin)) worker.queries.push_back(query);
        }
        return probe(index, worker.queries, worker);
    }

    Status probe(const GramIndex& index, std::span<const GramIndex::Query> queries,
                 Worker& worker) const {
        const auto candidates = index.candidates(queries, worker.probe, execution_.stop());
        if (execution_.stop_requested()) return Status::cancelled();
        if (!candidates) {
            const std::size_t half = queries.size() / 2;
            GPUTEXT_TRY(probe(index, queries.first(half), worker));
            return probe(index, queries.subspan(half), worker);
        }
        worker.counts.confirmed += candidates->size();
        for (const auto& [row, column] : *candidates) {
            if (execution_.stop_requested()) return Status::cancelled();
            GPUTEXT_TRY(verify(row, column, worker));
        }
        return {};
    }

    /// Tiles of documents of about a length, and rows enough to pay for a tile's table.
    std::vector<Task> make_tasks(std::span<const Range> ranges) {
        std::vector<Task> tasks;
        std::uint64_t work = 0;
        for (const Range& range : ranges) add_tiles(range, tasks, work);
        const std::size_t most_rows =
            std::max<std::size_t>(4096, work / (16 * execution_.threads()));
        std::vector<Task> parts;
        for (const Task& task : tasks) {
            const std::size_t count = (task.rows.size() + most_rows - 1) / most_rows;
            for (std::size_t i = 0; i < count; ++i)
                parts.push_back({{task.rows.begin + task.rows.size() * i / count,
                                  task.rows.begin + task.rows.size() * (i + 1) / count},
                                 task.columns,
                                 task.gram});
        }
        return parts;
    }

    void add_tiles(Range range, std::vector<Task>& tasks, std::uint64_t& work) {
        unsigned gram = GramTile::shortest_gram;
        std::size_t chosen_for = 0;  // characters
        for (std::size_t begin = range.begin; begin < range.end;) {
            std::size_t end = begin + 1;
            for (std::size_t characters = length(begin);
                 end < range.end && end - begin < GramTile::most_columns &&
                 length(end) <= length(begin) + length(begin) / 8 + 8;
                 ++end) {
                characters += length(end);
                if (characters > kTileCharacters) break;
            }
            Task task{{first_comparable(begin), end}, {begin, end}, gram};
            if (task.rows.size() == 1) {
                // A document that is comparable with no shorter one.
                begin = end;
                continue;
            }
            // Windows grow with the documents, and the grams that are rare in them.
            if (length(end - 1) > chosen_for + chosen_for / 2) {
                gram = task.gram = choose_gram(task, workers_.front());
                chosen_for = length(end - 1);
            }
            tasks.push_back(task);
            work += task.rows.size();
            begin = end;
        }
    }

    /// The gram length that tells the task's documents apart best, by a few of them.
    unsigned choose_gram(const Task& task, Worker& worker) const {
        const std::size_t longest = length(task.columns.end - 1);
        const std::size_t edits = most_edits_within(parameters_.threshold, 2 * longest);
        std::vector<Bytes> columns;
        const auto samples_of = [](Range range) { return std::min(kSamples, range.size()); };
        const std::size_t column_samples = samples_of(task.columns);
        for (std::size_t i = 0; i < column_samples; ++i)
            columns.push_back(
                folded(task.columns.begin + task.columns.size() * i / column_samples));
        const std::size_t row_samples = samples_of(task.rows);
        unsigned best = GramTile::shortest_gram;
        std::uint64_t best_sum = 0;
        for (unsigned gram = GramTile::shortest_gram; gram <= GramTile::longest_gram; ++gram) {
            if (!worker.tile.build(columns, gram, longest, edits, table_bytes(), execution_.stop()))
                return best;
            std::uint64_t sum = 0;
            for (std::size_t i = 0; i < row_samples; ++i)
                sum += worker.tile.sum_of_least_edits(
                    folded(task.rows.begin + task.rows.size() * i / row_samples),
                    execution_.stop());
            // Longer ones are worse still.
            if (sum <= best_sum) break;
            best_sum = sum;
            best = gram;
        }
        return best;
    }

    std::size_t table_bytes() const {
        return std::min<std::size_t>(std::size_t{1} << 24,
                                     parameters_.memory_limit / 2 / execution_.threads());
    }

    /// Rows lie anywhere in memory, and their ends are looked at first.
    void prefetch_end(std::size_t row) const {
        if (row >= places_.size()) return;
        const Place& place = places_[row];
        for (std::size_t back = 0; back < std::min<std::size_t>(place.size, 192); back += 64)
            __builtin_prefetch(place.symbols + place.size - 1 - back);
    }

    Status run_task(const Task& task, Worker& worker) const {
        const std::size_t longest = length(task.columns.end - 1);
        const std::size_t edits = most_edits_within(parameters_.threshold, 2 * longest);
        const unsigned gram = task.gram;
        worker.columns.clear();
        for (std::size_t c = task.columns.begin; c < task.columns.end; ++c)
            worker.columns.push_back(folded(c));
        if (!worker.tile.build(worker.columns, gram, longest, edits, table_bytes(),
                               execution_.stop()))
            return Status::cancelled();
        std::size_t end = task.columns.begin;
        for (std::size_t row = task.rows.begin; row < task.rows.end; ++row) {
            if (execution_.stop_requested()) return Status::cancelled();
            prefetch_end(row + 6);
            while (end < task.columns.end && (end <= row || comparable(row, end))) ++end;
            const Range columns{std::max(task.columns.begin, row + 1), end};
            if (columns.begin >= columns.end) continue;
            GPUTEXT_TRY(run_row(task, row, columns, worker));
        }
        return {};
    }

    static GramTile::Mask columns_below(std::size_t end) {
        GramTile::Mask mask{};
        for (std::size_t word = 0; word < mask.size() && 64 * word < end; ++word)
            mask[word] = end - 64 * word >= 64 ? ~std::uint64_t{0}
                                               : (std::uint64_t{1} << (end - 64 * word)) - 1;
        return mask;
    }

    Status run_row(const Task& task, std::size_t row, Range columns, Worker& worker) const {
        GramTile::Mask mask = columns_below(columns.end - task.columns.begin);
        const GramTile::Mask before = columns_below(columns.begin - task.columns.begin);
        for (std::size_t word = 0; word < mask.size(); ++word) mask[word] &= ~before[word];
        worker.counts.comparable += columns.size();
        mask = may_be_near(row, task.columns.begin, mask);
        if (std::ranges::all_of(mask, [](std::uint64_t word) { return word == 0; })) return {};
        mask = worker.tile.may_be_within(folded(row), most_edits(row, columns.end - 1), mask,
                                         execution_.stop());
        worker.candidates.clear();
        for (std::size_t word = 0; word < mask.size(); ++word)
            for (std::uint64_t bits = mask[word]; bits != 0; bits &= bits - 1)
                worker.candidates.push_back(64 * word +
                                            static_cast<std::size_t>(std::countr_zero(bits)));
        worker.counts.by_grams += worker.candidates.size();
        return compare(row, task.columns.begin, worker);
    }

    /// Of the row's candidates, columns of the tile, those that are near it.
    Status compare(std::size_t row, std::size_t tile_begin, Worker& worker) const {
        const std::span<const std::size_t> candidates = worker.candidates;
        const bool side_by_side = candidates.size() >= kFewCandidates && length(row) > 0 &&
                                  length(row) <= LaneDistance::longest_pattern;
        if (side_by_side) worker.lane_distance.set_pattern(folded(row));
        for (std::size_t begin = 0; begin < candidates.size();) {
            const std::size_t count = std::min(LaneDistance::lanes, candidates.size() - begin);
            const auto some = candidates.subspan(begin, count);
            begin += count;
            if (!side_by_side || count < kFewCandidates) {
                for (const std::size_t column : some) {
                    GPUTEXT_TRY(verify(row, tile_begin + column, worker));
                }
                continue;
            }
            GPUTEXT_TRY(compare_some(row, some, tile_begin, worker));
        }
        return {};
    }

    Status compare_some(std::size_t row, std::span<const std::size_t> columns,
                        std::size_t tile_begin, Worker& worker) const {
        const std::size_t steps =
            (length(row) + LaneDistance::rest_step - 1) / LaneDistance::rest_step + 1;
        worker.rest.assign(steps * LaneDistance::lanes, 0);
        std::array<LaneDistance::Text, LaneDistance::lanes> texts;
        for (std::size_t lane = 0; lane < columns.size(); ++lane) {
            const std::size_t column = tile_begin + columns[lane];
            texts[lane] = {folded(column), most_edits(row, column)};
            for (std::size_t step = 0; step < steps; ++step)
                worker.rest[step * LaneDistance::lanes + lane] = static_cast<std::uint32_t>(
                    worker.tile.least_edits_from(columns[lane], step * LaneDistance::rest_step));
        }
        const auto distances = worker.lane_distance(std::span(texts).first(columns.size()),
                                                    worker.rest, execution_.stop());
        if (execution_.stop_requested()) return Status::cancelled();
        for (std::size_t lane = 0; lane < columns.size(); ++lane) {
            if (distances[lane] == LaneDistance::far) continue;
            const std::size_t column = tile_begin + columns[lane];
            // The folded documents' distance is that of the documents, or a bound.
            const bool exact = folded_.is_narrow(places_[row].document) &&
                               folded_.is_narrow(places_[column].document);
            GPUTEXT_TRY(exact ? add(row, column, distances[lane], worker)
                              : verify(row, column, worker));
        }
        return {};
    }

    Status add(std::size_t row, std::size_t column, std::size_t distance, Worker& worker) const {
        if (worker.found.size() == worker.room) {
            GPUTEXT_TRY(budget_.take(kPairsAtOnce * kPairBytes, "the pairs"));
            worker.room += kPairsAtOnce;
        }
        const auto [first, second] = std::minmax(places_[row].document, places_[column].document);
        worker.found.push_back({first, second, edit_rate(distance, length(row) + length(column))});
        return {};
    }

    Status verify(std::size_t row, std::size_t column, Worker& worker) const {
        const std::size_t most = most_edits(row, column);
        const auto [first, second] = std::minmax(places_[row].document, places_[column].document);
        ++worker.counts.verified;
        const Result<std::size_t> distance =
            worker.edit_distance.of_texts(documents_.documents[first], documents_.documents[second],
                                          documents_.documents.characters, most, execution_.stop());
        if (!distance.ok()) return distance.status();
        if (*distance <= most) return add(row, column, *distance, worker);
        return {};
    }

    const NearDuplicateParameters& parameters_;
    const DistinctDocuments& documents_;
    Execution& execution_;
    const ExactMethod method_;
    const SharedFeatures shared_;
    mutable MemoryBudget budget_;
    FoldedDocuments folded_;
    std::vector<Place> places_;  // documents in the order of length
    std::size_t features_begin_ = 0;
    std::vector<DocumentFeatures> features_;  // of the places from features_begin_ on
    std::vector<Worker> workers_;
};

}  // namespace

Status find_exact_pairs(const NearDuplicateParameters& parameters,
                        const DistinctDocuments& documents, Execution& execution,
                        std::vector<NearPair>& pairs, ExactSearchCounts* counts,
                        ExactMethod method) {
    if (documents.size() == 0) return {};
    return Search(parameters, documents, execution, method).run(pairs, counts);
}

}  // namespace gputext
