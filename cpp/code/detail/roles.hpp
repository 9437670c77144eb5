// cpp/code/detail/roles.hpp - roles of names in source code: variables of a type, classes, others
//
// Source: the 2019 thesis, section 6.3.1, "Defects4J Preprocessing", the steps for variables and
// their types. It used regular expressions; here declarations are parsed, without knowing more of a
// name than the text itself says.

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cpp/code/detail/lexer.hpp"

namespace gputext {

/// By the numbers of the words that the code had before names were given; the new names are words
/// of the same vocabulary.
struct CodeRoles {
    static constexpr std::uint32_t kNone = Vocabulary::kNone;

    std::vector<std::uint32_t>
        parameters;  // the new name that the first parameter of this name gives
    std::vector<std::uint32_t> variables;  // the same of its first other declaration
    std::vector<bool> classes;             // is the name of a class somewhere
    std::vector<bool> assigned;            // stands before an assignment or a comparison somewhere
};

/// Frames of brackets that are looked into; in deeper ones nothing is declared.
inline constexpr std::size_t kCodeDepth = 10000;

/// Flags classes where types are with LexedCode::kType. `types` has what each number is, and the
/// brackets around types are flagged. O(tokens) time; 10 bytes a word and about 1 MB besides, and
/// 16 bytes for each parameter of a list that is open. Errors: cancelled; out_of_memory.
Result<CodeRoles> find_code_roles(LexedCode& code, std::span<const CodeWord> types, Stop stop);

}  // namespace gputext
