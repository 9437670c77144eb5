// tests/support/words_of_one_hash.hpp - different texts with the same rolling hash

#pragma once

#include <bit>
#include <string>
#include <utility>

namespace gputext::testing {

/// A Thue-Morse word of at least 1024 letters, a power of two, and the one with its letters
/// exchanged: polynomials modulo a power of two have the same value for both.
inline std::pair<std::string, std::string> words_of_one_hash(unsigned length) {
    std::pair<std::string, std::string> words;
    for (unsigned i = 0; i < length; ++i) {
        const bool even = std::popcount(i) % 2 == 0;
        words.first += even ? 'a' : 'b';
        words.second += even ? 'b' : 'a';
    }
    return words;
}

}  // namespace gputext::testing
