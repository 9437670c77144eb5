// cpp/passages/rolling_hash.hpp - the hash of the last so many symbols, which moves on in O(1)

#pragma once

#include <cstddef>
#include <cstdint>

#include "cpp/base/stop.hpp"
#include "cpp/base/stoppable.hpp"

namespace gputext {

/// A polynomial of the last so many symbols.
class RollingHash {
public:
    explicit RollingHash(std::size_t length) {
        for (std::size_t i = 0; i < length; ++i) leaving_ *= kBase;
    }
    void enter(std::uint32_t symbol) { hash_ = hash_ * kBase + symbol + 1; }
    void leave(std::uint32_t symbol) { hash_ -= leaving_ * (symbol + std::uint64_t{1}); }
    std::uint64_t value() const { return mixed(hash_); }

private:
    static std::uint64_t mixed(std::uint64_t hash) {
        hash = (hash ^ hash >> 33) * 0xff51afd7ed558ccdu;
        hash = (hash ^ hash >> 33) * 0xc4ceb9fe1a85ec53u;
        return hash ^ hash >> 33;
    }

    static constexpr std::uint64_t kBase = 0x9e3779b97f4a7c15u;

    std::uint64_t hash_ = 0, leaving_ = 1;
};

/// Calls window(hash, symbol) for each of so many windows of `length` symbols that follow each
/// other, with the symbol that it begins with. False when stopped. O(length + windows).
template <class Symbol, class TakeWindow>
bool each_window(const Symbol* symbols, std::uint64_t first, std::uint64_t windows,
                 std::size_t length, Stop stop, const TakeWindow& window) {
    RollingHash hash(length);
    for (std::uint64_t at = first; at < first + length + windows - 1; ++at) {
        if ((at - first) % kLookEvery == kLookEvery - 1 && stop()) return false;
        hash.enter(symbols[at]);
        if (at - first >= length) hash.leave(symbols[at - length]);
        if (at + 1 >= first + length) window(hash.value(), at + 1 - length);
    }
    return true;
}

}  // namespace gputext
