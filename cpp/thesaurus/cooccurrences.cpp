#include "cpp/thesaurus/cooccurrences.hpp"

#include <algorithm>
#include <bit>
#include <memory>
#include <new>
#include <span>
#include <string>
#include <utility>

#include "cpp/base/memory_budget.hpp"
#include "cpp/base/stoppable.hpp"

namespace gputext {
namespace {

Status invalid(std::string message) {
    return {ErrorCode::invalid_argument, std::move(message)};
}

/// Columns that a thread counts at a time: their counters stay in a processor's caches if there is
/// the memory, and else are few.
constexpr std::uint64_t kMostCounters = std::uint64_t{1} << 22;
constexpr std::uint64_t kLeastCounters = std::uint64_t{1} << 16;
constexpr std::uint64_t kBytesOfCounter = 5;  // with the bits that say which ones are in use

/// Occurrences of a task's words, and words of one task.
constexpr std::uint64_t kOccurrencesOfTask = std::uint64_t{1} << 15;
constexpr std::uint32_t kWordsOfTask = 4096;

/// Counters for a range of columns, of which most are 0: they are found, in their order, by bits
/// and by bits of these bits.
class Counters {
public:
    void reserve(std::uint64_t size) {
        counts_.assign(size, 0);
        used_.assign(size / 64 + 1, 0);
        used_words_.assign(size / 4096 + 1, 0);
    }

    /// False when the count does not fit any more.
    bool add(std::uint64_t column) {
        if (++counts_[column] > 1) [[likely]]
            return true;
        if (counts_[column] == 0) return false;
        used_[column / 64] |= std::uint64_t{1} << column % 64;
        used_words_[column / 4096] |= std::uint64_t{1} << column / 64 % 64;
        return true;
    }

    /// Calls take(column, count), ascending, for those above 0, and makes them 0.
    template <class Take>
    void take_all(Take&& take) {
        for (std::size_t i = 0; i < used_words_.size(); ++i)
            for (; used_words_[i] != 0; used_words_[i] &= used_words_[i] - 1) {
                const std::size_t j = 64 * i + std::countr_zero(used_words_[i]);
                for (; used_[j] != 0; used_[j] &= used_[j] - 1) {
                    const std::size_t column = 64 * j + std::countr_zero(used_[j]);
                    take(column, std::exchange(counts_[column], 0));
                }
            }
    }

private:
    std::vector<std::uint32_t> counts_;
    std::vector<std::uint64_t> used_, used_words_;
};

/// The rows of some words.
struct Rows {
    std::uint32_t begin = 0, end = 0;
    std::vector<std::uint32_t> columns, counts;
};

class Counting {
public:
    Counting(const CooccurrenceShape& shape, const TokenStream& tokens, std::size_t memory_limit,
             std::size_t answer_limit, Execution& execution)
        : shape_(shape),
          tokens_(tokens),
          memory_limit_(memory_limit),
          budget_(answer_limit),
          execution_(execution),
          scratch_(execution.threads()) {
        const auto window = static_cast<std::int32_t>(shape.window);
        for (std::int32_t offset = -window; offset <= window; ++offset)
            relation_begins_.push_back(
                offset == 0 ? 0 : std::uint64_t{shape.relation_of(offset)} * shape.words);
    }

    Status run(Cooccurrences& answer) {
        GPUTEXT_TRY(check_tokens());
        GPUTEXT_TRY(count_words());
        plan();
        answer.shape = shape_;
        if (!stoppable_assign(answer.begins, std::size_t{shape_.words} + 1, std::uint64_t{0},
                              execution_.stop()))
            return Status::cancelled();
        for (std::uint32_t word = 0; word < shape_.words;) {
            const std::uint32_t end = part_end(word);
            GPUTEXT_TRY(find_occurrences(word, end));
            GPUTEXT_TRY(count_rows(word, end, answer.begins));
            word = end;
        }
        scratch_.clear();
        occurrences_ = {};
        return gather(answer);
    }

private:
    struct Scratch {
        Counters counters;
        std::vector<std::uint32_t> columns, counts;
    };

