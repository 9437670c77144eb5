#include "kernels/strings/coded_strings.hpp"

#include <algorithm>
#include <bit>
#include <unordered_set>

#include "cpp/base/stoppable.hpp"

namespace gputext::gpu {
namespace {

constexpr std::size_t kStep = std::size_t{1} << 12;  // strings of a thread's step

/// Calls body(begin, end, worker) for all numbers below `size`, some at a time, by all threads.
template <class Body>
Status for_steps(std::size_t size, Execution& execution, Body&& body) {
    return execution.parallel_for((size + kStep - 1) / kStep, [&](std::size_t step, unsigned worker) {
        body(step * kStep, std::min(size, (step + 1) * kStep), worker);
        return Status();
    });
}

}  // namespace

Status SymbolCodes::set(std::span<const StringSource* const> sources, Execution& execution) {
    struct Seen {
        std::vector<std::uint8_t> low;
        std::unordered_set<std::uint32_t> high;
        std::vector<std::uint32_t> scratch;
    };
    std::vector<Seen> seen(execution.threads());
    for (const StringSource* const strings : sources)
        GPUTEXT_TRY(for_steps(
            strings->size(), execution, [&](std::size_t begin, std::size_t end, unsigned worker) {
                Seen& own = seen[worker];
                own.low.resize(kLow);
                for (std::size_t i = begin; i < end; ++i)
                    for (const std::uint32_t symbol : strings->read(i, own.scratch)) {
                        if (symbol < kLow)
                            own.low[symbol] = 1;
                        else
                            own.high.insert(symbol);
                    }
            }));
    low_.assign(kLow, 0);
    low_symbols_ = 0;
    high_.clear();
    for (std::uint32_t symbol = 0; symbol < kLow; ++symbol) {
        const bool occurs = std::ranges::any_of(seen, [=](const Seen& own) {
            return !own.low.empty() && own.low[symbol] != 0;
        });
        if (occurs) low_[symbol] = static_cast<std::uint16_t>(low_symbols_++);
    }
    for (const Seen& own : seen)
        for (const std::uint32_t symbol : own.high)
            high_.try_emplace(symbol, static_cast<std::uint16_t>(size()));
    return {};
}

unsigned SymbolCodes::bits() const {
    return size() <= 1 ? 1 : static_cast<unsigned>(std::bit_width(size() - 1));
}

Status CodedStrings::set(const StringSource& strings, std::span<const std::uint32_t> chosen,
                         const SymbolCodes* own_codes, Execution& execution) {
    std::vector<std::uint32_t> counts(kLongestString + 1, 0);
    for (std::size_t i = 0; i < chosen.size(); ++i) {
        if (i % kLookEvery == 0 && execution.stop_requested()) return Status::cancelled();
        ++counts[strings.length(chosen[i])];
    }
    std::vector<std::uint32_t> next(counts.size());
    std::uint32_t place = 0;
    groups.clear();
    for (std::uint32_t length = 0; length < counts.size(); ++length) {
        next[length] = place;
        if (counts[length] == 0) continue;
        const std::uint32_t end =
            place + (counts[length] + kTilePlaces - 1) / kTilePlaces * kTilePlaces;
        groups.push_back({place, end, length});
        place = end;
    }
    numbers.assign(place, kNoString);
    lengths.assign(place, kNoLength);
    for (std::size_t i = 0; i < chosen.size(); ++i) {
        if (i % kLookEvery == 0 && execution.stop_requested()) return Status::cancelled();
        const std::size_t length = strings.length(chosen[i]);
        numbers[next[length]] = chosen[i];
        lengths[next[length]++] = static_cast<std::uint16_t>(length);
    }
    begins.assign(1, 0);
    begins.reserve(places() + 1);
    for (const std::uint16_t length : lengths) {
        const std::size_t symbols = length == kNoLength ? 0 : length;
        begins.push_back(begins.back() +
                         (symbols + kCodesTogether - 1) / kCodesTogether * kCodesTogether);
    }
    // The threads write them first: new memory takes longer than what is written to it.
    coded = nullptr;
    plain = nullptr;
    if (own_codes != nullptr)
        coded = std::make_unique_for_overwrite<std::uint16_t[]>(begins.back());
    else
        plain = std::make_unique_for_overwrite<std::uint32_t[]>(begins.back());
    std::vector<std::vector<std::uint32_t>> scratch(execution.threads());
    return for_steps(places(), execution, [&](std::size_t begin, std::size_t end, unsigned worker) {
        for (std::size_t at = begin; at < end; ++at) {
            const Symbols symbols = numbers[at] == kNoString
                                        ? Symbols()
                                        : strings.read(numbers[at], scratch[worker]);
            for (std::size_t i = 0; i < begins[at + 1] - begins[at]; ++i) {
                const bool is = i < symbols.size();
                if (own_codes != nullptr)
                    coded[begins[at] + i] = is ? own_codes->code(symbols[i]) : std::uint16_t{0};
                else
                    plain[begins[at] + i] = is ? symbols[i] : 0;
            }
        }
    });
}

}  // namespace gputext::gpu
