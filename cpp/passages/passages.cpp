#include "cpp/passages/passages.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <tuple>

#include "cpp/base/exception_status.hpp"
#include "cpp/base/memory_budget.hpp"
#include "cpp/base/stoppable.hpp"

namespace gputext {
namespace {

/// Calls body(symbols), a pointer to all of them.
template <class Body>
auto with_symbols(const PassageTexts& texts, const Body& body) {
    return texts.narrow() ? body(texts.bytes()) : body(texts.numbers());
}

/// Equal symbols from a and b on, at most so many.
template <class Symbol>
std::uint64_t common_length(const Symbol* symbols, std::uint64_t a, std::uint64_t b,
                            std::uint64_t most) {
    std::uint64_t length = 0;
    constexpr std::uint64_t kAtOnce = 64 / sizeof(Symbol);
    while (length + kAtOnce <= most &&
           std::memcmp(symbols + a + length, symbols + b + length, 64) == 0)
        length += kAtOnce;
    while (length < most && symbols[a + length] == symbols[b + length]) ++length;
    return length;
}

// ---- Pairs ----

/// A window of a group, by which pairs are told apart.
struct Member {
    std::uint64_t symbol;
    std::uint32_t document;
    /// The symbol before; of a document's first window one that no other has.
    std::uint64_t before;
};

std::uint64_t pairs_of(std::uint64_t count) {
    return count < 2 ? 0 : count * (count - 1) / 2;
}

/// Pairs of members, sorted by `key`, that have it in common; with two tables of one of each.
template <class Key>
std::uint64_t pairs_in_common(std::span<const Member> members, const SharedWindowsParameters& how,
                              const Key& key) {
    std::uint64_t pairs = 0;
    for (std::size_t begin = 0, end = 0; begin < members.size(); begin = end) {
        std::uint64_t first = 0;
        while (end < members.size() && key(members[end]) == key(members[begin]))
            first += members[end++].document < how.split;
        const std::uint64_t count = end - begin;
        pairs += how.two_tables ? first * (count - first) : pairs_of(count);
    }
    return pairs;
}

template <class Symbol>
class PairSearch {
public:
    PairSearch(const PassageTexts& texts, const Symbol* symbols,
               const SharedWindowsParameters& parameters, std::uint64_t most_pairs,
               std::size_t answer_limit, Execution& execution)
        : texts_(texts),
          symbols_(symbols),
          parameters_(parameters),
          most_(most_pairs),
          budget_(answer_limit),
          execution_(execution),
          found_(execution.threads()),
          members_(execution.threads()) {}

    Result<PassagePairs> run();

private:
    Status take(std::span<const std::uint64_t> windows, unsigned worker);
    /// False when stopped.
    bool count_pairs(std::vector<Member>& members, std::uint64_t& pairs) const;
    Status list_pairs(std::span<const Member> members, std::vector<SharedPassage>& found);

