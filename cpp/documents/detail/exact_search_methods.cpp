#include "cpp/documents/detail/exact_search_methods.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "cpp/base/stoppable.hpp"

namespace gputext {
namespace {

/// Measured seconds for a row's character: to walk along a tile, to look up its gram in an index,
/// to count it; for a column's character: to choose it for an index; for an entry in a gram's
/// bucket; and for a pair: to compare its classes of characters, its characters, its trigrams.
constexpr double kTileTime = 3.5e-9, kProbeTime = 15e-9, kFeatureTime = 3e-9, kBuildTime = 15e-9,
                 kEntryTime = 15e-9, kClassesTime = 1e-9, kCharactersTime = 25e-9,
                 kTrigramsTime = 90e-9;

// By counts.

/// With less memory, computing features again and again takes longer than tiles of grams do.
constexpr std::size_t kLeastTile = 1024;  // documents
/// With more candidates than this, plus this many a document, the range is left to another method.
constexpr std::uint64_t kFewCandidates = 1 << 16, kCandidatesPerDocument = 8;
/// What a candidate takes while candidates are sorted.
constexpr std::size_t kCandidateBytes = 32;
/// Candidates that are verified between two looks at what their verification took.
constexpr std::size_t kVerifiedTogether = 1024;
constexpr std::size_t kSampledPairs = 128;

// By an index.

constexpr std::size_t kLeastIndexBytes = std::size_t{1} << 24;
/// From so many columns on an index of one column in so many is tried first.
constexpr std::size_t kLeastTried = 4 * kLeastIndexed, kTriedPart = 8;
/// What a thread takes for the grams of the rows that it looks up together.
constexpr std::size_t kProbeBytes = std::size_t{20} << 20;

// By tiles.

constexpr std::size_t kSamples = 12;  // of a tile's columns, and of its rows
/// Of a tile's documents together, or one document: what a thread takes while it makes a table.
constexpr std::size_t kTileCharacters = std::size_t{1} << 23;
/// Fewer candidates are faster compared one by one.
constexpr std::size_t kLeastInLanes = 3;
/// Documents from this length on, in characters, share so many grams that counts are compared
/// before them, up to this threshold: 5,655 source files of 4 to 60 KB took 4.2 processor seconds
/// at 0.08, and 6.7 without (2026-11-26, one thread of an AMD EPYC with AVX-512).
constexpr std::size_t kLeastFiltered = 4096;
constexpr double kMostFilteredThreshold = 0.12;

std::uint16_t class_count(std::size_t least) {
    return static_cast<std::uint16_t>(std::min<std::size_t>(least, UINT16_MAX));
}

/// Whether the classes of the characters of two documents leave them a pair.
bool classes_share(ClassFilter filter, const DocumentFeatures& a, const DocumentFeatures& b,
                   std::size_t least) {
    CharacterClasses row, column;
    row.resize(1);
    row.set(0, a);
    column.resize(1);
    column.set(0, b);
    std::array<std::uint32_t, CharacterClasses::vector + 1> hits;
    return filter(row.column(0), column, 0, 1, class_count(least), hits.data()) > 0;
}

bool count_document(const SearchSpace& space, const PlacedDocument& place,
                    DocumentFeatures& features) {
    const Documents& documents = space.documents.documents;
    return features.set(documents[place.document], documents.characters, space.execution.stop());
}

/// The columns of a tile below `end`.
GramTile::Mask columns_below(std::size_t end) {
    GramTile::Mask mask{};
    for (std::size_t word = 0; word < mask.size() && 64 * word < end; ++word)
        mask[word] =
            end - 64 * word >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << (end - 64 * word)) - 1;
    return mask;
}

/// Calls of_column(column) for each column of a mask.
template <class OfColumn>
void for_each_column(const GramTile::Mask& mask, OfColumn&& of_column) {
    for (std::size_t word = 0; word < mask.size(); ++word)
        for (std::uint64_t bits = mask[word]; bits != 0; bits &= bits - 1)
            of_column(64 * word + static_cast<std::size_t>(std::countr_zero(bits)));
}

}  // namespace