    Status check_tokens() {
        const std::size_t size = tokens_.words.size();
        if (tokens_.positions.size() != size)
            return invalid("there must be a position for each word");
        if (size > UINT32_MAX)
            return invalid("there may be at most 4294967295 words, not " + std::to_string(size));
        const std::size_t tasks = (size + kLookEvery - 1) / kLookEvery;
        execution_.begin_phase("checking words", tasks);
        return execution_.parallel_for(tasks, [&](std::size_t task, unsigned) {
            const std::size_t begin = task * kLookEvery, end = std::min(size, begin + kLookEvery);
            std::uint32_t largest = 0, descents = 0;
            for (std::size_t i = begin; i < end; ++i) largest = std::max(largest, tokens_.words[i]);
            for (std::size_t i = std::max<std::size_t>(1, begin); i < end; ++i)
                descents += tokens_.positions[i] < tokens_.positions[i - 1];
            if (largest >= shape_.words && begin < end)
                return invalid("word " + std::to_string(largest) +
                               " is not of the vocabulary, which has " +
                               std::to_string(shape_.words));
            if (descents != 0) return invalid("the positions of words must ascend");
            return Status();
        });
    }

    Status count_words() {
        if (!stoppable_assign(frequencies_, shape_.words, 0u, execution_.stop()))
            return Status::cancelled();
        const std::size_t size = tokens_.words.size();
        execution_.begin_phase("counting words", size);
        for (std::size_t begin = 0; begin < size; begin += kLookEvery) {
            const std::size_t end = std::min(size, begin + kLookEvery);
            for (std::size_t i = begin; i < end; ++i) ++frequencies_[tokens_.words[i]];
            GPUTEXT_TRY(execution_.checkpoint(end - begin));
        }
        return {};
    }

    /// Divides the memory between occurrences and counters.
    void plan() {
        const std::uint64_t counters = memory_limit_ / 2 / kBytesOfCounter / execution_.threads();
        counters_ = std::clamp(counters, kLeastCounters, std::max(kLeastCounters, kMostCounters));
        counters_ = std::max<std::uint64_t>(1, std::min(counters_, shape_.columns()));
        most_occurrences_ = memory_limit_ / 2 / sizeof(std::uint32_t);
    }

    /// The words from `word` on whose occurrences are found together: at least one.
    std::uint32_t part_end(std::uint32_t word) const {
        std::uint64_t occurrences = 0;
        do occurrences += frequencies_[word++];
        while (word < shape_.words && occurrences + frequencies_[word] <= most_occurrences_);
        return word;
    }

    /// Fills occurrences_ with the places of the words from `begin` to `end`, word by word, and
    /// occurrence_begins_.
    Status find_occurrences(std::uint32_t begin, std::uint32_t end) {
        const std::size_t words = end - begin;
        occurrence_begins_.assign(1, 0);
        for (std::uint32_t word = begin; word < end; ++word)
            occurrence_begins_.push_back(occurrence_begins_.back() + frequencies_[word]);
        const std::uint64_t occurrences = occurrence_begins_.back();
        if (occurrences_size_ < occurrences) {
            occurrences_ = {};
            occurrences_ = std::make_unique_for_overwrite<std::uint32_t[]>(occurrences);
            occurrences_size_ = occurrences;
        }
        std::vector<std::uint64_t> next(occurrence_begins_.begin(), occurrence_begins_.end() - 1);
        // Each thread reads all words and keeps the places of its own.
        const std::size_t threads = execution_.threads();
        execution_.begin_phase("finding words", threads);
        return execution_.parallel_for(threads, [&](std::size_t task, unsigned) {
            const auto word_at = [&](std::size_t share) {
                return static_cast<std::uint32_t>(
                    std::partition_point(
                        occurrence_begins_.begin(), occurrence_begins_.end() - 1,
                        [&](std::uint64_t at) { return at < occurrences * share / threads; }) -
                    occurrence_begins_.begin());
            };
            const std::uint32_t first = begin + (task == 0 ? 0 : word_at(task));
            const std::uint32_t mine =
                begin +
                (task + 1 == threads ? static_cast<std::uint32_t>(words) : word_at(task + 1)) -
                first;
            const auto size = static_cast<std::uint32_t>(tokens_.words.size());
            for (std::uint32_t i = 0; i < size; ++i) {
                if (i % kLookEvery == 0 && execution_.stop_requested()) return Status::cancelled();
                if (tokens_.words[i] - first < mine)
                    occurrences_[next[tokens_.words[i] - begin]++] = i;
            }
            return Status();
        });
    }

