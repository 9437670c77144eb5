// cpp/base/secret_hash.hpp - keyed hash for which nobody can construct a collision
//
// Whoever writes data can also make a stored checksum fit. This hash has a key that is drawn at
// random and never leaves the process: two different inputs, however they were made, have equal
// hashes with a probability below size / 2^61.
//
// Method: Carter, Wegman, "Universal classes of hash functions" (1979); polynomials over the
// integers modulo 2^61 - 1, whose coefficients are the input's 32-bit numbers, at a secret place.

#pragma once

#include <array>
#include <cstdint>
#include <span>

namespace gputext {

class SecretHash {
public:
    /// With a key of its own, from the system's random numbers.
    SecretHash();

    /// Some 5 GB a second. Of the same bytes always the same, by this object.
    std::uint64_t operator()(std::span<const std::uint8_t> bytes) const;

private:
    std::array<std::uint64_t, 4> powers_;  // of the place
    std::uint64_t combining_;              // where what the polynomials give is a polynomial again
};

}  // namespace gputext
