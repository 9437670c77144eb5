#include <algorithm>

#include "cpp/documents/detail/exact_search_methods.hpp"

namespace gputext {

std::size_t ExactSearch::index_bytes() const {
    return std::min(parameters_.memory_limit / 4, std::size_t{1} << 36);
}

Status ExactSearch::try_index(Range columns, double otherwise, bool& joined) {
    const ProbeRows rows = probe_rows_beside(columns);
    GramIndex index;
    GPUTEXT_TRY(index.build(columns_, columns, rows, parameters_.threshold, execution_));
    joined = method_ == ExactMethod::index ||
             look_up_time(columns) + entry_time(index, columns) < otherwise;
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
    if (wanted_.none_left()) return {};
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