    /// Appends the rows of the words from `begin` to `end` to rows_, and sets how many features
    /// each has, one behind where it is to begin.
    Status count_rows(std::uint32_t begin, std::uint32_t end, std::vector<std::uint64_t>& sizes) {
        const std::size_t first = rows_.size();
        for (std::uint32_t word = begin; word < end;) {
            Rows rows;
            rows.begin = word;
            std::uint64_t occurrences = 0;
            do occurrences += frequencies_[word++];
            while (word < end && word - rows.begin < kWordsOfTask &&
                   occurrences + frequencies_[word] <= kOccurrencesOfTask);
            rows.end = word;
            rows_.push_back(std::move(rows));
        }
        execution_.begin_phase("counting neighbors", rows_.size() - first);
        return execution_.parallel_for(
            rows_.size() - first, [&](std::size_t task, unsigned worker) {
                if (!scratch_[worker]) {
                    scratch_[worker] = std::make_unique<Scratch>();
                    scratch_[worker]->counters.reserve(counters_);
                }
                Scratch& scratch = *scratch_[worker];
                Rows& rows = rows_[first + task];
                scratch.columns.clear();
                scratch.counts.clear();
                for (std::uint32_t word = rows.begin; word < rows.end; ++word) {
                    const std::size_t before = scratch.columns.size();
                    const std::uint32_t* occurrences =
                        occurrences_.get() + occurrence_begins_[word - begin];
                    GPUTEXT_TRY(count_row({occurrences, frequencies_[word]}, scratch));
                    sizes[word + 1] = scratch.columns.size() - before;
                    GPUTEXT_TRY(budget_.take(sizes[word + 1] * kBytesOfTriple, "the counts"));
                }
                rows.columns.assign(scratch.columns.begin(), scratch.columns.end());
                rows.counts.assign(scratch.counts.begin(), scratch.counts.end());
                return Status();
            });
    }

    Status count_row(std::span<const std::uint32_t> occurrences, Scratch& scratch) const {
        if (occurrences.empty()) return {};
        for (std::uint64_t first = 0; first < shape_.columns(); first += counters_) {
            GPUTEXT_TRY(count_occurrences(occurrences, first, scratch.counters));
            scratch.counters.take_all([&](std::size_t column, std::uint32_t count) {
                scratch.columns.push_back(static_cast<std::uint32_t>(first + column));
                scratch.counts.push_back(count);
            });
        }
        return {};
    }

