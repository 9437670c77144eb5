#include "cpp/documents/detail/exact_search.hpp"

#include <algorithm>
#include <utility>

#include "cpp/base/radix_sort.hpp"
#include "cpp/documents/detail/exact_search_methods.hpp"
#include "cpp/documents/near_duplicates_parts.hpp"

namespace gputext {

Status ExactSearch::run(std::vector<NearPair>& pairs, ExactSearchCounts* counts) {
    GPUTEXT_TRY(folded_.fold(documents_.documents, documents_.lengths, execution_));
    if (!rows_of_part(documents_.lengths, part_, execution_.stop(), part_rows_) ||
        !sort_by_length())
        return Status::cancelled();
    Ranges ranges;
    GPUTEXT_TRY(choose({0, columns_.size()}, begin_of_counted(), ranges));
    for (const Range& columns : std::exchange(ranges.counted, {})) {
        bool too_many = false;
        GPUTEXT_TRY(join_by_counts(columns, too_many));
        if (too_many) GPUTEXT_TRY(choose(columns, columns.end, ranges));
    }
    GPUTEXT_TRY(count_long_documents(ranges.tiled));
    const std::vector<Task> tasks = make_tasks(ranges.tiled);
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

bool ExactSearch::sort_by_length() {
    if (!between_sides()) {
        if (!sort_side(kBothSides, columns_)) return false;
        rows_ = columns_;
        return true;
    }
    const std::uint8_t side = row_side(documents_.sides);
    if (!sort_side(side, other_rows_) || !sort_side(kBothSides ^ side, columns_)) return false;
    rows_ = other_rows_;
    return true;
}

bool ExactSearch::sort_side(std::uint8_t side, std::vector<Place>& places) const {
    std::vector<std::uint64_t> keys;
    keys.reserve(documents_.size());
    for (std::size_t i = 0; i < documents_.size(); ++i)
        if (!between_sides() || (documents_.sides[i] & side) != 0)
            keys.push_back(std::uint64_t{documents_.lengths[i]} << 32 | i);
    if (!radix_sort(keys, execution_.stop())) return false;
    places.reserve(keys.size());
    for (const std::uint64_t key : keys) {
        const auto document = static_cast<std::uint32_t>(key);
        const Bytes folded = folded_[document];
        places.push_back({folded.data(), static_cast<std::uint32_t>(folded.size()), document});
    }
    return true;
}

ExactSearch::Range ExactSearch::rows_beside(Range columns) const {
    const auto place_of = [&](auto&& below) {
        return static_cast<std::size_t>(std::ranges::partition_point(rows_, below) - rows_.begin());
    };
    const std::size_t shortest = length(columns.begin), longest = length(columns.end - 1);
    const std::size_t begin =
        place_of([&](const Place& row) { return too_long(shortest, row.size); });
    if (!between_sides()) return {std::min(begin, columns.begin), columns.end};
    return {begin, place_of([&](const Place& row) { return !too_long(row.size, longest); })};
}

ExactSearch::Range ExactSearch::columns_beside(std::size_t row, Range columns) const {
    const std::span<const Place> all = std::span(columns_).subspan(columns.begin, columns.size());
    const auto place_of = [&](auto&& below) {
        return columns.begin +
               static_cast<std::size_t>(std::ranges::partition_point(all, below) - all.begin());
    };
    const std::size_t own = row_length(row);
    const std::size_t end =
        place_of([&](const Place& column) { return !too_long(column.size, own); });
    const std::size_t begin =
        between_sides() ? place_of([&](const Place& column) { return too_long(own, column.size); })
                        : std::max(row + 1, columns.begin);
    return {std::min(begin, end), end};
}

Status ExactSearch::add(std::size_t row, std::size_t column, std::size_t distance,
                        Worker& worker) const {
    const auto [first, second] = std::minmax(rows_[row].document, columns_[column].document);
    if (!wanted_.take(first, second)) return {};
    if (worker.found.size() == worker.room) {
        GPUTEXT_TRY(budget_.take(kPairsAtOnce * kPairBytes, "the pairs"));
        worker.room += kPairsAtOnce;
    }
    worker.found.push_back({first, second, edit_rate(distance, row_length(row) + length(column))});
    return {};
}

Status ExactSearch::verify(std::size_t row, std::size_t column, Worker& worker) const {
    if (!are_pair(row, column)) return {};
    const std::size_t most = most_edits(row, column);
    const auto [first, second] = std::minmax(rows_[row].document, columns_[column].document);
    if (!wanted_.are_signatures_near(first, second)) return {};
    ++worker.counts.verified;
    const std::uint64_t steps = worker.edit_distance.band_steps();
    const Result<std::size_t> distance =
        worker.edit_distance.of_texts(documents_.documents[first], documents_.documents[second],
                                      documents_.documents.characters, most, execution_.stop());
    if (!distance.ok()) return distance.status();
    if (*distance <= most) return add(row, column, *distance, worker);
    worker.far_characters += row_length(row) + length(column);
    worker.far_steps += worker.edit_distance.band_steps() - steps;
    return {};
}

Status find_exact_pairs(const NearDuplicateParameters& parameters,
                        const DistinctDocuments& documents, Execution& execution,
                        std::vector<NearPair>& pairs, ExactSearchCounts* counts, ExactMethod method,
                        const PairPart& part, WantedPairs* wanted) {
    if (documents.size() == 0) return {};
    if (wanted == nullptr) {
        WantedPairs own(documents);
        return ExactSearch(parameters, documents, part, execution, method, own).run(pairs, counts);
    }
    return ExactSearch(parameters, documents, part, execution, method, *wanted).run(pairs, counts);
}

}  // namespace gputext