    const PassageTexts& texts_;
    const Symbol* symbols_;
    const SharedWindowsParameters& parameters_;
    std::uint64_t most_;
    MemoryBudget budget_;
    Execution& execution_;
    std::atomic<std::uint64_t> count_{0};
    std::vector<std::vector<SharedPassage>> found_;  // of each worker
    std::vector<std::vector<Member>> members_;
};

template <class Symbol>
Result<PassagePairs> PairSearch<Symbol>::run() {
    GPUTEXT_TRY(each_shared_window(
        texts_, parameters_, execution_,
        [&](std::span<const std::uint64_t> windows, unsigned worker) {
            return take(windows, worker);
        }));
    Result<PassagePairs> answer{PassagePairs()};
    PassagePairs& pairs = *answer;
    pairs.count = count_;
    if (pairs.count > most_) return answer;
    std::size_t total = 0;
    for (const std::vector<SharedPassage>& found : found_) total += found.size();
    GPUTEXT_TRY(budget_.take(total * sizeof(SharedPassage)));
    pairs.passages.reserve(total);
    for (std::vector<SharedPassage>& found : found_) {
        pairs.passages.insert(pairs.passages.end(), found.begin(), found.end());
        found = {};
    }
    const auto less = [](const SharedPassage& a, const SharedPassage& b) {
        return std::tie(a.first_symbol, a.second_symbol) < std::tie(b.first_symbol, b.second_symbol);
    };
    if (!stoppable_sort(pairs.passages.begin(), pairs.passages.end(), less, execution_.stop()))
        return Status::cancelled();
    return answer;
}

/// A passage begins in two equal windows that have different symbols before them.
template <class Symbol>
Status PairSearch<Symbol>::take(std::span<const std::uint64_t> windows, unsigned worker) {
    std::vector<Member>& members = members_[worker];
    members.clear();
    std::size_t document = texts_.document_of(windows[0]);
    bool all_alike = true;
    for (const std::uint64_t symbol : windows) {
        if (members.size() % kLookEvery == kLookEvery - 1 && execution_.stop_requested())
            return Status::cancelled();
        if (symbol >= texts_.begin(document + 1)) document = texts_.document_of(symbol);
        const bool is_begin = symbol == texts_.begin(document);
        const std::uint64_t before =
            is_begin ? std::uint64_t{1} << 32 | document : symbols_[symbol - 1];
        members.push_back({symbol, static_cast<std::uint32_t>(document), before});
        all_alike &= before == members[0].before;
    }
    if (all_alike) return {};
    std::uint64_t pairs = 0;
    if (!count_pairs(members, pairs)) return Status::cancelled();
    // What is over the most is only counted.
    if (count_.fetch_add(pairs) + pairs > most_) return {};
    return list_pairs(members, found_[worker]);
}

/// Of different documents and with different symbols before.
template <class Symbol>
bool PairSearch<Symbol>::count_pairs(std::vector<Member>& members, std::uint64_t& pairs) const {
    const auto document = [](const Member& member) { return member.document; };
    const auto before = [](const Member& member) { return member.before; };
    const auto both = [](const Member& member) {
        return std::pair(member.before, member.document);
    };
    const auto all = [](const Member&) { return 0; };
    pairs = pairs_in_common(members, parameters_, all);
    // With two tables none is of one document.
    if (!parameters_.two_tables) pairs -= pairs_in_common(members, parameters_, document);
    const auto less = [](const Member& a, const Member& b) {
        return std::tie(a.before, a.document, a.symbol) < std::tie(b.before, b.document, b.symbol);
    };
    if (!stoppable_sort(members.begin(), members.end(), less, execution_.stop())) return false;
    pairs -= pairs_in_common(members, parameters_, before);
    if (!parameters_.two_tables) pairs += pairs_in_common(members, parameters_, both);
    return true;
}

template <class Symbol>
Status PairSearch<Symbol>::list_pairs(std::span<const Member> members,
                                      std::vector<SharedPassage>& found) {
    const std::size_t size = found.size();
    std::size_t next = 0;  // the first one with another symbol before
    for (std::size_t i = 0; i < members.size(); ++i) {
        if (execution_.stop_requested()) return Status::cancelled();
        while (next < members.size() && members[next].before == members[i].before) ++next;
        for (std::size_t j = next; j < members.size(); ++j) {
            const Member* a = &members[i];
            const Member* b = &members[j];
            if (a->document == b->document) continue;
            if (a->symbol > b->symbol) std::swap(a, b);
            if (parameters_.two_tables &&
                (a->document >= parameters_.split || b->document < parameters_.split))
                continue;
            const std::uint64_t most = std::min(texts_.begin(a->document + 1) - a->symbol,
                                                texts_.begin(b->document + 1) - b->symbol);
            found.push_back({a->document, b->document, a->symbol, b->symbol,
                             common_length(symbols_, a->symbol, b->symbol, most)});
        }
    }
    return budget_.take((found.size() - size) * sizeof(SharedPassage));
}

}  // namespace

Result<PassagePairs> shared_passages(const PassageTexts& texts,
                                     const SharedWindowsParameters& parameters,
                                     std::uint64_t most_pairs, std::size_t answer_limit,
                                     Execution& execution) {
    return status_or_exception([&] {
        return with_symbols(texts, [&](const auto* symbols) {
            return PairSearch(texts, symbols, parameters, most_pairs, answer_limit, execution)
                .run();
        });
    });
}

// ---- Stretches ----

namespace {

/// A bit for each window's first symbol, which several threads set.
class WindowBits {
public:
    explicit WindowBits(std::uint64_t size) : words_(size / 64 + 1) {}