// ---- By counts ----

Status PlaceFeatures::count(const SearchSpace& space, std::span<const PlacedDocument> places,
                            PlaceRange range) {
    begin = range.begin;
    if (!stoppable_assign(documents, range.size(), {}, space.execution.stop()))
        return Status::cancelled();
    classes.resize(range.size());
    space.execution.begin_phase("counting characters", range.size());
    return space.execution.parallel_for(range.size(), [&](std::size_t i, unsigned) {
        if (!count_document(space, places[range.begin + i], documents[i]))
            return Status::cancelled();
        classes.set(i, documents[i]);
        return Status();
    });
}

bool CountsMethod::has_room() const {
    return memory() >= kLeastTile * sizeof(DocumentFeatures);
}

Status CountsMethod::seconds(PlaceRange columns, double& seconds) {
    constexpr double golden = 0.6180339887498949;
    DocumentFeatures own, other;
    double sum = 0;
    std::size_t pairs = 0;
    for (const std::size_t row : space_.sample_rows(columns, kSampledPairs)) {
        const PlaceRange beside = space_.columns_beside(row, columns);
        if (beside.size() == 0) continue;
        // Columns all over the range, in another order than the rows.
        const double place = static_cast<double>(++pairs) * golden;
        const auto column =
            beside.begin + static_cast<std::size_t>((place - std::floor(place)) *
                                                    static_cast<double>(beside.size()));
        if (!count_document(space_, space_.rows()[row], own) ||
            !count_document(space_, space_.columns()[column], other))
            return Status::cancelled();
        const std::size_t longer = std::max(space_.row_length(row), space_.length(column));
        const std::size_t edits = space_.most_edits(row, column);
        sum += kClassesTime;
        if (!classes_share(filter_, own, other, longer - std::min(longer, edits))) continue;
        sum += kCharactersTime;
        if (shared_.characters(own, other) + edits >= longer) sum += kTrigramsTime;
    }
    const double of_pair = pairs == 0 ? 0 : sum / static_cast<double>(pairs);
    seconds = space_.sum_over_rows(columns, [&](std::size_t row) {
        return static_cast<double>(space_.row_length(row)) * kFeatureTime +
               static_cast<double>(space_.columns_beside(row, columns).size()) * of_pair;
    });
    return {};
}

Status CountsMethod::join(PlaceRange columns, double limit, bool& joined) {
    const PlaceRange rows = space_.rows_beside(columns);
    std::vector<IndexPair> candidates;
    bool too_many = false;
    if (rows.size() > 0) GPUTEXT_TRY(find_candidates(rows, columns, candidates, too_many));
    joined = !too_many;
    if (too_many) return {};
    const std::vector<std::size_t> added_before = space_.added();
    space_.execution.begin_phase("verifying candidates", candidates.size());
    GPUTEXT_TRY(verify(candidates, limit, too_many));
    joined = !too_many;
    // Pairs that connect sets are not wanted once more.
    if (too_many && !space_.wanted.connect_sets()) space_.drop_added_since(added_before);
    return {};
}

