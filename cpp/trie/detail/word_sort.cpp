#include "cpp/trie/detail/word_sort.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <functional>

#include "cpp/base/stoppable.hpp"

namespace gputext {
namespace {

/// A word with its first eight bytes as a number, so that most comparisons need no more.
struct Entry {
    std::uint64_t prefix;
    std::uint32_t word;
};

/// Entries that one thread sorts at once, and looks for a stop request between.
constexpr std::size_t kRun = std::size_t{1} << 16;

std::uint64_t prefix_of(std::string_view word) {
    std::uint64_t prefix = 0;
    std::memcpy(&prefix, word.data(), std::min<std::size_t>(8, word.size()));
    return __builtin_bswap64(prefix);
}

/// Out of a comparison of long words, for which a thread looks for a stop request as well.
struct Stopped {};

/// Whether they are in order already and no two are equal; stopped.
Result<bool> are_sorted(const std::vector<std::string_view>& words, Execution& execution) {
    for (std::size_t i = 1; i < words.size(); ++i) {
        if ((i % kRun == 0 || words[i].size() > kLookEvery) && execution.stop_requested())
            return Status::cancelled();
        if (!(words[i - 1] < words[i])) return false;
    }
    return true;
}

/// What work() returns, or cancelled when a comparison was stopped.
template <class Work>
Status stopped_or(const Work& work) {
    try {
        return work();
    } catch (const Stopped&) {
        return Status::cancelled();
    }
}

/// Sorts runs, then merges neighbors, which doubles the runs until one is left.
Status sort_entries(std::vector<Entry>& entries,
                    const std::function<bool(const Entry&, const Entry&)>& before,
                    Execution& execution) {
    const std::size_t size = entries.size(), runs = (size + kRun - 1) / kRun;
    const auto place = [&](std::size_t at) {
        return entries.begin() + static_cast<std::ptrdiff_t>(std::min(at, size));
    };
    execution.begin_phase("sorting words", runs);
    Status status = execution.parallel_for(runs, [&](std::size_t run, unsigned) -> Status {
        return stopped_or([&]() -> Status {
            std::sort(place(run * kRun), place((run + 1) * kRun), before);
            return {};
        });
    });
    std::vector<Entry> merged(size);
    for (std::size_t run = kRun; status.ok() && run < size; run *= 2) {
        const std::size_t pairs = (size + 2 * run - 1) / (2 * run);
        execution.begin_phase("merging words", pairs);
        status = execution.parallel_for(pairs, [&](std::size_t pair, unsigned) -> Status {
            const std::size_t begin = 2 * run * pair;
            return stopped_or([&] {
                std::merge(place(begin), place(begin + run), place(begin + run),
                           place(begin + 2 * run),
                           merged.begin() + static_cast<std::ptrdiff_t>(begin), before);
                return execution.stop_requested() ? Status::cancelled() : Status();
            });
        });
        entries.swap(merged);
    }
    return status;
}

}  // namespace

Status sort_words(std::vector<std::string_view>& words, Execution& execution) {
    if (words.size() > UINT32_MAX)
        return {ErrorCode::invalid_argument, "there are more than 4294967295 words"};
    const Result<bool> sorted_already = are_sorted(words, execution);
    if (!sorted_already.ok()) return sorted_already.status();
    if (*sorted_already) return {};
    std::vector<Entry> entries(words.size());
    for (std::size_t i = 0; i < words.size(); ++i)
        entries[i] = {prefix_of(words[i]), static_cast<std::uint32_t>(i)};
    GPUTEXT_TRY(sort_entries(
        entries,
        [&](const Entry& a, const Entry& b) {
            if (a.prefix != b.prefix) return a.prefix < b.prefix;
            if (words[a.word].size() > kLookEvery && execution.stop_requested()) throw Stopped();
            return words[a.word] < words[b.word];
        },
        execution));
    std::vector<std::string_view> sorted(words.size());
    for (std::size_t i = 0; i < words.size(); ++i) sorted[i] = words[entries[i].word];
    sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
    words.swap(sorted);
    return {};
}

}  // namespace gputext
