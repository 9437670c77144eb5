#include "cpp/signature_join.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>
#include <optional>

#include "cpp/edit_distance.hpp"
#include "cpp/letter_filter.hpp"
#include "cpp/signature_distance.hpp"
#include "cpp/stoppable.hpp"

namespace gputext {
namespace {

/// One part of one signature, in the order in which the join looks at them.
struct Entry {
    std::string_view letters;
    std::uint32_t index;  // in the caller's input
};

bool shorter(const Entry& a, const Entry& b) {
    return std::pair(a.letters.size(), a.index) < std::pair(b.letters.size(), b.index);
}

/// Entries of one block size, sorted by length, joined with themselves.
class Join {
public:
    Join(std::vector<Entry> entries, double rate, Simd simd)
        : entries_(std::move(entries)),
          rate_(rate),
          longest_(entries_.empty() ? 0 : entries_.back().letters.size()),
          counts_(entries_.size(), letter_filter_depth(longest_)),
          filter_(letter_filter(simd, counts_.depth())) {}

    /// Comes first; false when stopped.
    bool count_letters(Stop stop) {
        for (std::size_t i = 0; i < entries_.size(); ++i) {
            if (i % 4096 == 0 && stop()) return false;
            counts_.set(i, entries_[i].letters);
        }
        return true;
    }

    /// Blocks of rows: at most kBlockOfRows entries of one length.
    std::size_t blocks() {
        for (std::size_t begin = 0; begin < entries_.size();) {
            std::size_t end = begin + 1;
            while (end < entries_.size() && end - begin < kBlockOfRows &&
                   length(end) == length(begin))
                ++end;
            blocks_.push_back({begin, end});
            begin = end;
        }
        return blocks_.size();
    }

    /// Ends early when stopped.
    void run_block(std::size_t block, Stop stop, std::vector<IndexPair>& pairs) const {
        const auto [begin, end] = blocks_[block];
        const std::size_t columns_end = end_of_comparable(length(begin));
        std::array<std::int64_t, kBlockOfColumns> least;
        std::array<std::uint32_t, kBlockOfColumns + 1> hits;
        for (std::size_t from = begin + 1; from < columns_end; from += kBlockOfColumns) {
            const std::size_t to = std::min(columns_end, from + kBlockOfColumns);
            set_least_common(length(begin), from, to, least);
            for (std::size_t row = begin; row < end && row + 1 < to; ++row) {
                // All columns may have to be verified.
                if (stop()) return;
                const std::size_t after_row = std::max(from, row + 1);
                std::array<std::uint64_t, LetterCounts::max_depth> words;
                counts_.copy_column(row, words.data());
                const std::size_t count = filter_(words.data(), counts_, after_row, to,
                                                  least.data() + (after_row - from), hits.data());
                verify(row, std::span(hits).first(count), pairs);
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
        return most_edits_below(rate_, a_length + b_length);
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

    void verify(std::size_t row, std::span<const std::uint32_t> columns,
                std::vector<IndexPair>& pairs) const {
        if (columns.empty()) return;
        const SignaturePattern pattern(entries_[row].letters);
        for (const std::uint32_t column : columns) {
            const std::size_t distance = pattern.distance(entries_[column].letters);
            if (edit_rate(distance, length(row) + length(column)) < rate_) {
                const auto [first, second] =
                    std::minmax(entries_[row].index, entries_[column].index);
                pairs.push_back({first, second});
            }
        }
    }

    std::vector<Entry> entries_;
    double rate_;
    std::size_t longest_;
    LetterCounts counts_;
    LetterFilter filter_;
    std::vector<Rows> blocks_;
};

/// Joins each list of entries with itself and brings the pairs into order, each once.
Status run_joins(std::vector<std::vector<Entry>> lists, double rate, Simd simd,
                 Execution& execution, std::vector<IndexPair>& pairs) {
    pairs.clear();
    if (!any_rate_below(rate)) return {};

    struct Task {
        const Join* join;
        std::size_t block;
    };
    std::vector<Join> joins;
    std::vector<Task> tasks;
    joins.reserve(lists.size());
    for (std::vector<Entry>& list : lists) {
        if (!stoppable_sort(list, shorter, execution.stop())) return Status::cancelled();
        Join& join = joins.emplace_back(std::move(list), rate, simd);
        if (!join.count_letters(execution.stop())) return Status::cancelled();
        const std::size_t blocks = join.blocks();
        for (std::size_t block = 0; block < blocks; ++block) tasks.push_back({&join, block});
    }

    execution.begin_phase("comparing signatures", tasks.size());
    std::vector<std::vector<IndexPair>> found(execution.threads());
    Status status = execution.parallel_for(tasks.size(), [&](std::size_t i, unsigned worker) {
        tasks[i].join->run_block(tasks[i].block, execution.stop(), found[worker]);
        return Status();
    });
    if (!status.ok()) return status;
    if (status = collect_pairs(found, execution.stop(), pairs); !status.ok()) return status;
    // Two signatures of one block size may be near at that size and at the next.
    pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
    return {};
}

}  // namespace

Status collect_pairs(std::vector<std::vector<IndexPair>>& found, Stop stop,
                     std::vector<IndexPair>& pairs) {
    pairs.clear();
    for (std::vector<IndexPair>& part : found) {
        if (stop()) return Status::cancelled();
        pairs.insert(pairs.end(), part.begin(), part.end());
        part = {};
    }
    if (!stoppable_sort(pairs, std::less<IndexPair>(), stop)) return Status::cancelled();
    return {};
}

Status join_signatures(std::span<const Ctph> signatures, double rate, Simd simd,
                       Execution& execution, std::vector<IndexPair>& pairs) {
    std::vector<std::vector<Entry>> by_level(Ctph::max_level + 2);
    for (std::size_t i = 0; i < signatures.size(); ++i) {
        const Ctph& signature = signatures[i];
        const auto index = static_cast<std::uint32_t>(i);
        by_level[signature.level].push_back({signature.first(), index});
        by_level[signature.level + 1u].push_back({signature.second(), index});
    }
    return run_joins(std::move(by_level), rate, simd, execution, pairs);
}

Status join_letters(std::span<const std::string_view> strings, double rate, Simd simd,
                    Execution& execution, std::vector<IndexPair>& pairs) {
    std::vector<std::vector<Entry>> lists(1);
    for (std::size_t i = 0; i < strings.size(); ++i)
        lists[0].push_back({strings[i], static_cast<std::uint32_t>(i)});
    return run_joins(std::move(lists), rate, simd, execution, pairs);
}

}  // namespace gputext