Status CountsMethod::find_candidates(PlaceRange rows, PlaceRange columns,
                                     std::vector<IndexPair>& candidates, bool& too_many) {
    const bool between_sides = space_.between_sides();
    const std::size_t documents = rows.size() + (between_sides ? columns.size() : 0);
    const std::uint64_t most = std::min<std::uint64_t>(
        (kFewCandidates + kCandidatesPerDocument * documents) / space_.part.count,
        memory() / kCandidateBytes);
    const std::size_t affordable = memory() / sizeof(DocumentFeatures);
    const std::size_t tile =
        affordable >= documents ? documents : std::max<std::size_t>(1, affordable / 2);
    PairLists found(space_.execution.threads(), most);
    std::atomic<bool> more{false};
    PlaceFeatures row_features, column_features;
    for (std::size_t begin = rows.begin; begin < rows.end && !more; begin += tile) {
        const PlaceRange some{begin, std::min(rows.end, begin + tile)};
        GPUTEXT_TRY(row_features.count(space_, space_.rows(), some));
        std::size_t from = space_.columns_beside(some.begin, columns).begin;
        const std::size_t last = space_.columns_beside(some.end - 1, columns).end;
        if (!between_sides) {
            from = std::max(columns.begin, some.begin);
            const PlaceRange own{from, some.end};
            if (own.begin < own.end)
                GPUTEXT_TRY(join_tile(some, own, row_features, row_features, found, more));
            from = std::max(columns.begin, some.end);
        }
        for (; from < last && !more; from += tile) {
            const PlaceRange others{from, std::min(last, from + tile)};
            GPUTEXT_TRY(column_features.count(space_, space_.columns(), others));
            GPUTEXT_TRY(join_tile(some, others, row_features, column_features, found, more));
        }
    }
    too_many = more;
    return too_many ? Status() : found.take(candidates, space_.execution.stop());
}

Status CountsMethod::join_tile(PlaceRange rows, PlaceRange columns,
                               const PlaceFeatures& row_features,
                               const PlaceFeatures& column_features, PairLists& found,
                               std::atomic<bool>& too_many) {
    Execution& execution = space_.execution;
    // Pairs are those of positions among the rows, between two sides followed by the columns.
    const std::size_t first_column = space_.between_sides() ? space_.rows().size() : 0;
    execution.begin_phase("comparing counts", rows.size());
    return execution.parallel_for(rows.size(), [&](std::size_t i, unsigned worker) {
        const std::size_t row = rows.begin + i;
        if (!space_.is_row(row)) return Status();
        const DocumentFeatures& own = *row_features.at(row);
        const auto classes = row_features.classes.column(row - row_features.begin);
        const PlaceRange beside = space_.columns_beside(row, columns);
        std::array<std::uint32_t, CharacterClasses::vector + 1> hits;
        std::size_t next = beside.begin;
        for (std::size_t looks = 0; next < beside.end; next += CharacterClasses::vector, ++looks) {
            // A row of a million columns takes longer than a stop may wait.
            if (looks % 4096 == 4095 && execution.stop_requested()) return Status::cancelled();
            if (looks % 64 == 0 && found.too_many(worker)) too_many = true;
            if (too_many) return Status();
            const std::size_t behind = std::min(beside.end, next + CharacterClasses::vector);
            const std::size_t count =
                filter_(classes, column_features.classes, next - column_features.begin,
                        behind - column_features.begin,
                        class_count(least_shared(row, {next, behind})), hits.data());
            for (const std::uint32_t hit : std::span(hits).first(count)) {
                const std::size_t column = column_features.begin + hit;
                if (may_be_within(shared_, own, column_features.documents[hit],
                                  std::max(space_.row_length(row), space_.length(column)),
                                  enough_edits(space_.row_length(row), space_.length(column))))
                    found.add(worker, static_cast<std::uint32_t>(row),
                              static_cast<std::uint32_t>(first_column + column));
            }
        }
        return Status();
    });
}

std::size_t CountsMethod::enough_edits(std::size_t length, std::size_t other) const {
    return static_cast<std::size_t>(space_.parameters.threshold *
                                    static_cast<double>(length + other)) +
           1;
}

std::size_t CountsMethod::least_shared(std::size_t row, PlaceRange columns) const {
    const std::size_t own = space_.row_length(row);
    const std::size_t other =
        std::clamp(own, space_.length(columns.begin), space_.length(columns.end - 1));
    const std::size_t longer = std::max(own, other);
    return longer - std::min(longer, enough_edits(own, other));
}

