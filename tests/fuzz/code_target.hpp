// tests/fuzz/code_target.hpp - reads any bytes as source code

#pragma once

#include <cstdlib>
#include <string>
#include <string_view>

#include "cpp/code/code_tokens.hpp"

namespace gputext::testing {

inline void require_code(bool condition) {
    if (!condition) std::abort();
}

/// The normalised lines, each with its end.
inline std::string joined_lines(const CodeTokens& code) {
    std::string text;
    std::size_t at = 0;
    for (const std::uint32_t end : code.line_ends) {
        for (; at < end; ++at) {
            text += code.words.term(code.tokens[at]);
            text += at + 1 < end ? ' ' : '\n';
        }
    }
    return text;
}

/// Every token has letters, of one line, and no line is empty; what was read can be read again.
inline void read_code(std::string_view source) {
    const auto code = code_tokens(source);
    require_code(code.ok());
    std::uint32_t before = 0;
    for (const std::uint32_t end : code->line_ends) {
        require_code(end > before);
        before = end;
    }
    require_code(before == code->tokens.size() && code->tokens.size() <= source.size());
    for (const std::uint32_t token : code->tokens) {
        require_code(token < code->words.size());
        const std::string_view word = code->words.term(token);
        require_code(!word.empty());
        require_code(word.find('\n') == std::string_view::npos);
    }
    require_code(code_tokens(joined_lines(*code)).ok());
}

}  // namespace gputext::testing
