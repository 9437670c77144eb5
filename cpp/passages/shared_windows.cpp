#include "cpp/passages/shared_windows.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <memory>
#include <numeric>
#include <vector>

#include "cpp/base/exception_status.hpp"
#include "cpp/base/large_pages.hpp"
#include "cpp/base/stoppable.hpp"
#include "cpp/passages/rolling_hash.hpp"

namespace gputext {
namespace {

/// Symbols of a gram. Longer ones are rarer, shorter ones fewer.
constexpr std::size_t kGram = 16;
/// Symbols of documents that a thread looks at in a step.
constexpr std::uint64_t kSymbolsOfStep = std::uint64_t{1} << 20;
/// Of so many of a window's grams at most the least one is taken. More would take more memory.
constexpr std::size_t kMostGrams = 4096;
/// What is to be looked up is fetched so many before.
constexpr std::size_t kAhead = 16;
constexpr unsigned kBucketBits = 10;
constexpr std::size_t kBuckets = std::size_t{1} << kBucketBits;

/// The least of the last so many values.
class SlidingLeast {
public:
    explicit SlidingLeast(std::size_t window)
        : window_(window), mask_(std::bit_ceil(window) - 1), values_(mask_ + 1) {}

    void push(std::uint64_t value) {
        values_[pushed_ & mask_] = value;
        // Of equal ones the last is kept: a text of one character never looks at a window again.
        if (pushed_ == 0 || value <= least_)
            least_ = value, place_ = pushed_;
        else if (place_ + window_ <= pushed_)
            look_again();
        ++pushed_;
    }
    std::uint64_t value() const { return least_; }

private:
    void look_again() {
        least_ = UINT64_MAX;
        for (std::size_t place = pushed_ - window_ + 1; place <= pushed_; ++place) {
            const std::uint64_t value = values_[place & mask_];
            if (value <= least_) least_ = value, place_ = place;
        }
    }

    std::size_t window_, mask_;
    std::size_t pushed_ = 0, place_ = 0;
    std::uint64_t least_ = 0;
    std::vector<std::uint64_t> values_;
};

/// In which documents grams with a hash occur, as far as it is of interest. A slot has half of a
/// gram's hash, and in its lower half 0 for none, else the one document or the one table, from 1.
class GramSlots {
public:
    /// Before all others: room for so many. Error: cancelled.
    Status reset(std::uint64_t grams, Execution& execution) {
        constexpr std::size_t kSlotsOfStep = std::size_t{1} << 18;
        const std::size_t slots = std::bit_ceil(std::max<std::uint64_t>(grams + grams / 2, 1024));
        mask_ = slots - 1;
        slots_ = unwritten_pages<std::uint64_t>(slots);
        const std::size_t steps = (slots + kSlotsOfStep - 1) / kSlotsOfStep;
        return execution.parallel_for(steps, [&](std::size_t step, unsigned) {
            const std::size_t begin = step * kSlotsOfStep;
            std::fill(slots_.get() + begin, slots_.get() + std::min(slots, begin + kSlotsOfStep), 0);
            return Status();
        });
    }

    /// `where` is a document or a table.
    void add(std::uint64_t hash, std::uint32_t where) { put(hash, where + std::uint64_t{1}, true); }
    /// The same, but false for grams that are not there yet.
    bool add_again(std::uint64_t hash, std::uint32_t where) {
        return put(hash, where + std::uint64_t{1}, false);
    }
    /// Has the processor fetch what a call soon after looks at.
    void prefetch(std::uint64_t hash) const { __builtin_prefetch(&slots_[place(hash, 0)]); }
    /// A gram that found no room may be anywhere.
    bool shared(std::uint64_t hash) const {
        for (std::size_t probe = 0; probe < kProbes; ++probe) {
            const std::uint64_t slot = slots_[place(hash, probe)];
            if (slot == 0) return false;
            if (same(slot, hash)) return (slot & kWhere) == kShared;
        }
        return true;
    }

private:
    static constexpr std::uint64_t kWhere = UINT32_MAX, kShared = UINT32_MAX;
    static constexpr std::size_t kProbes = 64;

