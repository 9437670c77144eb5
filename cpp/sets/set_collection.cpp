#include "cpp/sets/set_collection.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>

#include "cpp/base/exception_status.hpp"
#include "cpp/base/memory_budget.hpp"
#include "cpp/base/stoppable.hpp"
#include "cpp/passages/rolling_hash.hpp"

namespace gputext {
namespace {

/// A shingle that stands in several documents.
struct SharedShingle {
    std::uint64_t symbol;
    std::uint32_t token;
};

/// How many of a document's shingles are distinct.
template <class Symbol>
class DistinctShingles {
public:
    DistinctShingles(const Symbol* symbols, std::size_t length)
        : symbols_(symbols), length_(length) {}

    /// Of the longest document until now.
    static constexpr std::size_t kBytesOfSymbol = sizeof(std::uint64_t) * 2 + sizeof(std::uint32_t);

    /// False when stopped. O(symbols log symbols), however long the shingles are.
    bool count(std::uint64_t begin, std::uint64_t end, Stop stop, std::uint32_t& distinct) {
        distinct = 0;
        places_.clear();
        if (end - begin < length_) return true;
        if (!hash(begin, end, stop)) return false;
        const auto less = [](const Place& a, const Place& b) {
            return a.hash != b.hash ? a.hash < b.hash : a.symbol < b.symbol;
        };
        if (!stoppable_sort(places_.begin(), places_.end(), less, stop)) return false;
        bool collision = false;
        if (!count_by_hash(begin, stop, distinct, collision)) return false;
        return !collision || count_by_symbols(stop, distinct);
    }

private:
    static constexpr std::uint32_t kNone = UINT32_MAX;

    struct Place {
        std::uint64_t hash, symbol;
    };

    bool hash(std::uint64_t begin, std::uint64_t end, Stop stop) {
        const std::uint64_t windows = end - begin + 1 - length_;
        places_.reserve(windows);
        return each_window(
            symbols_, begin, windows, length_, stop,
            [&](std::uint64_t hash, std::uint64_t symbol) { places_.push_back({hash, symbol}); });
    }

    /// In the order of the document each shingle is compared with the one before it that has the
    /// same hash. Where the shingles next to them on the left were equal, the last symbol is all
    /// that is to be compared.
    bool count_by_hash(std::uint64_t begin, Stop stop, std::uint32_t& distinct, bool& collision) {
        before_.assign(places_.size(), kNone);
        for (std::size_t i = 1; i < places_.size(); ++i)
            if (places_[i].hash == places_[i - 1].hash)
                before_[places_[i].symbol - begin] =
                    static_cast<std::uint32_t>(places_[i - 1].symbol - begin);
        std::size_t compared = 0;
        for (std::size_t i = 0; i < before_.size(); ++i) {
            if (compared >= kLookEvery) {
                compared = 0;
                if (stop()) return false;
            }
            ++compared;
            if (before_[i] == kNone) {
                ++distinct;
                continue;
            }
            const bool goes_on = i > 0 && before_[i - 1] != kNone && before_[i - 1] + 1 == before_[i];
            const std::size_t known = goes_on ? length_ - 1 : 0;
            compared += length_ - known;
            if (std::memcmp(symbols_ + begin + before_[i] + known, symbols_ + begin + i + known,
                            (length_ - known) * sizeof(Symbol)) != 0) {
                collision = true;
                return true;
            }
        }
        return true;
    }

    /// Where different shingles have one hash.
    bool count_by_symbols(Stop stop, std::uint32_t& distinct) {
        const auto order = [&](const Place& a, const Place& b) {
            return std::memcmp(symbols_ + a.symbol, symbols_ + b.symbol, length_ * sizeof(Symbol));
        };
        const auto less = [&](const Place& a, const Place& b) {
            return a.hash != b.hash ? a.hash < b.hash : order(a, b) < 0;
        };
        if (!stoppable_sort(places_.begin(), places_.end(), less, stop, length_)) return false;
        distinct = 0;
        std::size_t compared = 0;
        for (std::size_t i = 0; i < places_.size(); ++i) {
            compared += length_;
            if (compared >= kLookEvery) {
                compared = 0;
                if (stop()) return false;
            }
            distinct += i == 0 || places_[i - 1].hash != places_[i].hash ||
                        order(places_[i - 1], places_[i]) != 0;
        }
        return true;
    }