    /// Counts the neighbors of all occurrences whose columns are counters_ from `first` on.
    Status count_occurrences(std::span<const std::uint32_t> occurrences, std::uint64_t first,
                             Counters& counters) const {
        const std::uint32_t* const words = tokens_.words.data();
        const std::uint32_t* const positions = tokens_.positions.data();
        const std::size_t size = tokens_.words.size();
        const std::uint32_t window = shape_.window;
        const std::uint64_t* const relations = relation_begins_.data() + window;
        const std::uint64_t most = std::min(counters_, shape_.columns() - first);
        bool fits = true;
        const auto add = [&](std::int64_t offset, std::uint32_t word) {
            const std::uint64_t column = relations[offset] + word - first;
            if (column < most) fits &= counters.add(column);
        };
        std::size_t since_look = 0;
        constexpr std::size_t ahead = 12;  // occurrences whose surroundings are fetched before
        for (std::size_t o = 0; o < occurrences.size(); ++o) {
            if (o + ahead < occurrences.size()) {
                __builtin_prefetch(words + occurrences[o + ahead]);
                __builtin_prefetch(positions + occurrences[o + ahead]);
            }
            const std::size_t at = occurrences[o];
            const std::uint32_t position = positions[at];
            std::size_t left = at, right = at + 1;
            for (; left > 0 && position - positions[left - 1] <= window; --left)
                if (positions[left - 1] != position)
                    add(-static_cast<std::int64_t>(position - positions[left - 1]),
                        words[left - 1]);
            for (; right < size && positions[right] - position <= window; ++right)
                if (positions[right] != position) add(positions[right] - position, words[right]);
            since_look += right - left;
            if (since_look < kLookEvery) continue;
            since_look = 0;
            if (execution_.stop_requested()) return Status::cancelled();
        }
        if (!fits) return invalid("two words stand near one another more than 4294967295 times");
        return {};
    }

    /// Concatenates the parts, and frees each once it is copied.
    Status gather(Cooccurrences& answer) {
        for (std::size_t word = 0; word < shape_.words; ++word)
            answer.begins[word + 1] += answer.begins[word];
        execution_.begin_phase("gathering rows", rows_.size());
        answer.columns.reserve(answer.begins.back());
        answer.counts.reserve(answer.begins.back());
        for (Rows& rows : rows_) {
            answer.columns.insert(answer.columns.end(), rows.columns.begin(), rows.columns.end());
            answer.counts.insert(answer.counts.end(), rows.counts.begin(), rows.counts.end());
            rows = {};
            GPUTEXT_TRY(execution_.checkpoint());
        }
        return {};
    }

    const CooccurrenceShape shape_;
    const TokenStream tokens_;
    const std::size_t memory_limit_;
    MemoryBudget budget_;  // of the counts
    Execution& execution_;
    std::vector<std::uint64_t> relation_begins_;  // by offset + window: its first column
    std::vector<std::uint32_t> frequencies_;      // by word
    std::uint64_t counters_ = 0, most_occurrences_ = 0;
    std::unique_ptr<std::uint32_t[]> occurrences_;
    std::uint64_t occurrences_size_ = 0;
    std::vector<std::uint64_t> occurrence_begins_;
    std::vector<std::unique_ptr<Scratch>> scratch_;  // by worker
    std::vector<Rows> rows_;
};

}  // namespace

Status check_shape(const CooccurrenceShape& shape) {
    if (shape.window < 1 || shape.window > CooccurrenceShape::kMostWindow)
        return invalid("the window must be from 1 to " +
                       std::to_string(CooccurrenceShape::kMostWindow) + ", not " +
                       std::to_string(shape.window));
    if (shape.columns() > UINT32_MAX)
        return invalid(std::to_string(shape.words) + " words in " +
                       std::to_string(shape.relations()) +
                       " places make more features than the 4294967295 that there may be");
    return {};
}

Result<Cooccurrences> count_cooccurrences(const CooccurrenceShape& shape, const TokenStream& tokens,
                                          std::size_t memory_limit, Execution& execution,
                                          std::size_t answer_limit) try {
    GPUTEXT_TRY(check_shape(shape));
    Cooccurrences answer;
    GPUTEXT_TRY(Counting(shape, tokens, memory_limit, answer_limit, execution).run(answer));
    return answer;
} catch (const std::bad_alloc&) {
    return Status::out_of_memory();
}

}  // namespace gputext
