// cpp/passages/rolling_hash.hpp - the hash of the last so many symbols, which moves on in O(1)

#pragma once

#include <cstddef>
#include <cstdint>

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

}  // namespace gputext