Status CountsMethod::verify(std::span<const IndexPair> candidates, double limit, bool& too_many) {
    const double before = space_.far_seconds();
    const std::size_t first_column = space_.between_sides() ? space_.rows().size() : 0;
    for (std::size_t begin = 0; begin < candidates.size(); begin += kVerifiedTogether) {
        too_many = begin < candidates.size() / 2 && space_.far_seconds() - before > limit;
        if (too_many) return {};
        const auto some =
            candidates.subspan(begin, std::min(kVerifiedTogether, candidates.size() - begin));
        GPUTEXT_TRY(space_.execution.parallel_for(some.size(), [&](std::size_t i, unsigned worker) {
            const std::size_t row = some[i].first, column = some[i].second - first_column;
            ++workers_[worker].counted;
            if (!space_.are_pair(row, column) || lacks_grams(row, column, workers_[worker]))
                return Status();
            return space_.verify(row, column, worker);
        }));
    }
    return {};
}

bool CountsMethod::lacks_grams(std::size_t row, std::size_t column, Worker& worker) const {
    const Stop stop = space_.execution.stop();
    if (worker.grams_of != row && !worker.grams.assign(space_.folded_row(row), stop)) return false;
    worker.grams_of = row;
    const std::size_t most = space_.most_edits(row, column);
    return worker.grams.absent(space_.folded_column(column), most, stop, space_.parameters.simd) >
           most;
}

void CountsMethod::add_to(ExactSearchCounts& counts) const {
    for (const Worker& worker : workers_) counts.counted += worker.counted;
}

// ---- By an index ----

std::size_t IndexMethod::memory() const {
    return std::min(space_.parameters.memory_limit / 4, std::size_t{1} << 36);
}

std::size_t IndexMethod::end_of_range(std::size_t begin, std::size_t last) const {
    const auto grams_of = [&](std::size_t column) {
        return GramIndex::count_chunks(space_.length(column), space_.parameters.threshold,
                                       space_.between_sides());
    };
    const std::size_t shortest = space_.length(begin);
    std::size_t end = begin + 1;
    for (std::size_t grams = grams_of(begin); end < last && end - begin < GramIndex::most_columns &&
                                              space_.length(end) <= shortest + shortest / 4 + 8;
         ++end) {
        grams += grams_of(end);
        if (GramIndex::bytes_of(grams) > memory()) break;
    }
    return end;
}

double IndexMethod::seconds(PlaceRange columns) const {
    const std::size_t characters =
        columns.size() * space_.length(columns.begin + columns.size() / 2);
    return static_cast<double>(characters) * kBuildTime + look_up_seconds(columns);
}

double IndexMethod::look_up_seconds(PlaceRange columns) const {
    return space_.sum_over_rows(columns, [&](std::size_t row) {
        return static_cast<double>(space_.row_length(row)) * kProbeTime;
    });
}

double IndexMethod::entry_seconds(const GramIndex& index, PlaceRange columns) {
    return space_.sum_over_rows(columns, [&](std::size_t row) -> double {
        const PlaceRange beside = space_.columns_beside(row, columns);
        if (beside.size() == 0) return 0;
        const GramIndex::Query query = query_of(row, beside);
        const std::uint64_t entries =
            index.count_entries({&query, 1}, workers_.front().probe, space_.execution.stop());
        return static_cast<double>(entries) * kEntryTime;
    });
}

Status IndexMethod::is_worth_making(PlaceRange columns, double limit, bool& worth) {
    worth = false;
    const ProbeRows rows = space_.probe_rows_beside(columns);
    if (rows.range.size() == 0 ||
        GramIndex::gram_length(space_.columns(), columns, rows, space_.parameters.threshold) == 0)
        return {};
    worth = always_;
    if (always_ || columns.size() < kLeastIndexed || memory() < kLeastIndexBytes) return {};
    const double seconds = this->seconds(columns);
    worth = seconds < limit;
    if (!worth || columns.size() < kLeastTried) return {};
    // How many entries rows find is seen in an index of a part of the columns.
    const std::size_t middle = columns.begin + columns.size() / 2;
    const PlaceRange part{middle, middle + columns.size() / kTriedPart};
    GramIndex index;
    GPUTEXT_TRY(build(part, index));
    worth = seconds + entry_seconds(index, part) * kTriedPart < limit;
    return {};
}

