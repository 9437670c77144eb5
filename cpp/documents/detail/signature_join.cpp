#include "cpp/documents/detail/signature_join.hpp"

#include <algorithm>
#include <array>

#include "cpp/base/radix_sort.hpp"
#include "cpp/documents/detail/letter_filter.hpp"
#include "cpp/documents/detail/pair_stripes.hpp"
#include "cpp/documents/detail/signature_distance.hpp"
#include "cpp/documents/edit_distance.hpp"

namespace gputext {
namespace {

/// One part of one signature, in the order in which the join looks at them.
struct Entry {
    std::string_view letters;
    std::uint32_t index;  // in the caller's input
};

/// Entries of one block size, sorted by length, joined with themselves. Features are set by the
/// caller, column by column, before the first block is run.
class Join {
public:
    Join(std::vector<Entry> entries, double rate, Simd simd)
        : entries_(std::move(entries)),
          rate_(rate),
          longest_(entries_.empty() ? 0 : entries_.back().letters.size()),
          counts_(entries_.size(), letter_filter_depth(longest_)),
          filter_(letter_filter(simd, counts_.depth())) {}

    std::size_t entries() const { return entries_.size(); }

    void set_features(std::size_t begin, std::size_t end) {
        for (std::size_t i = begin; i < end; ++i) counts_.set(i, entries_[i].letters);
    }

    /// Blocks of the part's rows: at most kBlockOfRows entries of one length and one stripe. The
    /// entries' stripes are numbered from `stripes` on, which counts them.
    std::size_t blocks(const PairPart& part, std::uint64_t& stripes) {
        for (std::size_t begin = 0; begin < entries_.size();) {
            std::size_t end = begin + 1;
            while (end < entries_.size() && end - begin < kBlockOfRows &&
                   end % kSignatureStripe != 0 && length(end) == length(begin))
                ++end;
            if (has_stripe(part, stripes + begin / kSignatureStripe))
                blocks_.push_back({begin, end});
            begin = end;
        }
        stripes += (entries_.size() + kSignatureStripe - 1) / kSignatureStripe;
        return blocks_.size();
    }

    /// Ends early when stopped.
    void run_block(std::size_t block, unsigned worker, Stop stop, PairLists& pairs) const {
        const auto [begin, end] = blocks_[block];
        const std::size_t columns_end = end_of_comparable(length(begin));
        std::array<std::int64_t, kBlockOfColumns> least;
        std::array<std::uint32_t, kBlockOfColumns + 1> hits;
        for (std::size_t from = begin + 1; from < columns_end; from += kBlockOfColumns) {
            const std::size_t to = std::min(columns_end, from + kBlockOfColumns);
            set_least_common(length(begin), from, to, least);
            for (std::size_t row = begin; row < end && row + 1 < to; ++row) {
                // All columns may have to be verified.
                if (stop() || pairs.too_many(worker)) return;
                const std::size_t after_row = std::max(from, row + 1);
                std::array<std::uint64_t, LetterCounts::max_depth> words;
                counts_.copy_column(row, words.data());
                const std::size_t count = filter_(words.data(), counts_, after_row, to,
                                                  least.data() + (after_row - from), hits.data());
                verify(row, std::span(hits).first(count), worker, pairs);
            }
        }
    }

private:
    static constexpr std::size_t kBlockOfRows = 64;
    static constexpr std::size_t kBlockOfColumns = 1024;  // whose features stay in the L1 cache

    struct Rows {
        std::size_t begin, end;
    };

    std::size_t length(std::size_t entry) const { return entries_[entry].letters.size(); }

    std::size_t most_edits(std::size_t a_length, std::size_t b_length) const {
        return most_edits_within(rate_, a_length + b_length);
    }

    /// The first entry too long to be within the rate of one of `row_length`, which is no longer.
    std::size_t end_of_comparable(std::size_t row_length) const {
        std::size_t longest = row_length;
        while (longest < longest_ &&
               longest + 1 - row_length <= most_edits(row_length, longest + 1))
            ++longest;
        const auto longer = [](std::size_t length, const Entry& entry) {
            return length < entry.letters.size();
        };
        const auto end = std::upper_bound(entries_.begin(), entries_.end(), longest, longer);
        return static_cast<std::size_t>(end - entries_.begin());
    }

    /// Least number of counted letters in common for columns [from, to) beside rows of one length.
    void set_least_common(std::size_t row_length, std::size_t from, std::size_t to,
                          std::array<std::int64_t, kBlockOfColumns>& least) const {
        std::size_t last_length = SIZE_MAX;
        std::int64_t least_common = 0;
        for (std::size_t column = from; column < to; ++column) {
            if (length(column) != last_length) {
                last_length = length(column);
                least_common = static_cast<std::int64_t>(last_length) -
                               static_cast<std::int64_t>(most_edits(row_length, last_length));
            }
            least[column - from] = least_common - counts_.excess(column);
        }
    }

