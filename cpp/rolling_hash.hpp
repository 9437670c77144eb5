// cpp/rolling_hash.hpp - the rolling hash of spamsum, whose values cut a document into pieces

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace gputext {

/// The hash of the last seven bytes c(n-6)..c(n) of a stream, bytes before its start being zero:
///
///     sum(c(n-j)) + sum((7-j) * c(n-j)) + xor(c(n-j) << 5j),  j = 0..6,  modulo 2^32
///
/// Nothing older than seven bytes matters, so every position can also be hashed on its own. The
/// caller names the byte that leaves the window: a document in memory supplies it, and no ring of
/// seven bytes has to be kept. Source: A. Tridgell's spamsum; J. Kornblum, "Identifying almost
/// identical files using context triggered piecewise hashing", Digital Investigation 3S, 2006.
class RollingHash {
public:
    static constexpr std::size_t window = 7;  // bytes

    /// Takes in the next byte and drops `leaving`, the byte taken seven calls ago (zero in the
    /// first seven calls); returns the new value. O(1).
    std::uint32_t roll(std::uint8_t entering, std::uint8_t leaving) noexcept {
        weighted_ += static_cast<std::uint32_t>(window) * entering - sum_;
        sum_ += static_cast<std::uint32_t>(entering) - leaving;
        shifted_ = shifted_ << 5 ^ entering;
        return value();
    }

    std::uint32_t value() const noexcept { return sum_ + weighted_ + shifted_; }

    /// The value after the byte *last, from last[-6]..last[0] alone, which must be readable. Calls
    /// for successive positions do not wait for each other; compilers make vector code of a loop
    /// of them, which is why the two sums, together that of (8 - j) * c(n - j), have 16 bits.
    static std::uint32_t ending_at(const std::uint8_t* last) noexcept {
        std::uint16_t run = last[0];
        std::uint16_t sum = run;
        for (int j = 1; j < 7; ++j) {
            run = static_cast<std::uint16_t>(run + last[-j]);
            sum = static_cast<std::uint16_t>(sum + run);
        }
        std::uint32_t shifted = 0;
        for (int j = 6; j >= 0; --j) shifted = shifted << 5 ^ last[-j];
        return shifted + sum + run;
    }

private:
    std::uint32_t sum_ = 0;
    std::uint32_t weighted_ = 0;
    std::uint32_t shifted_ = 0;
};

/// Calls visit(position, hash) for every byte of `document` in order; `hash` is the value after
/// that byte. O(size).
template <class Visit>
void for_each_rolling_hash(std::span<const std::uint8_t> document, Visit&& visit) {
    RollingHash hash;
    const std::size_t head = std::min(document.size(), RollingHash::window);
    for (std::size_t i = 0; i < head; ++i) visit(i, hash.roll(document[i], 0));
    for (std::size_t i = head; i < document.size(); ++i) {
        visit(i, hash.roll(document[i], document[i - RollingHash::window]));
    }
}

}  // namespace gputext
