#include <algorithm>
#include <bit>

#include "cpp/base/stoppable.hpp"
#include "cpp/documents/detail/count_join.hpp"
#include "cpp/documents/detail/exact_search_methods.hpp"

namespace gputext {

Status ExactSearch::join_by_counts(Range& columns) {
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

Status ExactSearch::count(Range range, std::size_t memory, std::vector<IndexPair>& candidates,
                          bool& too_many) {
    std::vector<Extent> extents(range.size());
    std::vector<std::uint32_t> lengths(range.size());
    std::vector<std::uint8_t> rows(rows_.empty() ? 0 : range.size());
    for (std::size_t i = 0; i < range.size(); ++i) {
        extents[i] = documents_.documents.extents[places_[range.begin + i].document];
        lengths[i] = places_[range.begin + i].size;
        if (!rows.empty()) rows[i] = is_row(range.begin + i) ? 1 : 0;
    }
    const std::uint64_t most =
        std::min<std::uint64_t>((kFewCounted + kCountedPerDocument * range.size()) / part_.count,
                                parameters_.memory_limit / 4 / kCountedBytes);
    const DocumentJoin join{parameters_.threshold, memory, parameters_.simd, rows};
    return join_documents(join,
                          {documents_.documents.bytes, extents, documents_.documents.characters},
                          lengths, execution_, candidates, most, &too_many);
}

Status ExactSearch::count_long_documents(std::size_t last) {
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

GramTile::Mask ExactSearch::may_be_near(std::size_t row, std::size_t tile_begin,
                                        GramTile::Mask mask) const {
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

}  // namespace gputext
