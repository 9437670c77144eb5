// cpp/code/detail/lexer.hpp - lexer for the C family of languages
//
// Source: the 2019 thesis, section 6.3.1, "Defects4J Preprocessing", steps i to iv.

#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "cpp/base/status.hpp"
#include "cpp/base/stop.hpp"
#include "cpp/code/detail/words.hpp"

namespace gputext {

/// Tokens are numbers in `words`, with flags above them.
struct LexedCode {
    static constexpr std::uint32_t kDirective = std::uint32_t{1} << 31;  // of a line that # begins
    static constexpr std::uint32_t kBracket = std::uint32_t{1} << 30;    // a < or > around types
    static constexpr std::uint32_t kType = std::uint32_t{1} << 29;       // a class where a type is
    static constexpr std::uint32_t kVariable = std::uint32_t{1} << 28;   // though a ( is behind it
    static constexpr std::uint32_t kNumber = kVariable - 1;

    Vocabulary words = fixed_vocabulary();
    std::vector<std::uint32_t> tokens;
    /// For each line that has tokens, how many there are up to its end.
    std::vector<std::uint32_t> line_ends;
};

/// Takes any bytes below 1 GB. Comments and annotations are left out, literals are kinds, and an
/// operator is the longest one that is there. docs/code-tokens.md tells what is a token.
///
/// O(size) time; 4 bytes for a token and its text once for each different one, both up to twice
/// while they grow. Errors: cancelled, when `stop` says so (asked every few milliseconds).
Result<LexedCode> lex_code(std::string_view source, Stop stop = {});

}  // namespace gputext
