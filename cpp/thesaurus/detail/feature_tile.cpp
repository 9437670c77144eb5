#include "cpp/thesaurus/detail/feature_tile.hpp"

#include <algorithm>

#include "cpp/base/stoppable.hpp"

namespace gputext {
namespace {

/// More cells a word than these, and a block of words leaves a processor's second cache.
constexpr std::size_t kMostDense = 2000;

/// Ranges of columns for each thread.
constexpr std::size_t kRangesOfThread = 4;

}  // namespace

/// Calls take(word, i) for each feature of the range's columns, word by word.
template <class Take>
Status WordTile::each_of(const WordFeatures& features, const ColumnRange& range, Stop stop,
                         Take&& take) const {
    const std::uint32_t* const columns = features.columns.data();
    std::size_t since_look = 0;
    for (std::uint32_t word = begin_; word < end_; ++word) {
        const std::uint64_t row_end = features.begins[word + 1];
        auto i = static_cast<std::uint64_t>(
            std::lower_bound(columns + features.begins[word], columns + row_end, range.begin) -
            columns);
        for (; i < row_end && columns[i] < range.end; ++i, ++since_look) take(word, i);
        since_look += 16;
        if (since_look < kLookEvery) continue;
        since_look = 0;
        if (stop()) return Status::cancelled();
    }
    return {};
}

Status WordTile::build(const WordFeatures& features, const Choice& choice, std::uint32_t begin,
                       std::uint32_t end, Execution& execution) {
    begin_ = begin, end_ = end;
    const std::uint64_t columns = features.shape.columns();
    if (list_begins_.size() != columns + 1)
        if (!stoppable_assign(list_begins_, columns + 1, 0u, execution.stop()) ||
            !stoppable_assign(dense_of_, columns, std::uint16_t{0}, execution.stop()))
            return Status::cancelled();

    std::vector<ColumnRange> ranges(kRangesOfThread * execution.threads());
    for (std::size_t i = 0; i < ranges.size(); ++i) {
        ranges[i].begin = columns * i / ranges.size();
        ranges[i].end = columns * (i + 1) / ranges.size();
    }
    const std::size_t blocks = (size() + kBlockWords - 1) / kBlockWords;
    execution.begin_phase("indexing words", 2 * ranges.size() + blocks);
    GPUTEXT_TRY(execution.parallel_for(ranges.size(), [&](std::size_t range, unsigned) {
        return count(features, choice, ranges[range], execution.stop());
    }));
    choose_dense(choice, ranges);
    std::uint64_t postings = 0;
    for (ColumnRange& range : ranges) {
        const std::uint64_t before = postings;
        postings += range.postings;
        range.postings = before;
    }
    list_begins_[columns] = static_cast<std::uint32_t>(postings);
    if (postings_.size() < postings) {
        postings_ = {};
        if (!stoppable_assign(postings_, postings, 0u, execution.stop()))
            return Status::cancelled();
    }
    GPUTEXT_TRY(execution.parallel_for(ranges.size(), [&](std::size_t range, unsigned) {
        return fill_lists(features, choice, ranges[range], execution.stop());
    }));

    dense_columns_ = 0;
    for (Dense& dense : dense_) {
        dense.first = static_cast<std::uint32_t>(dense_columns_);
        dense_columns_ += dense.columns;
    }
    const std::size_t cells = blocks * dense_columns_ * kBlockWords;
    if (cells_.size() < cells) {
        cells_ = {};
        if (!stoppable_assign(cells_, cells, 0u, execution.stop())) return Status::cancelled();
    }
    if (!any_dense()) return {};
    return execution.parallel_for(blocks, [&](std::size_t block, unsigned) {
        return fill_block(features, choice, block, execution.stop());
    });
}

/// How many words have each column, in list_begins_.
Status WordTile::count(const WordFeatures& features, const Choice& choice, ColumnRange& range,
                       Stop stop) {
    std::fill(list_begins_.begin() + static_cast<std::ptrdiff_t>(range.begin),
              list_begins_.begin() + static_cast<std::ptrdiff_t>(range.end), 0u);
    std::fill(dense_of_.begin() + static_cast<std::ptrdiff_t>(range.begin),
              dense_of_.begin() + static_cast<std::ptrdiff_t>(range.end), std::uint16_t{0});
    GPUTEXT_TRY(each_of(features, range, stop, [&](std::uint32_t, std::uint64_t i) {
        ++list_begins_[features.columns[i]];
        ++range.postings;
    }));
    if (choice.dense_part == 0) return {};
    const std::size_t least = std::max<std::size_t>(1, size() / choice.dense_part);
    for (std::uint64_t column = range.begin; column < range.end; ++column)
        if (list_begins_[column] >= least)
            range.frequent.push_back(static_cast<std::uint32_t>(column));
    return {};
}

/// The most frequent ones of the features that may be dense, as many as there is memory for.
void WordTile::choose_dense(const Choice& choice, std::span<ColumnRange> ranges) {
    dense_.clear();
    std::vector<std::uint32_t> dense;
    for (const ColumnRange& range : ranges)
        dense.insert(dense.end(), range.frequent.begin(), range.frequent.end());
    const std::size_t most = std::min(
        kMostDense, choice.dense_memory / (sizeof(std::uint32_t) * (size() + kBlockWords)));
    if (dense.size() > most) {
        const auto end = dense.begin() + static_cast<std::ptrdiff_t>(most);
        std::nth_element(dense.begin(), end, dense.end(), [&](std::uint32_t a, std::uint32_t b) {
            return list_begins_[a] != list_begins_[b] ? list_begins_[a] > list_begins_[b] : a < b;
        });
        dense.resize(most);
        std::sort(dense.begin(), dense.end());
    }
    std::size_t range = 0;
    for (const std::uint32_t column : dense) {
        while (column >= ranges[range].end) ++range;
        ranges[range].postings -= list_begins_[column];
        dense_.push_back({0, 1});
        dense_of_[column] = static_cast<std::uint16_t>(dense_.size());
    }
}

/// Makes list_begins_ of the counts, and for dense features columns enough for their weights.
Status WordTile::fill_lists(const WordFeatures& features, const Choice& choice,
                            const ColumnRange& range, Stop stop) {
    // First where each list ends; filled from behind, begins are left.
    auto next = static_cast<std::uint32_t>(range.postings);
    for (std::uint64_t column = range.begin; column < range.end; ++column) {
        const std::uint32_t words = dense_of_[column] == 0 ? list_begins_[column] : 0;
        list_begins_[column] = next;
        next += words;
    }
    Status status = each_of(features, range, stop, [&](std::uint32_t word, std::uint64_t i) {
        const std::uint32_t column = features.columns[i];
        const std::uint32_t weight = choice.ones ? 1 : features.weights[i];
        if (dense_of_[column] == 0)
            postings_[list_begins_[column]++] = (word - begin_) | weight << 16;
        else if (!choice.products && weight > kMostPairWeight)
            dense_[dense_of_[column] - 1].columns =
                std::max(dense_[dense_of_[column] - 1].columns,
                         (weight + kMostPairWeight - 1) / kMostPairWeight);
    });
    // Each has become the next one's begin.
    auto before = static_cast<std::uint32_t>(range.postings);
    for (std::uint64_t column = range.begin; column < range.end; ++column)
        std::swap(before, list_begins_[column]);
    return status;
}

Status WordTile::fill_block(const WordFeatures& features, const Choice& choice, std::size_t block,
                            Stop stop) {
    std::uint32_t* const cells = cells_.data() + block * dense_columns_ * kBlockWords;
    std::fill_n(cells, dense_columns_ * kBlockWords, 0u);
    const auto first = static_cast<std::uint32_t>(begin_ + block * kBlockWords);
    for (std::uint32_t word = first; word < std::min<std::uint64_t>(first + kBlockWords, end_);
         ++word) {
        if (stop()) return Status::cancelled();
        for (auto i = features.begins[word]; i < features.begins[word + 1]; ++i) {
            const Dense* const its = dense(features.columns[i]);
            if (its == nullptr) continue;
            const std::uint32_t weight = choice.ones ? 1 : features.weights[i];
            std::uint32_t* cell = cells + its->first * kBlockWords + (word - first);
            if (choice.products) {
                *cell = weight;
                continue;
            }
            std::uint32_t left = weight;
            for (std::uint32_t c = 0; c < its->columns; ++c, cell += kBlockWords) {
                const std::uint32_t part = std::min(left, kMostPairWeight);
                *cell = pair_cell(part, c == 0);
                left -= part;
            }
        }
    }
    return {};
}

}  // namespace gputext