Status IndexMethod::build(PlaceRange columns, GramIndex& index) {
    return index.build(space_.columns(), columns, space_.probe_rows_beside(columns),
                       space_.parameters.threshold, space_.execution);
}

Status IndexMethod::join(PlaceRange columns, double limit, bool& joined) {
    joined = false;
    bool worth = false;
    GPUTEXT_TRY(is_worth_making(columns, limit, worth));
    if (!worth) return {};
    GramIndex index;
    GPUTEXT_TRY(build(columns, index));
    joined = always_ || look_up_seconds(columns) + entry_seconds(index, columns) < limit;
    if (!joined) return {};
    const std::vector<PlaceRange> parts = parts_of_rows(space_.rows_beside(columns));
    space_.execution.begin_phase("comparing documents", parts.size());
    return space_.execution.parallel_for(parts.size(), [&](std::size_t i, unsigned worker) {
        return probe_rows(index, parts[i], columns, worker);
    });
}

GramIndex::Query IndexMethod::query_of(std::size_t row, PlaceRange columns) const {
    return {static_cast<std::uint32_t>(row), static_cast<std::uint32_t>(columns.begin),
            static_cast<std::uint32_t>(columns.end),
            static_cast<std::uint32_t>(space_.most_edits(row, columns.end - 1))};
}

std::vector<PlaceRange> IndexMethod::parts_of_rows(PlaceRange rows) const {
    const std::size_t bytes =
        std::min(kProbeBytes, space_.parameters.memory_limit / 8 / space_.execution.threads());
    const std::size_t symbols = bytes / GramIndex::probe_bytes;
    std::vector<PlaceRange> parts;
    std::size_t taken = symbols;
    for (std::size_t row = rows.begin; row < rows.end; ++row) {
        taken += space_.row_length(row);
        if (taken >= symbols || parts.back().size() == GramIndex::most_queries) {
            parts.push_back({row, row});
            taken = space_.row_length(row);
        }
        ++parts.back().end;
    }
    return parts;
}

Status IndexMethod::probe_rows(const GramIndex& index, PlaceRange rows, PlaceRange columns,
                               unsigned worker) {
    if (space_.wanted.none_left()) return {};
    std::vector<GramIndex::Query>& queries = workers_[worker].queries;
    queries.clear();
    for (std::size_t row = rows.begin; row < rows.end; ++row) {
        if (!space_.is_row(row)) continue;
        const PlaceRange beside = space_.columns_beside(row, columns);
        if (beside.size() > 0) queries.push_back(query_of(row, beside));
    }
    return probe(index, queries, worker);
}

Status IndexMethod::probe(const GramIndex& index, std::span<const GramIndex::Query> queries,
                          unsigned worker) {
    const Execution& execution = space_.execution;
    const auto candidates = index.candidates(queries, workers_[worker].probe, execution.stop());
    if (execution.stop_requested()) return Status::cancelled();
    if (!candidates) {
        const std::size_t half = queries.size() / 2;
        GPUTEXT_TRY(probe(index, queries.first(half), worker));
        return probe(index, queries.subspan(half), worker);
    }
    workers_[worker].confirmed += candidates->size();
    for (const auto& [row, column] : *candidates) {
        if (execution.stop_requested()) return Status::cancelled();
        GPUTEXT_TRY(space_.verify(row, column, worker));
    }
    return {};
}

void IndexMethod::add_to(ExactSearchCounts& counts) const {
    for (const Worker& worker : workers_) {
        counts.hits += worker.probe.hits();
        counts.confirmed += worker.confirmed;
    }
}

// ---- By tiles ----

TilesMethod::TilesMethod(SearchSpace& space)
    : space_(space), shared_(shared_features(space.parameters.simd)) {
    for (unsigned i = 0; i < space.execution.threads(); ++i)
        workers_.emplace_back(space.parameters.simd);
}