    /// Whether it is there, or may be for all that is known.
    bool put(std::uint64_t hash, std::uint64_t one, bool may_be_new) {
        for (std::size_t probe = 0; probe < kProbes; ++probe) {
            std::atomic_ref<std::uint64_t> slot(slots_[place(hash, probe)]);
            std::uint64_t seen = slot.load(std::memory_order_relaxed);
            while (seen == 0 || same(seen, hash)) {
                if (seen == 0 && !may_be_new) return false;
                const bool is_one = seen == 0 || (seen & kWhere) == one;
                const std::uint64_t now = (hash & ~kWhere) | (is_one ? one : kShared);
                if (now == seen) return true;
                if (slot.compare_exchange_weak(seen, now, std::memory_order_relaxed)) return true;
            }
        }
        return true;
    }
    std::size_t place(std::uint64_t hash, std::size_t probe) const {
        return (hash + probe) & mask_;
    }
    static bool same(std::uint64_t slot, std::uint64_t hash) { return slot >> 32 == hash >> 32; }

    std::unique_ptr<std::uint64_t[]> slots_;
    std::size_t mask_ = 0;
};

/// Windows that follow each other and have the same least gram, or grams that are not in the other
/// table.
struct Sample {
    std::uint64_t hash;  // of the gram
    std::uint64_t windows : 63;
    std::uint64_t absent : 1;
};

/// Windows that follow each other in a document, from one's first symbol on.
struct Run {
    std::uint64_t symbol, windows;
};

struct Window {
    std::uint64_t hash, symbol;

    bool operator<(const Window& other) const {
        return hash != other.hash ? hash < other.hash : symbol < other.symbol;
    }
};

template <class Symbol>
class WindowSearch {
public:
    WindowSearch(const PassageTexts& texts, const Symbol* symbols,
                 const SharedWindowsParameters& parameters, Execution& execution,
                 const WindowGroup& group)
        : texts_(texts),
          symbols_(symbols),
          parameters_(parameters),
          execution_(execution),
          group_(group),
          gram_(std::min(kGram, parameters.length)),
          grams_(std::min(parameters.length - gram_ + 1, kMostGrams)),
          sorted_(execution.threads()),
          ends_(execution.threads()),
          group_symbols_(execution.threads()) {}

    Status run() {
        divide();
        GPUTEXT_TRY(sample());
        GPUTEXT_TRY(count());
        for (std::size_t first = 0; first < kBuckets;) {
            const std::size_t last = end_of_part(first);
            GPUTEXT_TRY(fill(first, last));
            GPUTEXT_TRY(put_into_groups(first, last));
            first = last;
        }
        return {};
    }

private:
    std::size_t steps() const { return first_documents_.size() - 1; }
    std::uint64_t symbols_of_table(bool second) const {
        const std::uint64_t first = texts_.begin(parameters_.split);
        return second ? texts_.symbols() - first : first;
    }
    /// With two tables only grams of the smaller one can be in both.
    bool second_is_smaller() const { return symbols_of_table(true) < symbols_of_table(false); }
    std::uint64_t symbols_of_slots() const {
        return parameters_.two_tables ? symbols_of_table(second_is_smaller()) : texts_.symbols();
    }
    bool second_table(std::size_t document) const {
        return parameters_.two_tables && document >= parameters_.split;
    }
    void divide();
    Status sample();
    Status count();
    std::size_t end_of_part(std::size_t first) const;
    Status fill(std::size_t first, std::size_t last);
    Status put_into_groups(std::size_t first, std::size_t last);
    Status put_into_groups(std::span<Window> windows, unsigned worker);
    Status give(std::span<const Window> windows, unsigned worker);
    bool equal(std::uint64_t a, std::uint64_t b, std::size_t length) const {
        return std::memcmp(symbols_ + a, symbols_ + b, length * sizeof(Symbol)) == 0;
    }

    /// Appends the samples of a document. False when stopped.
    bool sample(std::size_t document, std::vector<Sample>& samples);
    /// Those windows of a step whose gram occurs in several documents.
    std::vector<Run> candidates(std::size_t step) const;
    /// Calls window(hash, symbol) for each window. False when stopped.
    template <class TakeWindow>
    bool each_window(const Run& run, const TakeWindow& window) const {
        return gputext::each_window(symbols_, run.symbol, run.windows, parameters_.length,
                                    execution_.stop(), window);
    }
    /// Puts a bucket's windows into the worker's sorted ones, by hash and symbol. False when
    /// stopped.
    bool sort(std::span<const Window> windows, unsigned worker);

