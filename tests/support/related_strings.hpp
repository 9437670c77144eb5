// tests/support/related_strings.hpp - related signatures, for the tests of signature joins

#pragma once

#include <string>
#include <vector>

#include "cpp/documents/ctph.hpp"
#include "tests/support/random_strings.hpp"

namespace gputext::testing {

/// Signatures with relatives among them, some far too repetitive for the counts' depth.
inline std::vector<std::string> related_strings(RandomStrings& random, std::size_t count,
                                                std::size_t longest) {
    std::vector<std::string> strings;
    while (strings.size() < count) {
        const auto letters =
            random.below(5) == 0 ? kSignatureAlphabet.substr(0, 2) : kSignatureAlphabet;
        strings.push_back(random.string(random.below(longest + 1), letters));
        for (std::size_t n = random.below(4); n > 0; --n) {
            const auto edits = random.below(strings.back().size() / 5 + 2);
            strings.push_back(random.edited(strings.back(), edits, letters).substr(0, longest));
        }
    }
    return strings;
}

}  // namespace gputext::testing