double TilesMethod::seconds(PlaceRange columns) const {
    return space_.sum_over_rows(columns, [&](std::size_t row) -> double {
        const PlaceRange beside = space_.columns_beside(row, columns);
        if (beside.size() == 0) return 0;
        const double tiles =
            1 + static_cast<double>(beside.size()) / static_cast<double>(GramTile::most_columns);
        return static_cast<double>(space_.row_length(row)) * tiles * kTileTime;
    });
}

Status TilesMethod::join(std::span<const PlaceRange> ranges) {
    GPUTEXT_TRY(count_long_documents(ranges));
    const std::vector<Task> tasks = make_tasks(ranges);
    space_.execution.begin_phase("comparing documents", tasks.size());
    return space_.execution.parallel_for(
        tasks.size(), [&](std::size_t i, unsigned worker) { return run_task(tasks[i], worker); });
}

Status TilesMethod::count_long_documents(std::span<const PlaceRange> ranges) {
    if (space_.parameters.threshold > kMostFilteredThreshold) return {};
    const auto long_ones = [](std::span<const PlacedDocument> places) {
        const auto first = std::ranges::partition_point(
            places, [](const PlacedDocument& place) { return place.size < kLeastFiltered; });
        return PlaceRange{static_cast<std::size_t>(first - places.begin()), places.size()};
    };
    std::size_t last = 0;
    for (const PlaceRange& columns : ranges) last = std::max(last, columns.end);
    const PlaceRange columns = long_ones(space_.columns().first(last));
    PlaceRange rows{0, 0};
    if (space_.between_sides() && columns.size() > 0) rows = long_ones(space_.rows());
    if ((columns.size() + rows.size()) * sizeof(DocumentFeatures) >
        space_.parameters.memory_limit / 4)
        return {};
    GPUTEXT_TRY(column_features_.count(space_, space_.columns(), columns));
    return rows.size() == 0 ? Status() : row_features_.count(space_, space_.rows(), rows);
}

GramTile::Mask TilesMethod::may_be_near(std::size_t row, std::size_t tile_begin,
                                        GramTile::Mask mask) const {
    const DocumentFeatures* const own =
        (space_.between_sides() ? row_features_ : column_features_).at(row);
    if (own == nullptr) return mask;
    GramTile::Mask near = mask;
    for_each_column(mask, [&](std::size_t bit) {
        const std::size_t column = tile_begin + bit;
        const DocumentFeatures* const other = column_features_.at(column);
        if (other != nullptr &&
            !may_be_within(shared_, *own, *other,
                           std::max(space_.row_length(row), space_.length(column)),
                           space_.most_edits(row, column)))
            near[bit / 64] &= ~(std::uint64_t{1} << bit % 64);
    });
    return near;
}