    const PassageTexts& texts_;
    const Symbol* symbols_;
    const SharedWindowsParameters& parameters_;
    Execution& execution_;
    const WindowGroup& group_;
    std::size_t gram_, grams_;  // symbols of a gram, last grams of a window
    GramSlots slots_;
    std::vector<std::size_t> first_documents_;  // of each step, and the end
    std::vector<std::uint64_t> counts_;         // windows: [step][bucket]
    std::vector<std::uint64_t> of_buckets_;
    std::vector<std::vector<Sample>> samples_;  // of each step, until its runs are known
    std::vector<std::vector<Run>> runs_;        // of each step
    std::unique_ptr<Window[]> windows_;
    std::vector<std::uint64_t> begins_;  // of each bucket of a part, and the end
    // Of each worker
    std::vector<std::vector<Window>> sorted_;
    std::vector<std::vector<std::size_t>> ends_;
    std::vector<std::vector<std::uint64_t>> group_symbols_;
};

template <class Symbol>
void WindowSearch<Symbol>::divide() {
    first_documents_.push_back(0);
    for (std::size_t d = 0; d < texts_.documents(); ++d)
        if (texts_.begin(d + 1) - texts_.begin(first_documents_.back()) >= kSymbolsOfStep ||
            second_table(d) != second_table(d + 1))
            first_documents_.push_back(d + 1);
    if (first_documents_.back() < texts_.documents())
        first_documents_.push_back(texts_.documents());
}

template <class Symbol>
bool WindowSearch<Symbol>::sample(std::size_t document, std::vector<Sample>& samples) {
    const Stop stop = execution_.stop();
    const std::uint64_t begin = texts_.begin(document), end = texts_.begin(document + 1);
    const std::size_t length = parameters_.length;
    if (end - begin < length) return true;
    RollingHash of_gram(gram_);
    SlidingLeast least(grams_);
    const auto enter = [&](std::uint64_t at) {
        of_gram.enter(symbols_[at]);
        if (at - begin >= gram_) of_gram.leave(symbols_[at - gram_]);
        if (grams_ > 1 && at - begin + 1 >= gram_) least.push(of_gram.value());
    };
    // With two tables the larger one comes last.
    const bool adds = !parameters_.two_tables || second_table(document) == second_is_smaller();
    const std::uint32_t where = parameters_.two_tables ? second_table(document)
                                                       : static_cast<std::uint32_t>(document);
    std::uint64_t at = begin;
    for (; at + 1 < begin + length; ++at) {
        if ((at - begin) % kLookEvery == kLookEvery - 1 && stop()) return false;
        enter(at);
    }
    bool is_first = true;
    std::size_t added = samples.size();
    for (; at < end; ++at) {
        if ((at - begin) % kLookEvery == kLookEvery - 1 && stop()) return false;
        enter(at);
        const std::uint64_t hash = grams_ > 1 ? least.value() : of_gram.value();
        const bool follows = !is_first && !samples.back().absent;
        if (follows && samples.back().hash == hash) {
            ++samples.back().windows;
            continue;
        }
        if (adds) {
            slots_.prefetch(hash);
            if (samples.size() - added >= kAhead) slots_.add(samples[added++].hash, where);
        } else if (!slots_.add_again(hash, where)) {
            if (is_first || follows)
                samples.push_back({0, 1, 1});
            else
                ++samples.back().windows;
            is_first = false;
            continue;
        }
        samples.push_back({hash, 1, 0});
        is_first = false;
    }
    for (; adds && added < samples.size(); ++added) slots_.add(samples[added].hash, where);
    return true;
}

/// Which grams occur in several documents.
template <class Symbol>
Status WindowSearch<Symbol>::sample() {
    samples_.resize(steps());
    execution_.begin_phase("sampling", steps());
    const std::uint64_t grams = 2 * symbols_of_slots() / (grams_ + 1) + texts_.documents();
    GPUTEXT_TRY(slots_.reset(grams, execution_));
    const auto sample_table = [&](bool second) {
        return execution_.parallel_for(steps(), [&](std::size_t step, unsigned) -> Status {
            if (second_table(first_documents_[step]) != second) return {};
            for (std::size_t d = first_documents_[step]; d < first_documents_[step + 1]; ++d)
                if (!sample(d, samples_[step])) return Status::cancelled();
            return {};
        });
    };
    if (!parameters_.two_tables) return sample_table(false);
    GPUTEXT_TRY(sample_table(second_is_smaller()));
    return sample_table(!second_is_smaller());
}

template <class Symbol>
std::vector<Run> WindowSearch<Symbol>::candidates(std::size_t step) const {
    std::vector<Run> runs;
    auto sample = samples_[step].begin();
    const auto last = samples_[step].end();
    for (std::size_t d = first_documents_[step]; d < first_documents_[step + 1]; ++d) {
        const std::uint64_t end = texts_.begin(d + 1);
        bool goes_on = false;
        for (std::uint64_t at = texts_.begin(d); at + parameters_.length <= end; ++sample) {
            if (static_cast<std::size_t>(last - sample) > kAhead)
                slots_.prefetch(sample[kAhead].hash);
            const bool shared = !sample->absent && slots_.shared(sample->hash);
            if (shared && goes_on)
                runs.back().windows += sample->windows;
            else if (shared)
                runs.push_back({at, sample->windows});
            goes_on = shared;
            at += sample->windows;
        }
    }
    return runs;
}

template <class Symbol>
Status WindowSearch<Symbol>::count() {
    counts_.assign(steps() * kBuckets, 0);
    runs_.resize(steps());
    execution_.begin_phase("counting windows", steps());
    GPUTEXT_TRY(execution_.parallel_for(steps(), [&](std::size_t step, unsigned) -> Status {
        std::uint64_t* const counts = counts_.data() + step * kBuckets;
        runs_[step] = candidates(step);
        samples_[step] = {};
        for (const Run& run : runs_[step])
            if (!each_window(run, [&](std::uint64_t hash, std::uint64_t) {
                    ++counts[hash >> (64 - kBucketBits)];
                }))
                return Status::cancelled();
        return {};
    }));
    of_buckets_.assign(kBuckets, 0);
    for (std::size_t step = 0; step < steps(); ++step)
        for (std::size_t bucket = 0; bucket < kBuckets; ++bucket)
            of_buckets_[bucket] += counts_[step * kBuckets + bucket];
    return {};
}

/// Of the buckets that memory allows at a time; at least one.
template <class Symbol>
std::size_t WindowSearch<Symbol>::end_of_part(std::size_t first) const {
    const std::uint64_t most = parameters_.memory_limit / sizeof(Window);
    std::size_t last = first + 1;
    for (std::uint64_t windows = of_buckets_[first];
         last < kBuckets && windows + of_buckets_[last] <= most; ++last)
        windows += of_buckets_[last];
    return last;
}

template <class Symbol>
Status WindowSearch<Symbol>::fill(std::size_t first, std::size_t last) {
    begins_.assign(1, 0);
    for (std::size_t bucket = first; bucket < last; ++bucket)
        begins_.push_back(begins_.back() + of_buckets_[bucket]);
    if (begins_.back() == 0) return {};
    windows_.reset();  // before the next ones
    windows_ = unwritten_pages<Window>(begins_.back());
    // Where each step writes its windows
    std::vector<std::uint64_t> next = begins_;
    std::vector<std::uint64_t> places(steps() * (last - first));
    for (std::size_t step = 0; step < steps(); ++step)
        for (std::size_t bucket = first; bucket < last; ++bucket) {
            places[step * (last - first) + bucket - first] = next[bucket - first];
            next[bucket - first] += counts_[step * kBuckets + bucket];
        }
    execution_.begin_phase("collecting windows", steps());
    return execution_.parallel_for(steps(), [&](std::size_t step, unsigned) -> Status {
        std::uint64_t* const at = places.data() + step * (last - first);
        for (const Run& run : runs_[step])
            if (!each_window(run, [&](std::uint64_t hash, std::uint64_t symbol) {
                    const std::size_t bucket = hash >> (64 - kBucketBits);
                    if (bucket >= first && bucket < last)
                        windows_[at[bucket - first]++] = {hash, symbol};
                }))
                return Status::cancelled();
        return {};
    });
}

template <class Symbol>
Status WindowSearch<Symbol>::put_into_groups(std::size_t first, std::size_t last) {
    execution_.begin_phase("comparing windows", last - first);
    return execution_.parallel_for(last - first, [&](std::size_t i, unsigned worker) -> Status {
        if (!sort({windows_.get() + begins_[i], begins_[i + 1] - begins_[i]}, worker))
            return Status::cancelled();
        const std::span<Window> windows = sorted_[worker];
        for (std::size_t begin = 0, end = 0; begin < windows.size(); begin = end) {
            while (end < windows.size() && windows[end].hash == windows[begin].hash) ++end;
            if (end - begin > 1)
                GPUTEXT_TRY(put_into_groups(windows.subspan(begin, end - begin), worker));
        }
        return {};
    });
}

/// Those of one hash are ascending already, and the first bits of all hashes are the same.
template <class Symbol>
bool WindowSearch<Symbol>::sort(std::span<const Window> windows, unsigned worker) {
    constexpr std::size_t kFew = 32;
    const std::size_t parts = std::bit_ceil(std::clamp<std::size_t>(windows.size() / 8, 2, 4096));
    const auto part_of = [&](const Window& window) {
        return window.hash << kBucketBits >> (64 - std::countr_zero(parts));
    };
    std::vector<Window>& sorted = sorted_[worker];
    std::vector<std::size_t>& ends = ends_[worker];
    if (!stoppable_assign(sorted, windows.size(), Window{}, execution_.stop())) return false;
    ends.assign(parts + 1, 0);
    for (std::size_t i = 0; i < windows.size(); ++i) {
        if (i % kLookEvery == kLookEvery - 1 && execution_.stop_requested()) return false;
        ++ends[part_of(windows[i]) + 1];
    }
    std::partial_sum(ends.begin(), ends.end(), ends.begin());
    for (std::size_t i = 0; i < windows.size(); ++i) {
        if (i % kLookEvery == kLookEvery - 1 && execution_.stop_requested()) return false;
        sorted[ends[part_of(windows[i])]++] = windows[i];
    }
    if (execution_.stop_requested()) return false;
    for (std::size_t part = 0, begin = 0; part < parts; begin = ends[part++]) {
        const std::span<Window> few = std::span(sorted).subspan(begin, ends[part] - begin);
        if (few.size() > kFew) {
            if (!stoppable_sort(few.begin(), few.end(), std::less<>(), execution_.stop()))
                return false;
            continue;
        }
        for (std::size_t i = 1; i < few.size(); ++i) {
            const Window window = few[i];
            std::size_t at = i;
            for (; at > 0 && window.hash < few[at - 1].hash; --at) few[at] = few[at - 1];
            few[at] = window;
        }
    }
    return true;
}

/// Windows of one hash, which are nearly always equal.
template <class Symbol>
Status WindowSearch<Symbol>::put_into_groups(std::span<Window> windows, unsigned worker) {
    constexpr std::size_t kSymbolsOfWindow = 64;  // what one costs in any case
    const std::size_t length = parameters_.length;
    bool all_equal = true;
    std::uint64_t before = 0;  // from the last window but one to the last one
    std::size_t compared = 0;
    for (std::size_t i = 1; i < windows.size() && all_equal; ++i) {
        if (i + kAhead < windows.size()) __builtin_prefetch(symbols_ + windows[i + kAhead].symbol);
        // Of a repetition all but the last symbols are compared already, at the same distance.
        const std::uint64_t last = windows[i - 1].symbol, distance = windows[i].symbol - last;
        const std::size_t known = distance == before && distance < length ? length - distance : 0;
        all_equal = equal(last + known, windows[i].symbol + known, length - known);
        before = distance;
        compared += length - known + kSymbolsOfWindow;
        if (compared < kLookEvery) continue;
        compared = 0;
        if (execution_.stop_requested()) return Status::cancelled();
    }
    if (all_equal) return give(windows, worker);
    const auto less = [&](const Window& a, const Window& b) {
        const int order = std::memcmp(symbols_ + a.symbol, symbols_ + b.symbol,
                                      parameters_.length * sizeof(Symbol));
        return order != 0 ? order < 0 : a.symbol < b.symbol;
    };
    if (!stoppable_sort(windows.begin(), windows.end(), less, execution_.stop(), length))
        return Status::cancelled();
    for (std::size_t begin = 0, end = 0; begin < windows.size(); begin = end) {
        if (execution_.stop_requested()) return Status::cancelled();
        while (end < windows.size() && equal(windows[begin].symbol, windows[end].symbol, length))
            ++end;
        GPUTEXT_TRY(give(windows.subspan(begin, end - begin), worker));
    }
    return {};
}

template <class Symbol>
Status WindowSearch<Symbol>::give(std::span<const Window> windows, unsigned worker) {
    const std::uint64_t first = windows.front().symbol, last = windows.back().symbol;
    const bool shared =
        parameters_.two_tables
            ? first < texts_.begin(parameters_.split) && last >= texts_.begin(parameters_.split)
            : last >= texts_.begin(texts_.document_of(first) + 1);
    if (!shared) return {};
    std::vector<std::uint64_t>& symbols = group_symbols_[worker];
    symbols.clear();
    for (const Window& window : windows) symbols.push_back(window.symbol);
    return group_(symbols, worker);
}

}  // namespace

Status each_shared_window(const PassageTexts& texts, const SharedWindowsParameters& parameters,
                          Execution& execution, const WindowGroup& group) {
    return status_or_exception([&]() -> Status {
        if (texts.narrow())
            return WindowSearch(texts, texts.bytes(), parameters, execution, group).run();
        return WindowSearch(texts, texts.numbers(), parameters, execution, group).run();
    });
}

}  // namespace gputext
