#include <algorithm>
#include <bit>

#include "cpp/base/stoppable.hpp"
#include "cpp/documents/detail/count_join.hpp"
#include "cpp/documents/detail/exact_search_methods.hpp"

namespace gputext {

std::size_t ExactSearch::count_bytes() const {
    return parameters_.memory_limit / 4;
}

Status ExactSearch::join_by_counts(Range columns, bool& too_many) {
    const Range rows = rows_beside(columns);
    std::vector<IndexPair> candidates;
    if (rows.size() > 0) GPUTEXT_TRY(count(rows, columns, candidates, too_many));
    if (too_many) return {};
    std::vector<std::size_t> found_before;
    for (const Worker& worker : workers_) found_before.push_back(worker.found.size());
    execution_.begin_phase("verifying candidates", candidates.size());
    GPUTEXT_TRY(verify_counted(candidates, rows, columns, too_many));
    // Pairs that connect sets are not wanted once more.
    if (too_many && !wanted_.connect_sets())
        for (std::size_t i = 0; i < workers_.size(); ++i) workers_[i].found.resize(found_before[i]);
    return {};
}

Status ExactSearch::verify_counted(std::span<const IndexPair> candidates, Range rows, Range columns,
                                   bool& too_many) {
    const double before = far_time();
    const double tiles =
        method_ == ExactMethod::counts
            ? std::numeric_limits<double>::infinity()
            : sum_over_rows(columns, [&](std::size_t row) { return tile_time(row, columns); });
    for (std::size_t begin = 0; begin < candidates.size(); begin += kVerifiedTogether) {
        too_many = begin < candidates.size() / 2 && far_time() - before > tiles;
        if (too_many) return {};
        const auto some =
            candidates.subspan(begin, std::min(kVerifiedTogether, candidates.size() - begin));
        GPUTEXT_TRY(execution_.parallel_for(some.size(), [&](std::size_t i, unsigned worker) {
            // The documents were handed over in the order of length.
            const std::size_t row = rows.begin + some[i].first;
            const std::size_t column = between_sides()
                                           ? columns.begin + some[i].second - rows.size()
                                           : rows.begin + some[i].second;
            if (column < columns.begin) return Status();
            ++workers_[worker].counts.counted;
            if (!are_pair(row, column) || lacks_grams(row, column, workers_[worker]))
                return Status();
            return verify(row, column, workers_[worker]);
        }));
    }
    return {};
}

double ExactSearch::far_time() const {
    std::uint64_t characters = 0, steps = 0;
    for (const Worker& worker : workers_) {
        characters += worker.far_characters;
        steps += worker.far_steps;
    }
    return kVerifyTime * static_cast<double>(characters) + kStepTime * static_cast<double>(steps);
}

bool ExactSearch::lacks_grams(std::size_t row, std::size_t column, Worker& worker) const {
    if (worker.grams_of != row && !worker.grams.assign(folded(rows_[row]), execution_.stop()))
        return false;
    worker.grams_of = row;
    const std::size_t most = most_edits(row, column);
    return worker.grams.absent(folded(columns_[column]), most, execution_.stop(),
                               parameters_.simd) > most;
}

Status ExactSearch::count(Range rows, Range columns, std::vector<IndexPair>& candidates,
                          bool& too_many) {
    std::vector<Extent> extents;
    std::vector<std::uint32_t> lengths;
    std::vector<std::uint8_t> part_rows;
    const auto add = [&](std::span<const Place> places) {
        for (const Place& place : places) {
            extents.push_back(documents_.documents.extents[place.document]);
            lengths.push_back(place.size);
        }
    };
    add(rows_.subspan(rows.begin, rows.size()));
    if (between_sides()) add(std::span(columns_).subspan(columns.begin, columns.size()));
    if (!part_rows_.empty())
        for (std::size_t row = rows.begin; row < rows.end; ++row)
            part_rows.push_back(is_row(row) ? 1 : 0);
    const std::uint64_t most =
        std::min<std::uint64_t>((kFewCounted + kCountedPerDocument * extents.size()) / part_.count,
                                parameters_.memory_limit / 4 / kCountedBytes);
    const DocumentJoin join{parameters_.threshold, count_bytes(), parameters_.simd,
                            between_sides() ? rows.size() : 0, part_rows};
    return join_documents(join,
                          {documents_.documents.bytes, extents, documents_.documents.characters},
                          lengths, execution_, candidates, most, &too_many);
}

Status ExactSearch::count_long_documents(std::span<const Range> tiled) {
    if (parameters_.threshold > kMostFilteredThreshold) return {};
    std::size_t last = 0;
    for (const Range& columns : tiled) last = std::max(last, columns.end);
    const std::span<const Place> columns = std::span(columns_).first(last);
    features_.begin = begin_of(kLeastFiltered, columns);
    other_row_features_.begin = begin_of(kLeastFiltered, other_rows_);
    const std::size_t counted = columns.size() - features_.begin;
    const std::size_t other_counted =
        counted == 0 ? 0 : other_rows_.size() - other_row_features_.begin;
    if ((counted + other_counted) * sizeof(DocumentFeatures) > parameters_.memory_limit / 4)
        return {};
    GPUTEXT_TRY(count_long(columns, features_));
    return other_counted == 0 ? Status() : count_long(other_rows_, other_row_features_);
}

std::size_t ExactSearch::begin_of(std::size_t length, std::span<const Place> places) {
    return static_cast<std::size_t>(
        std::ranges::partition_point(places,
                                     [=](const Place& place) { return place.size < length; }) -
        places.begin());
}

Status ExactSearch::count_long(std::span<const Place> places, LongFeatures& features) const {
    if (!stoppable_assign(features.documents, places.size() - features.begin, {},
                          execution_.stop()))
        return Status::cancelled();
    execution_.begin_phase("counting characters", features.documents.size());
    return execution_.parallel_for(features.documents.size(), [&](std::size_t i, unsigned) {
        return features.documents[i].set(folded(places[features.begin + i]),
                                         CharacterLengths::single_byte(), execution_.stop())
                   ? Status()
                   : Status::cancelled();
    });
}

GramTile::Mask ExactSearch::may_be_near(std::size_t row, std::size_t tile_begin,
                                        GramTile::Mask mask) const {
    const DocumentFeatures* const own = (between_sides() ? other_row_features_ : features_).at(row);
    if (own == nullptr) return mask;
    for (std::size_t word = 0; word < mask.size(); ++word) {
        for (std::uint64_t bits = mask[word]; bits != 0; bits &= bits - 1) {
            const auto bit = static_cast<std::size_t>(std::countr_zero(bits));
            const std::size_t column = tile_begin + 64 * word + bit;
            const DocumentFeatures* const other = features_.at(column);
            if (other != nullptr &&
                !gputext::may_be_within(shared_, *own, *other,
                                        std::max(row_length(row), length(column)),
                                        most_edits(row, column)))
                mask[word] &= ~(std::uint64_t{1} << bit);
        }
    }
    return mask;
}

}  // namespace gputext
