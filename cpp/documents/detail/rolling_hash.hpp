// cpp/documents/detail/rolling_hash.hpp - rolling hash of spamsum, whose values cut a document into
// pieces

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace gputext {

// The hash of the last seven bytes c(n-6)..c(n) of a stream, bytes before its start being zero:
//
//     sum(c(n-j)) + sum((7-j) * c(n-j)) + xor(c(n-j) << 5j),  j = 0..6,  modulo 2^32
//
// Nothing older than seven bytes matters, so every position can be hashed on its own. Source:
// A. Tridgell's spamsum; J. Kornblum, "Identifying almost identical files using context triggered
// piecewise hashing", Digital Investigation 3S, 2006.
inline constexpr std::size_t rolling_hash_window = 7;  // bytes

/// Writes to hashes[i] the hash of the seven bytes up to at[i], for i < Count. at[-7] on must be
/// readable, though at[-7] itself does not matter.
///
/// No position waits for another: compiled for vector instructions, into the function of which
/// this is inlined, it takes a fraction of the time of
/// a hash carried along from byte to byte. The two sums together are
/// that of (8 - j) * c(n - j) and fit 16 bits; the xor doubles its bytes step by step: of two,
/// of four and of eight, the eighth being shifted out.
template <std::size_t Count>
[[gnu::always_inline]] inline void rolling_hashes(const std::uint8_t* __restrict at,
                                                  std::uint32_t* __restrict hashes) {
    alignas(64) std::array<std::uint16_t, Count> sums;
    for (std::size_t i = 0; i < Count; ++i) {
        const std::uint8_t* last = at + i;
        std::uint16_t run = last[0];
        std::uint16_t sum = run;
        for (int j = 1; j < 7; ++j) {
            run = static_cast<std::uint16_t>(run + last[-j]);
            sum = static_cast<std::uint16_t>(sum + run);
        }
        sums[i] = static_cast<std::uint16_t>(sum + run);
    }
    alignas(64) std::array<std::uint16_t, Count + 6> pairs;  // up to position i - 6
    for (std::size_t i = 0; i < Count + 6; ++i) {
        const std::uint8_t* last = at + i - 6;
        pairs[i] = static_cast<std::uint16_t>(last[0] ^ last[-1] << 5);
    }
    alignas(64) std::array<std::uint32_t, Count + 4> fours;  // up to position i - 4
    for (std::size_t i = 0; i < Count + 4; ++i) {
        fours[i] = pairs[i + 2] ^ static_cast<std::uint32_t>(pairs[i]) << 10;
    }
    for (std::size_t i = 0; i < Count; ++i) hashes[i] = (fours[i + 4] ^ fours[i] << 20) + sums[i];
}

}  // namespace gputext