    const Symbol* symbols_;
    std::size_t length_;
    std::vector<Place> places_;
    std::vector<std::uint32_t> before_;
};

/// Shingles that stand in several documents, as they are found.
class FoundShingles {
public:
    FoundShingles(const PassageTexts& texts, unsigned workers, MemoryBudget& budget)
        : texts_(texts), budget_(budget), found_(workers) {}

    Status add(std::span<const std::uint64_t> symbols, unsigned worker) {
        constexpr std::size_t kAtOnce = std::size_t{1} << 10;
        Found& found = found_[worker];
        const std::uint32_t token = next_.fetch_add(1);
        for (const std::uint64_t symbol : symbols) {
            if (found.shingles.size() == found.counted) {
                GPUTEXT_TRY(budget_.take(kAtOnce * kBytes, kShingles));
                found.counted += kAtOnce;
            }
            found.shingles.push_back({symbol, token});
        }
        return {};
    }
    /// Moves all to the sets of their documents. The sizes of sets with tokens are 1.
    Status collect(SetCollection& sets, Execution& execution);

    static constexpr const char* kShingles = "the shingles of texts";

private:
    struct Found {
        std::vector<SharedShingle> shingles;
        std::size_t counted = 0;
    };
    /// With the tokens, before and after each is there once.
    static constexpr std::size_t kBytes = sizeof(SharedShingle) + 2 * sizeof(std::uint32_t);

