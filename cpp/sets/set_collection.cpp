#include "cpp/sets/set_collection.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "cpp/base/exception_status.hpp"
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
        RollingHash hash(length_);
        for (std::uint64_t at = begin; at < end; ++at) {
            if ((at - begin) % kLookEvery == kLookEvery - 1 && stop()) return false;
            hash.enter(symbols_[at]);
            if (at - begin >= length_) hash.leave(symbols_[at - length_]);
            if (at - begin + 1 >= length_) places_.push_back({hash.value(), at + 1 - length_});
        }
        return true;
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

template <class Symbol>
Status count_shingles(const PassageTexts& texts, const Symbol* symbols, std::size_t length,
                      Execution& execution, SetCollection& sets) {
    constexpr std::size_t kDocumentsOfStep = 64;
    const std::size_t count = texts.documents();
    sets.sizes.assign(count, 0);
    std::vector<DistinctShingles<Symbol>> workers(execution.threads(),
                                                  DistinctShingles<Symbol>(symbols, length));
    const std::size_t steps = (count + kDocumentsOfStep - 1) / kDocumentsOfStep;
    execution.begin_phase("counting shingles", steps);
    return execution.parallel_for(steps, [&](std::size_t step, unsigned worker) -> Status {
        const std::size_t end = std::min(count, (step + 1) * kDocumentsOfStep);
        for (std::size_t d = step * kDocumentsOfStep; d < end; ++d)
            if (!workers[worker].count(texts.begin(d), texts.begin(d + 1), execution.stop(),
                                       sets.sizes[d]))
                return Status::cancelled();
        return {};
    });
}

}  // namespace

Status shingle_sets(const PassageTexts& texts, const SharedWindowsParameters& parameters,
                    Execution& execution, SetCollection& sets) {
    return status_or_exception([&]() -> Status {
        const std::size_t length = parameters.length;
        GPUTEXT_TRY(texts.narrow()
                        ? count_shingles(texts, texts.bytes(), length, execution, sets)
                        : count_shingles(texts, texts.numbers(), length, execution, sets));
        std::vector<std::vector<SharedShingle>> found(execution.threads());
        std::atomic<std::uint32_t> next{0};
        const auto number = [&](std::span<const std::uint64_t> symbols, unsigned worker) -> Status {
            const std::uint32_t token = next.fetch_add(1);
            for (const std::uint64_t symbol : symbols) found[worker].push_back({symbol, token});
            return {};
        };
        GPUTEXT_TRY(each_shared_window(texts, parameters, execution, number));
        const std::size_t count = texts.documents();
        execution.begin_phase("collecting shingles", found.size() + 1);
        std::vector<std::uint64_t> begins(count + 1);
        for (const std::vector<SharedShingle>& part : found) {
            GPUTEXT_TRY(execution.checkpoint());
            for (const SharedShingle& shingle : part)
                ++begins[texts.document_of(shingle.symbol) + 1];
        }
        for (std::size_t d = 0; d < count; ++d) begins[d + 1] += begins[d];
        std::vector<std::uint32_t> tokens(begins.back());
        std::vector<std::uint64_t> ends(begins.begin(), begins.end() - 1);
        for (std::vector<SharedShingle>& part : found) {
            for (const SharedShingle& shingle : part)
                tokens[ends[texts.document_of(shingle.symbol)]++] = shingle.token;
            part = {};
            if (execution.stop_requested()) return Status::cancelled();
        }
        sets.begins.assign(1, 0);
        sets.tokens.clear();
        for (std::size_t d = 0; d < count; ++d) {
            if (d % 1024 == 0 && execution.stop_requested()) return Status::cancelled();
            const auto begin = tokens.begin() + static_cast<std::ptrdiff_t>(begins[d]);
            const auto end = tokens.begin() + static_cast<std::ptrdiff_t>(begins[d + 1]);
            std::sort(begin, end);
            sets.tokens.insert(sets.tokens.end(), begin, std::unique(begin, end));
            sets.begins.push_back(sets.tokens.size());
        }
        return {};
    });
}

}  // namespace gputext