    void set(std::uint64_t place) {
        std::atomic_ref<std::uint64_t>(words_[place / 64])
            .fetch_or(std::uint64_t{1} << place % 64, std::memory_order_relaxed);
    }
    /// The first place from `place` on that is set, or that is not; `end` if all before it are
    /// others.
    std::uint64_t next(bool is_set, std::uint64_t place, std::uint64_t end) const {
        const std::uint64_t others = is_set ? 0 : ~std::uint64_t{0};
        while (place < end) {
            const std::uint64_t rest = (words_[place / 64] ^ others) >> place % 64;
            if (rest != 0)
                return std::min(end, place + static_cast<unsigned>(std::countr_zero(rest)));
            place = (place / 64 + 1) * 64;
        }
        return end;
    }

private:
    std::vector<std::uint64_t> words_;
};

constexpr std::size_t kDocumentsOfStep = 256;

/// Appends the stretches of a document, each of windows that follow each other. False when stopped.
bool join_windows(const PassageTexts& texts, const WindowBits& bits, std::size_t length,
                  std::size_t document, Stop stop, std::vector<SharedStretch>& stretches) {
    const std::uint64_t end = texts.begin(document + 1);
    for (std::uint64_t at = texts.begin(document);;) {
        const std::uint64_t first = bits.next(true, at, end);
        if (first == end) return !stop();
        at = bits.next(false, first, end);
        stretches.push_back({static_cast<std::uint32_t>(document), first, at - first + length - 1});
        if (stretches.size() % kLookEvery == 0 && stop()) return false;
    }
}

}  // namespace

Result<std::vector<SharedStretch>> shared_stretches(const PassageTexts& texts,
                                                    const SharedWindowsParameters& parameters,
                                                    std::size_t others, Execution& execution) {
    return status_or_exception([&]() -> Result<std::vector<SharedStretch>> {
        WindowBits bits(texts.symbols());
        const std::uint64_t end_of_first =
            parameters.two_tables ? texts.begin(parameters.split) : texts.symbols();
        GPUTEXT_TRY(each_shared_window(
            texts, parameters, execution,
            [&](std::span<const std::uint64_t> windows, unsigned) -> Status {
                std::size_t documents = 0;
                std::uint64_t end = 0;  // of the last document that was counted
                for (const std::uint64_t symbol : windows) {
                    if (symbol < end || (parameters.two_tables && symbol < end_of_first)) continue;
                    end = texts.begin(texts.document_of(symbol) + 1);
                    if (++documents > others) break;
                }
                // Its own document is none of the others.
                if (documents < others + !parameters.two_tables) return {};
                for (std::size_t i = 0; i < windows.size() && windows[i] < end_of_first; ++i) {
                    if (i % kLookEvery == kLookEvery - 1 && execution.stop_requested())
                        return Status::cancelled();
                    bits.set(windows[i]);
                }
                return {};
            }));
        const std::size_t documents = parameters.two_tables ? parameters.split : texts.documents();
        const std::size_t steps = (documents + kDocumentsOfStep - 1) / kDocumentsOfStep;
        std::vector<std::vector<SharedStretch>> of_steps(steps);
        execution.begin_phase("joining windows", steps);
        GPUTEXT_TRY(execution.parallel_for(steps, [&](std::size_t step, unsigned) -> Status {
            const std::size_t end = std::min(documents, (step + 1) * kDocumentsOfStep);
            for (std::size_t d = step * kDocumentsOfStep; d < end; ++d)
                if (!join_windows(texts, bits, parameters.length, d, execution.stop(),
                                  of_steps[step]))
                    return Status::cancelled();
            return {};
        }));
        std::vector<SharedStretch> stretches;
        for (std::vector<SharedStretch>& some : of_steps) {
            stretches.insert(stretches.end(), some.begin(), some.end());
            some = {};
        }
        return stretches;
    });
}

namespace {

std::vector<SharedStretch> joined_stretches(const std::vector<SharedStretch>& stretches,
                                            bool touching) {
    std::vector<SharedStretch> joined;
    for (const SharedStretch& stretch : stretches) {
        const bool goes_on =
            !joined.empty() && joined.back().document == stretch.document &&
            stretch.symbol < joined.back().symbol + joined.back().symbols + touching;
        if (!goes_on) {
            joined.push_back(stretch);
            continue;
        }
        const std::uint64_t end = stretch.symbol + stretch.symbols;
        joined.back().symbols = std::max(joined.back().symbols, end - joined.back().symbol);
    }
    return joined;
}

/// Adds each symbol of other stretches, which these are parts of, that none of these has, as one of
/// its own.
Result<std::vector<SharedStretch>> with_lone_symbols(const std::vector<SharedStretch>& stretches,
                                                     const std::vector<SharedStretch>& symbols,
                                                     Stop stop) {
    std::vector<SharedStretch> all;
    auto next = stretches.begin();
    for (const SharedStretch& some : symbols)
        for (std::uint64_t at = some.symbol; at < some.symbol + some.symbols;) {
            const bool is_begin = next != stretches.end() && next->symbol == at;
            all.push_back(is_begin ? *next++ : SharedStretch{some.document, at, 1});
            at += all.back().symbols;
            if (all.size() % kLookEvery == 0 && stop()) return Status::cancelled();
        }
    return all;
}

}  // namespace

Result<std::vector<SharedStretch>> covered_stretches(const PassageTexts& texts,
                                                     const SharedWindowsParameters& parameters,
                                                     std::size_t others, Execution& execution) {
    return status_or_exception([&]() -> Result<std::vector<SharedStretch>> {
        Result<std::vector<SharedStretch>> found =
            shared_stretches(texts, parameters, others, execution);
        if (!found.ok()) return found;
        if (!texts.has_gaps()) return joined_stretches(*found, true);
        if (parameters.length > 1) return joined_stretches(*found, false);
        // No window of one symbol has a gap.
        SharedWindowsParameters of_two = parameters;
        of_two.length = 2;
        const Result<std::vector<SharedStretch>> with_gaps =
            shared_stretches(texts, of_two, others, execution);
        if (!with_gaps.ok()) return with_gaps;
        return with_lone_symbols(joined_stretches(*with_gaps, false), *found,
                                 execution.stop());
    });
}

}  // namespace gputext
