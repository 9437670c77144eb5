#include <algorithm>
#include <bit>

#include "cpp/documents/detail/exact_search_methods.hpp"

namespace gputext {

std::vector<ExactSearch::Task> ExactSearch::make_tasks(std::span<const Range> ranges) {
    std::vector<Task> tasks;
    std::uint64_t work = 0;
    for (const Range& range : ranges) add_tiles(range, tasks, work);
    const std::size_t most_rows = std::max<std::size_t>(4096, work / (16 * execution_.threads()));
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

void ExactSearch::add_tiles(Range range, std::vector<Task>& tasks, std::uint64_t& work) {
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
        Task task{rows_beside({begin, end}), {begin, end}, gram};
        if (task.rows.size() == (between_sides() ? 0 : 1)) {
            // A document that is comparable with no row, or with none but itself.
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

unsigned ExactSearch::choose_gram(const Task& task, Worker& worker) const {
    const std::size_t longest = longest_of(task);
    const std::size_t edits = most_edits_within(parameters_.threshold, 2 * longest);
    std::vector<Bytes> columns;
    const auto samples_of = [](Range range) { return std::min(kSamples, range.size()); };
    const std::size_t column_samples = samples_of(task.columns);
    for (std::size_t i = 0; i < column_samples; ++i)
        columns.push_back(
            folded(columns_[task.columns.begin + task.columns.size() * i / column_samples]));
    const std::size_t row_samples = samples_of(task.rows);
    unsigned best = GramTile::shortest_gram;
    std::uint64_t best_sum = 0;
    for (unsigned gram = GramTile::shortest_gram; gram <= GramTile::longest_gram; ++gram) {
        if (!worker.tile.build(columns, gram, longest, edits, table_bytes(), execution_.stop()))
            return best;
        std::uint64_t sum = 0;
        for (std::size_t i = 0; i < row_samples; ++i)
            sum += worker.tile.sum_of_least_edits(
                folded(rows_[task.rows.begin + task.rows.size() * i / row_samples]),
                execution_.stop());
        // Longer ones are worse still.
        if (sum <= best_sum) break;
        best_sum = sum;
        best = gram;
    }
    return best;
}

std::size_t ExactSearch::longest_of(const Task& task) const {
    return std::max(length(task.columns.end - 1), row_length(task.rows.end - 1));
}

std::size_t ExactSearch::table_bytes() const {
    return std::min<std::size_t>(std::size_t{1} << 24,
                                 parameters_.memory_limit / 2 / execution_.threads());
}

void ExactSearch::prefetch_end(std::size_t row) const {
    if (row >= rows_.size()) return;
    const Place& place = rows_[row];
    for (std::size_t back = 0; back < std::min<std::size_t>(place.size, 192); back += 64)
        __builtin_prefetch(place.symbols + place.size - 1 - back);
}

Status ExactSearch::run_task(const Task& task, Worker& worker) const {
    if (wanted_.none_left()) return {};
    const std::size_t longest = longest_of(task);
    const std::size_t edits = most_edits_within(parameters_.threshold, 2 * longest);
    const unsigned gram = task.gram;
    worker.columns.clear();
    for (std::size_t c = task.columns.begin; c < task.columns.end; ++c)
        worker.columns.push_back(folded(columns_[c]));
    if (!worker.tile.build(worker.columns, gram, longest, edits, table_bytes(), execution_.stop()))
        return Status::cancelled();
    std::size_t begin = task.columns.begin, end = begin;
    for (std::size_t row = task.rows.begin; row < task.rows.end; ++row) {
        if (execution_.stop_requested()) return Status::cancelled();
        if (wanted_.none_left()) return {};
        prefetch_end(row + 6);
        while (end < task.columns.end && !too_long(length(end), row_length(row))) ++end;
        while (begin < end && too_long(row_length(row), length(begin))) ++begin;
        const Range columns{between_sides() ? begin : std::max(begin, row + 1), end};
        if (columns.begin >= columns.end || !is_row(row)) continue;
        GPUTEXT_TRY(run_row(task, row, columns, worker));
    }
    return {};
}

GramTile::Mask ExactSearch::columns_below(std::size_t end) {
    GramTile::Mask mask{};
    for (std::size_t word = 0; word < mask.size() && 64 * word < end; ++word)
        mask[word] =
            end - 64 * word >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << (end - 64 * word)) - 1;
    return mask;
}

Status ExactSearch::run_row(const Task& task, std::size_t row, Range columns,
                            Worker& worker) const {
    GramTile::Mask mask = columns_below(columns.end - task.columns.begin);
    const GramTile::Mask before = columns_below(columns.begin - task.columns.begin);
    for (std::size_t word = 0; word < mask.size(); ++word) mask[word] &= ~before[word];
    worker.counts.comparable += columns.size();
    mask = may_be_near(row, task.columns.begin, mask);
    if (std::ranges::all_of(mask, [](std::uint64_t word) { return word == 0; })) return {};
    mask = worker.tile.may_be_within(folded(rows_[row]), most_edits(row, columns.end - 1), mask,
                                     execution_.stop());
    worker.candidates.clear();
    for (std::size_t word = 0; word < mask.size(); ++word)
        for (std::uint64_t bits = mask[word]; bits != 0; bits &= bits - 1) {
            const std::size_t column = 64 * word + static_cast<std::size_t>(std::countr_zero(bits));
            if (are_pair(row, task.columns.begin + column)) worker.candidates.push_back(column);
        }
    worker.counts.by_grams += worker.candidates.size();
    return compare(row, task.columns.begin, worker);
}

Status ExactSearch::compare(std::size_t row, std::size_t tile_begin, Worker& worker) const {
    std::vector<std::size_t>& left = worker.candidates;
    if (wanted_.connect_sets() && !left.empty()) {
        // The others are often in one set with it.
        GPUTEXT_TRY(verify(row, tile_begin + left.back(), worker));
        left.pop_back();
        leave_out_unwanted(row, tile_begin, left);
    }
    const bool in_lanes = left.size() >= kFewCandidates && row_length(row) > 0 &&
                          row_length(row) <= LaneDistance::longest_pattern;
    if (in_lanes) worker.lane_distance.set_pattern(folded(rows_[row]));
    while (!left.empty()) {
        const auto some = std::span(left).last(std::min(LaneDistance::lanes, left.size()));
        if (in_lanes && some.size() >= kFewCandidates) {
            GPUTEXT_TRY(compare_some(row, some, tile_begin, worker));
        } else {
            for (const std::size_t column : some)
                GPUTEXT_TRY(verify(row, tile_begin + column, worker));
        }
        left.resize(left.size() - some.size());
        if (wanted_.connect_sets()) leave_out_unwanted(row, tile_begin, left);
    }
    return {};
}

void ExactSearch::leave_out_unwanted(std::size_t row, std::size_t tile_begin,
                                     std::vector<std::size_t>& columns) const {
    std::erase_if(columns, [&](std::size_t column) { return !are_pair(row, tile_begin + column); });
}

Status ExactSearch::compare_some(std::size_t row, std::span<const std::size_t> columns,
                                 std::size_t tile_begin, Worker& worker) const {
    const std::size_t steps =
        (row_length(row) + LaneDistance::rest_step - 1) / LaneDistance::rest_step + 1;
    worker.rest.assign(steps * LaneDistance::lanes, 0);
    std::array<LaneDistance::Text, LaneDistance::lanes> texts;
    for (std::size_t lane = 0; lane < columns.size(); ++lane) {
        const std::size_t column = tile_begin + columns[lane];
        texts[lane] = {folded(columns_[column]), most_edits(row, column)};
        for (std::size_t step = 0; step < steps; ++step)
            worker.rest[step * LaneDistance::lanes + lane] = static_cast<std::uint32_t>(
                worker.tile.least_edits_from(columns[lane], step * LaneDistance::rest_step));
    }
    const auto distances = worker.lane_distance(std::span(texts).first(columns.size()), worker.rest,
                                                execution_.stop());
    if (execution_.stop_requested()) return Status::cancelled();
    for (std::size_t lane = 0; lane < columns.size(); ++lane) {
        if (distances[lane] == LaneDistance::far) continue;
        const std::size_t column = tile_begin + columns[lane];
        // The folded documents' distance is that of the documents, or a bound.
        const bool exact =
            folded_.is_narrow(rows_[row].document) && folded_.is_narrow(columns_[column].document);
        GPUTEXT_TRY(exact ? add(row, column, distances[lane], worker)
                          : verify(row, column, worker));
    }
    return {};
}

}  // namespace gputext