    const PassageTexts& texts_;
    MemoryBudget& budget_;
    std::vector<Found> found_;  // of each worker
    std::atomic<std::uint32_t> next_{0};
};

Status FoundShingles::collect(SetCollection& sets, Execution& execution) {
    constexpr std::size_t kShinglesOfStep = std::size_t{1} << 16, kSetsOfStep = 1024;
    const std::size_t count = texts_.documents();
    std::vector<std::span<const SharedShingle>> parts;
    for (const Found& found : found_)
        for (std::size_t i = 0; i < found.shingles.size(); i += kShinglesOfStep)
            parts.push_back(std::span(found.shingles)
                                .subspan(i, std::min(kShinglesOfStep, found.shingles.size() - i)));
    const std::size_t steps = (count + kSetsOfStep - 1) / kSetsOfStep;
    execution.begin_phase("collecting shingles", 2 * (parts.size() + steps));
    std::vector<std::uint64_t> begins(count + 1);
    // Of which document a shingle is, for each shingle
    const auto each_document = [&](const auto& take) {
        return execution.parallel_for(parts.size(), [&](std::size_t part, unsigned) {
            for (const SharedShingle& shingle : parts[part])
                take(std::atomic_ref(begins[texts_.document_of(shingle.symbol)]), shingle.token);
            return Status();
        });
    };
    GPUTEXT_TRY(each_document([](std::atomic_ref<std::uint64_t> counted, std::uint32_t) {
        counted.fetch_add(1, std::memory_order_relaxed);
    }));
    // Ends, which become begins as places are taken from behind
    std::partial_sum(begins.begin(), begins.end(), begins.begin());
    const auto tokens = std::make_unique_for_overwrite<std::uint32_t[]>(begins.back());
    GPUTEXT_TRY(each_document([&](std::atomic_ref<std::uint64_t> end, std::uint32_t token) {
        tokens[end.fetch_sub(1, std::memory_order_relaxed) - 1] = token;
    }));
    found_.clear();
    // Each once
    const auto each_set = [&](const auto& take) {
        return execution.parallel_for(steps, [&](std::size_t step, unsigned) -> Status {
            const std::size_t end = std::min(count, (step + 1) * kSetsOfStep);
            for (std::size_t set = step * kSetsOfStep; set < end; ++set)
                if (!take(set)) return Status::cancelled();
            return {};
        });
    };
    sets.begins.assign(count + 1, 0);
    GPUTEXT_TRY(each_set([&](std::size_t set) {
        std::uint32_t* const begin = tokens.get() + begins[set];
        std::uint32_t* const end = tokens.get() + begins[set + 1];
        if (!stoppable_sort(begin, end, std::less<>(), execution.stop())) return false;
        sets.begins[set + 1] = static_cast<std::uint64_t>(std::unique(begin, end) - begin);
        return true;
    }));
    sets.sizes.assign(count, 0);
    for (std::size_t set = 0; set < count; ++set) sets.sizes[set] = sets.begins[set + 1] != 0;
    std::partial_sum(sets.begins.begin(), sets.begins.end(), sets.begins.begin());
    sets.tokens.resize(sets.begins.back());
    return each_set([&](std::size_t set) {
        std::copy_n(tokens.get() + begins[set], sets.begins[set + 1] - sets.begins[set],
                    sets.tokens.begin() + static_cast<std::ptrdiff_t>(sets.begins[set]));
        return true;
    });
}

/// Of the sets that have tokens: only they may be similar to others.
template <class Symbol>
Status count_shingles(const PassageTexts& texts, const Symbol* symbols, std::size_t length,
                      MemoryBudget& budget, Execution& execution, SetCollection& sets) {
    struct Worker {
        DistinctShingles<Symbol> shingles;
        std::uint64_t longest = 0;
    };
    constexpr std::size_t kDocumentsOfStep = 64;
    const std::size_t count = texts.documents();
    std::vector<Worker> workers(execution.threads(), {{symbols, length}, 0});
    const std::size_t steps = (count + kDocumentsOfStep - 1) / kDocumentsOfStep;
    execution.begin_phase("counting shingles", steps);
    return execution.parallel_for(steps, [&](std::size_t step, unsigned number) -> Status {
        Worker& worker = workers[number];
        const std::size_t end = std::min(count, (step + 1) * kDocumentsOfStep);
        for (std::size_t d = step * kDocumentsOfStep; d < end; ++d) {
            if (sets.sizes[d] == 0) continue;
            if (const std::uint64_t size = texts.begin(d + 1) - texts.begin(d);
                size > worker.longest) {
                GPUTEXT_TRY(budget.take((size - worker.longest) * worker.shingles.kBytesOfSymbol,
                                        FoundShingles::kShingles));
                worker.longest = size;
            }
            if (!worker.shingles.count(texts.begin(d), texts.begin(d + 1), execution.stop(),
                                       sets.sizes[d]))
                return Status::cancelled();
        }
        return {};
    });
}

}  // namespace

Status weigh_by_rarity(SetCollection& sets, Stop stop) {
    return status_or_exception([&]() -> Status {
        const auto weight_of = [&](std::uint32_t count) {
            const double rarity = std::log(static_cast<double>(sets.size()) / count);
            return static_cast<std::uint32_t>(std::lround(rarity * SetCollection::kWeightUnit));
        };
        // Counts first
        for (std::size_t i = 0; i < sets.tokens.size(); ++i) {
            if (i % kLookEvery == kLookEvery - 1 && stop()) return Status::cancelled();
            if (sets.tokens[i] >= sets.weights.size()) sets.weights.resize(sets.tokens[i] + 1);
            ++sets.weights[sets.tokens[i]];
        }
        for (std::uint32_t& weight : sets.weights) weight = weight_of(std::max(weight, 1u));
        sets.lone_weight = sets.size() == 0 ? 0 : weight_of(1);
        return {};
    });
}

Status shingle_sets(const PassageTexts& texts, const SharedWindowsParameters& parameters,
                    Execution& execution, SetCollection& sets) {
    return status_or_exception([&]() -> Status {
        MemoryBudget budget(parameters.memory_limit);
        FoundShingles found(texts, execution.threads(), budget);
        GPUTEXT_TRY(each_shared_window(
            texts, parameters, execution,
            [&](std::span<const std::uint64_t> symbols, unsigned worker) {
                return found.add(symbols, worker);
            }));
        GPUTEXT_TRY(found.collect(sets, execution));
        const std::size_t length = parameters.length;
        if (texts.narrow())
            return count_shingles(texts, texts.bytes(), length, budget, execution, sets);
        return count_shingles(texts, texts.numbers(), length, budget, execution, sets);
    });
}

}  // namespace gputext
