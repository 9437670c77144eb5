// cpp/documents/detail/signature_distance.hpp - Levenshtein distance of signatures: short strings
// over 64 letters

#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "cpp/documents/edit_distance.hpp"

namespace gputext {

/// One signature prepared to be compared with many (Myers 1999, blocks of 64 letters).
/// Letters are those of kSignatureAlphabet; at most kMostSignatureLetters of them.
class SignaturePattern {
public:
    explicit SignaturePattern(std::string_view pattern);

    /// O(size of text * blocks of the pattern).
    std::size_t distance(std::string_view text) const;

private:
    std::size_t length_;
    std::size_t blocks_;
    std::vector<std::uint64_t> matches_;  // [letter][block]
};

}  // namespace gputext
