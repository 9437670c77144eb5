#include <algorithm>

#include "cpp/documents/detail/exact_search_methods.hpp"

namespace gputext {

Status ExactSearch::join_by_index(std::size_t last, std::vector<Range>& rest) {
    for (std::size_t begin = 0; begin < last;) {
        const Range columns{begin, end_of_class(begin, last)};
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

std::size_t ExactSearch::index_bytes() const {
    return std::min(parameters_.memory_limit / 4, std::size_t{1} << 36);
}

std::size_t ExactSearch::end_of_class(std::size_t begin, std::size_t last) const {
    const auto grams_of = [&](std::size_t column) {
        return GramIndex::count_chunks(length(column), parameters_.threshold, between_sides());
    };
    std::size_t end = begin + 1;
    for (std::size_t grams = grams_of(begin); end < last && end - begin < GramIndex::most_columns &&
                                              length(end) <= length(begin) + length(begin) / 4 + 8;
         ++end) {
        grams += grams_of(end);
        if (GramIndex::bytes_of(grams) > index_bytes()) break;
    }
    return end;
}

bool ExactSearch::may_be_indexed(Range columns) const {
    if (method_ == ExactMethod::tiles) return false;
    const ProbeRows rows = probe_rows_beside(columns);
    if (rows.range.size() == 0 ||
        GramIndex::gram_length(columns_, columns, rows, parameters_.threshold) == 0)
        return false;
    return method_ == ExactMethod::index ||
           (columns.size() >= kLeastIndexed && index_bytes() >= kLeastIndexBytes &&
            index_may_be_faster(columns));
}

std::vector<std::size_t> ExactSearch::sample_rows(Range columns) const {
    const Range rows = rows_beside(columns);
    const std::size_t samples = std::min<std::size_t>(rows.size(), kSampledRows);
    std::vector<std::size_t> sample(samples);
    for (std::size_t i = 0; i < samples; ++i) sample[i] = rows.begin + rows.size() * i / samples;
    return sample;
}

double ExactSearch::tile_time(std::size_t row, Range columns) const {
    const Range beside = columns_beside(row, columns);
    if (beside.size() == 0) return 0;
    const double tiles =
        1 + static_cast<double>(beside.size()) / static_cast<double>(GramTile::most_columns);
    return static_cast<double>(row_length(row)) * tiles * kTileTime;
}

bool ExactSearch::index_may_be_faster(Range columns) const {
    double by_tiles = 0, by_index = 0;
    for (const std::size_t row : sample_rows(columns)) {
        by_tiles += tile_time(row, columns);
        by_index += static_cast<double>(row_length(row)) * (kBuildTime + kProbeTime);
    }
    return by_index < by_tiles;
}

bool ExactSearch::index_is_faster(const GramIndex& index, Range columns) {
    double by_tiles = 0, by_index = 0;
    for (const std::size_t row : sample_rows(columns)) {
        if (execution_.stop_requested()) return true;
        const Range beside = columns_beside(row, columns);
        if (beside.size() == 0) continue;
        by_tiles += tile_time(row, columns);
        const GramIndex::Query query = query_of(row, beside);
        const std::uint64_t entries =
            index.count_entries({&query, 1}, workers_.front().probe, execution_.stop());
        by_index += static_cast<double>(row_length(row)) * kProbeTime +
                    static_cast<double>(entries) * kEntryTime;
    }
    return by_index < by_tiles;
}

Status ExactSearch::try_index(Range columns, bool& joined) {
    const ProbeRows rows = probe_rows_beside(columns);
    GramIndex index;
    GPUTEXT_TRY(index.build(columns_, columns, rows, parameters_.threshold, execution_));
    joined = method_ == ExactMethod::index || index_is_faster(index, columns);
    if (!joined) return {};
    const std::vector<Range> parts = parts_of_rows(rows.range);
    execution_.begin_phase("comparing documents", parts.size());
    return execution_.parallel_for(parts.size(), [&](std::size_t i, unsigned worker) {
        return probe_rows(index, parts[i], columns, workers_[worker]);
    });
}

GramIndex::Query ExactSearch::query_of(std::size_t row, Range columns) const {
    return {static_cast<std::uint32_t>(row), static_cast<std::uint32_t>(columns.begin),
            static_cast<std::uint32_t>(columns.end),
            static_cast<std::uint32_t>(most_edits(row, columns.end - 1))};
}

std::vector<ExactSearch::Range> ExactSearch::parts_of_rows(Range rows) const {
    const std::size_t symbols =
        std::min(kProbeBytes, parameters_.memory_limit / 8 / execution_.threads()) /
        GramIndex::probe_bytes;
    std::vector<Range> parts;
    std::size_t taken = symbols;
    for (std::size_t row = rows.begin; row < rows.end; ++row) {
        taken += row_length(row);
        if (taken >= symbols || parts.back().size() == GramIndex::most_queries) {
            parts.push_back({row, row});
            taken = row_length(row);
        }
        ++parts.back().end;
    }
    return parts;
}

Status ExactSearch::probe_rows(const GramIndex& index, Range rows, Range columns,
                               Worker& worker) const {
    worker.queries.clear();
    for (std::size_t row = rows.begin; row < rows.end; ++row) {
        if (!is_row(row)) continue;
        const Range beside = columns_beside(row, columns);
        if (beside.size() > 0) worker.queries.push_back(query_of(row, beside));
    }
    return probe(index, worker.queries, worker);
}

Status ExactSearch::probe(const GramIndex& index, std::span<const GramIndex::Query> queries,
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

}  // namespace gputext