std::vector<TilesMethod::Task> TilesMethod::make_tasks(std::span<const PlaceRange> ranges) {
    std::vector<Task> tasks;
    std::uint64_t work = 0;
    for (const PlaceRange& range : ranges) add_tiles(range, tasks, work);
    const std::size_t most_rows =
        std::max<std::size_t>(4096, work / (16 * space_.execution.threads()));
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

void TilesMethod::add_tiles(PlaceRange range, std::vector<Task>& tasks, std::uint64_t& work) {
    unsigned gram = GramTile::shortest_gram;
    std::size_t chosen_for = 0;  // characters
    for (std::size_t begin = range.begin; begin < range.end;) {
        const std::size_t shortest = space_.length(begin);
        std::size_t end = begin + 1;
        for (std::size_t characters = shortest;
             end < range.end && end - begin < GramTile::most_columns &&
             space_.length(end) <= shortest + shortest / 8 + 8;
             ++end) {
            characters += space_.length(end);
            if (characters > kTileCharacters) break;
        }
        Task task{space_.rows_beside({begin, end}), {begin, end}, gram};
        if (task.rows.size() == (space_.between_sides() ? 0 : 1)) {
            // A document that is comparable with no row, or with none but itself.
            begin = end;
            continue;
        }
        // Windows grow with the documents, and the grams that are rare in them.
        if (space_.length(end - 1) > chosen_for + chosen_for / 2) {
            gram = task.gram = choose_gram(task);
            chosen_for = space_.length(end - 1);
        }
        tasks.push_back(task);
        work += task.rows.size();
        begin = end;
    }
}

unsigned TilesMethod::choose_gram(const Task& task) {
    const auto sample = [](PlaceRange range) {
        std::vector<std::size_t> places(std::min(kSamples, range.size()));
        for (std::size_t i = 0; i < places.size(); ++i)
            places[i] = range.begin + range.size() * i / places.size();
        return places;
    };
    std::vector<Bytes> columns;
    for (const std::size_t column : sample(task.columns))
        columns.push_back(space_.folded_column(column));
    Worker& worker = workers_.front();
    unsigned best = GramTile::shortest_gram;
    std::uint64_t best_sum = 0;
    for (unsigned gram = GramTile::shortest_gram; gram <= GramTile::longest_gram; ++gram) {
        if (!build(columns, task, gram, worker)) return best;
        std::uint64_t sum = 0;
        for (const std::size_t row : sample(task.rows))
            sum += worker.tile.sum_of_least_edits(space_.folded_row(row), space_.execution.stop());
        // Longer ones are worse still.
        if (sum <= best_sum) break;
        best_sum = sum;
        best = gram;
    }
    return best;
}

bool TilesMethod::build(std::span<const Bytes> columns, const Task& task, unsigned gram,
                        Worker& worker) {
    const std::size_t longest =
        std::max(space_.length(task.columns.end - 1), space_.row_length(task.rows.end - 1));
    const std::size_t edits = most_edits_within(space_.parameters.threshold, 2 * longest);
    const std::size_t table = std::min<std::size_t>(
        std::size_t{1} << 24, space_.parameters.memory_limit / 2 / space_.execution.threads());
    return worker.tile.build(columns, gram, longest, edits, table, space_.execution.stop());
}

void TilesMethod::prefetch_end(std::size_t row) const {
    if (row >= space_.rows().size()) return;
    const PlacedDocument& place = space_.rows()[row];
    for (std::size_t back = 0; back < std::min<std::size_t>(place.size, 192); back += 64)
        __builtin_prefetch(place.symbols + place.size - 1 - back);
}

Status TilesMethod::run_task(const Task& task, unsigned worker) {
    if (space_.wanted.none_left()) return {};
    std::vector<Bytes>& documents = workers_[worker].columns;
    documents.clear();
    for (std::size_t column = task.columns.begin; column < task.columns.end; ++column)
        documents.push_back(space_.folded_column(column));
    if (!build(documents, task, task.gram, workers_[worker])) return Status::cancelled();
    std::size_t begin = task.columns.begin, end = begin;
    for (std::size_t row = task.rows.begin; row < task.rows.end; ++row) {
        if (space_.execution.stop_requested()) return Status::cancelled();
        if (space_.wanted.none_left()) return {};
        prefetch_end(row + 6);
        const std::size_t own = space_.row_length(row);
        while (end < task.columns.end && !space_.too_long(space_.length(end), own)) ++end;
        while (begin < end && space_.too_long(own, space_.length(begin))) ++begin;
        const PlaceRange columns{space_.between_sides() ? begin : std::max(begin, row + 1), end};
        if (columns.begin >= columns.end || !space_.is_row(row)) continue;
        GPUTEXT_TRY(run_row(task, row, columns, worker));
    }
    return {};
}

Status TilesMethod::run_row(const Task& task, std::size_t row, PlaceRange columns,
                            unsigned worker) {
    Worker& own = workers_[worker];
    GramTile::Mask mask = columns_below(columns.end - task.columns.begin);
    const GramTile::Mask before = columns_below(columns.begin - task.columns.begin);
    for (std::size_t word = 0; word < mask.size(); ++word) mask[word] &= ~before[word];
    own.comparable += columns.size();
    mask = may_be_near(row, task.columns.begin, mask);
    if (std::ranges::all_of(mask, [](std::uint64_t word) { return word == 0; })) return {};
    mask = own.tile.may_be_within(space_.folded_row(row), space_.most_edits(row, columns.end - 1),
                                  mask, space_.execution.stop());
    own.candidates.clear();
    for_each_column(mask, [&](std::size_t column) {
        if (space_.are_pair(row, task.columns.begin + column)) own.candidates.push_back(column);
    });
    own.by_grams += own.candidates.size();
    return compare(row, task.columns.begin, worker);
}

Status TilesMethod::compare(std::size_t row, std::size_t tile_begin, unsigned worker) {
    std::vector<std::size_t>& left = workers_[worker].candidates;
    const bool connect_sets = space_.wanted.connect_sets();
    // Of documents with sets, pairs that were found since may have made others unwanted.
    const auto leave_out_unwanted = [&] {
        if (connect_sets)
            std::erase_if(left, [&](std::size_t column) {
                return !space_.are_pair(row, tile_begin + column);
            });
    };
    if (connect_sets && !left.empty()) {
        // The others are often in one set with it.
        GPUTEXT_TRY(space_.verify(row, tile_begin + left.back(), worker));
        left.pop_back();
        leave_out_unwanted();
    }
    const std::size_t length = space_.row_length(row);
    const bool in_lanes =
        left.size() >= kLeastInLanes && length > 0 && length <= LaneDistance::longest_pattern;
    if (in_lanes) workers_[worker].lane_distance.set_pattern(space_.folded_row(row));
    while (!left.empty()) {
        const auto some = std::span(left).last(std::min(LaneDistance::lanes, left.size()));
        if (in_lanes && some.size() >= kLeastInLanes) {
            GPUTEXT_TRY(compare_some(row, some, tile_begin, worker));
        } else {
            for (const std::size_t column : some)
                GPUTEXT_TRY(space_.verify(row, tile_begin + column, worker));
        }
        left.resize(left.size() - some.size());
        leave_out_unwanted();
    }
    return {};
}

Status TilesMethod::compare_some(std::size_t row, std::span<const std::size_t> columns,
                                 std::size_t tile_begin, unsigned worker) {
    Worker& own = workers_[worker];
    const std::size_t steps =
        (space_.row_length(row) + LaneDistance::rest_step - 1) / LaneDistance::rest_step + 1;
    own.rest.assign(steps * LaneDistance::lanes, 0);
    std::array<LaneDistance::Text, LaneDistance::lanes> texts;
    for (std::size_t lane = 0; lane < columns.size(); ++lane) {
        const std::size_t column = tile_begin + columns[lane];
        texts[lane] = {space_.folded_column(column), space_.most_edits(row, column)};
        for (std::size_t step = 0; step < steps; ++step)
            own.rest[step * LaneDistance::lanes + lane] = static_cast<std::uint32_t>(
                own.tile.least_edits_from(columns[lane], step * LaneDistance::rest_step));
    }
    const auto distances = own.lane_distance(std::span(texts).first(columns.size()), own.rest,
                                             space_.execution.stop());
    if (space_.execution.stop_requested()) return Status::cancelled();
    for (std::size_t lane = 0; lane < columns.size(); ++lane) {
        if (distances[lane] == LaneDistance::far) continue;
        const std::size_t column = tile_begin + columns[lane];
        // The folded documents' distance is that of the documents, or a bound.
        GPUTEXT_TRY(space_.are_narrow(row, column)
                        ? space_.add(row, column, distances[lane], worker)
                        : space_.verify(row, column, worker));
    }
    return {};
}

void TilesMethod::add_to(ExactSearchCounts& counts) const {
    for (const Worker& worker : workers_) {
        counts.comparable += worker.comparable;
        counts.by_grams += worker.by_grams;
    }
}

}  // namespace gputext
