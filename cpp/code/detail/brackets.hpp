// cpp/code/detail/brackets.hpp - finds the < and > of source code that are brackets around types

#pragma once

#include <cstddef>
#include <span>

#include "cpp/code/detail/lexer.hpp"

namespace gputext {

/// Flags them with LexedCode::kBracket: pairs behind a name, a modifier or `template`, with nothing
/// between them but types, names, integers and what joins these, and behind them something that
/// can follow a type. `f(a < b, c > d)` is therefore read as C++ reads it where `a` is a template.
/// `types` has what each number is. O(tokens). Errors: cancelled; out_of_memory.
Status mark_type_brackets(LexedCode& code, std::span<const CodeWord> types, Stop stop);

struct BracketPair {
    std::size_t end;      // the place behind its last token
    std::uint32_t pairs;  // with all inside, itself too
    std::size_t others;   // how many pairs around it that token closes, too, as >> can
};

/// The pair that a flagged < at a place opens.
BracketPair bracket_pair(std::span<const std::uint32_t> tokens, std::size_t open);

}  // namespace gputext