    void verify(std::size_t row, std::span<const std::uint32_t> columns, unsigned worker,
                PairLists& pairs) const {
        if (columns.empty()) return;
        const SignaturePattern pattern(entries_[row].letters);
        for (const std::uint32_t column : columns) {
            const std::size_t distance = pattern.distance(entries_[column].letters);
            if (edit_rate(distance, length(row) + length(column)) <= rate_)
                pairs.add(worker, entries_[row].index, entries_[column].index);
        }
    }

    std::vector<Entry> entries_;
    double rate_;
    std::size_t longest_;
    LetterCounts counts_;
    LetterFilter filter_;
    std::vector<Rows> blocks_;
};

/// By length, then by index. False if stopped.
bool sort_entries(std::vector<Entry>& entries, Stop stop) {
    std::vector<std::uint64_t> keys(entries.size());
    for (std::size_t i = 0; i < entries.size(); ++i)
        keys[i] = std::uint64_t{entries[i].letters.size()} << 32 | i;
    if (!radix_sort(keys, stop)) return false;
    std::vector<Entry> sorted(entries.size());
    for (std::size_t i = 0; i < keys.size(); ++i)
        sorted[i] = entries[static_cast<std::uint32_t>(keys[i])];
    entries = std::move(sorted);
    return true;
}

/// A part of a join's work: columns whose features are to be set, or a block of rows.
struct Task {
    Join* join;
    std::size_t number;
};

Status set_features(std::span<Join> joins, Execution& execution) {
    constexpr std::size_t step = 4096;
    std::vector<Task> tasks;
    for (Join& join : joins)
        for (std::size_t begin = 0; begin < join.entries(); begin += step)
            tasks.push_back({&join, begin});
    execution.begin_phase("counting letters", tasks.size());
    return execution.parallel_for(tasks.size(), [&](std::size_t i, unsigned) {
        const auto [join, begin] = tasks[i];
        join->set_features(begin, std::min(join->entries(), begin + step));
        return Status();
    });
}

/// Joins each list of entries with itself.
Status run_joins(std::vector<std::vector<Entry>> lists, double rate, Simd simd,
                 Execution& execution, std::vector<IndexPair>& pairs, const PairPart& part = {},
                 std::uint64_t most = UINT64_MAX, bool* too_many = nullptr) {
    pairs.clear();
    std::vector<Join> joins;
    joins.reserve(lists.size());
    for (std::vector<Entry>& list : lists) {
        if (!sort_entries(list, execution.stop())) return Status::cancelled();
        joins.emplace_back(std::move(list), rate, simd);
    }
    GPUTEXT_TRY(set_features(joins, execution));

    std::vector<Task> tasks;
    std::uint64_t stripes = 0;
    for (Join& join : joins) {
        const std::size_t blocks = join.blocks(part, stripes);
        for (std::size_t block = 0; block < blocks; ++block) tasks.push_back({&join, block});
    }
    // Two signatures of one block size may be found at that size and at the next.
    PairLists found(execution.threads(), most);
    execution.begin_phase("comparing signatures", tasks.size());
    GPUTEXT_TRY(execution.parallel_for(tasks.size(), [&](std::size_t i, unsigned worker) {
        tasks[i].join->run_block(tasks[i].number, worker, execution.stop(), found);
        return Status();
    }));
    if (found.too_many(0)) {
        *too_many = true;
        return {};
    }
    return found.take(pairs, execution.stop());
}

}  // namespace

Status join_signatures(std::span<const Ctph> signatures, double rate, Simd simd,
                       Execution& execution, std::vector<IndexPair>& pairs, std::uint64_t most,
                       bool* too_many, const PairPart& part) {
    std::vector<std::vector<Entry>> by_level(Ctph::max_level + 2);
    for (std::uint32_t i = 0; i < signatures.size(); ++i)
        by_level[signatures[i].level].push_back({signatures[i].first(), i});
    for (std::uint32_t i = 0; i < signatures.size(); ++i)
        by_level[signatures[i].level + 1u].push_back({signatures[i].second(), i});
    return run_joins(std::move(by_level), rate, simd, execution, pairs, part, most, too_many);
}

Status join_letters(std::span<const std::string_view> strings, double rate, Simd simd,
                    Execution& execution, std::vector<IndexPair>& pairs) {
    std::vector<std::vector<Entry>> lists(1);
    for (std::size_t i = 0; i < strings.size(); ++i)
        lists[0].push_back({strings[i], static_cast<std::uint32_t>(i)});
    return run_joins(std::move(lists), rate, simd, execution, pairs);
}

}  // namespace gputext
