// cpp/code/code_tokens.hpp - normalises source code of the C family: no comments, literals or names
//
// Source: the 2019 thesis, section 6.3.1, "Defects4J Preprocessing".

#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "cpp/base/status.hpp"
#include "cpp/base/stop.hpp"
#include "cpp/base/vocabulary.hpp"

namespace gputext {

/// Tokens are numbers of words.
struct CodeTokens {
    Vocabulary words;
    std::vector<std::uint32_t> tokens;
    /// For each line that has tokens, how many there are up to its end; strictly ascending, the
    /// last one is the number of tokens.
    std::vector<std::uint32_t> line_ends;
};

/// The tokens of a source text below 1 GB, whatever its bytes are: comments and annotations are
/// left out, a literal is its kind, and a name that the text declares is what it was declared as. A
/// line ends where the source's does, unless a backslash leads on. docs/code-tokens.md tells all of
/// it.
///
/// The bytes of a name stay together, so that a text that is valid in an encoding of the server
/// gives tokens that are.
///
/// O(size) time. Memory: 4 bytes a token, about 50 and its text for each different word, both up to
/// twice. Errors: cancelled, when `stop` says so (asked every few milliseconds); out_of_memory.
Result<CodeTokens> code_tokens(std::string_view source, Stop stop = {});

}  // namespace gputext
