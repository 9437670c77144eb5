#include "cpp/code/code_tokens.hpp"

#include <utility>

#include "cpp/base/stoppable.hpp"
#include "cpp/code/detail/brackets.hpp"
#include "cpp/code/detail/roles.hpp"

namespace gputext {
namespace {

std::vector<CodeWord> word_types(const Vocabulary& words) {
    std::vector<CodeWord> types(words.size());
    for (std::uint32_t number = 0; number < types.size(); ++number)
        types[number] = code_word(words, number);
    return types;
}

/// Puts the new names in place of the old ones.
class Renamer {
public:
    Renamer(LexedCode& code, std::span<const CodeWord> types, const CodeRoles& roles)
        : code_(code), types_(types), roles_(roles) {}

    /// The tokens become fewer, never more.
    Status run(Stop stop) {
        std::size_t line = 0, lines = 0;
        std::size_t next_look = 0;
        for (std::size_t at = 0; at < code_.tokens.size();) {
            if (at >= next_look) {
                next_look = at + kLookEvery / 16;
                if (stop()) return Status::cancelled();
            }
            at = rename(at);
            // Brackets around types may end in a later line.
            bool ended = false;
            for (; line < code_.line_ends.size() && code_.line_ends[line] <= at; ++line)
                ended = true;
            if (ended) code_.line_ends[lines++] = static_cast<std::uint32_t>(size_);
        }
        code_.tokens.resize(size_);
        code_.line_ends.resize(lines);
        return {};
    }

private:
    void put(std::uint32_t number) { code_.tokens[size_++] = number; }

    /// Whether the token behind the place is this bracket, and if `flagged` one around types.
    bool is_next(std::size_t at, std::uint32_t bracket, bool flagged) const {
        if (at + 1 == code_.tokens.size()) return false;
        const std::uint32_t next = code_.tokens[at + 1];
        return (next & LexedCode::kNumber) == bracket &&
               (!flagged || (next & LexedCode::kBracket) != 0);
    }

    /// Appends the new form of the token at a place; returns the place behind it.
    std::size_t rename(std::size_t at) {
        const std::uint32_t token = code_.tokens[at];
        const std::uint32_t number = token & LexedCode::kNumber;
        if ((token & LexedCode::kDirective) != 0 || !is_name(types_[number])) {
            put(number);
            return at + 1;
        }
        const std::uint32_t variable = roles_.parameters[number] != CodeRoles::kNone
                                           ? roles_.parameters[number]
                                           : roles_.variables[number];
        const bool is_variable = variable != CodeRoles::kNone;
        if ((token & LexedCode::kType) != 0 || (roles_.classes[number] && !is_variable))
            return rename_class(at);
        const bool is_function =
            (token & LexedCode::kVariable) == 0 && is_next(at, fixed_word("("), false);
        if (is_function)
            put(number);
        else if (is_variable)
            put(variable);
        else if (roles_.assigned[number] && types_[number] != CodeWord::own)
            put(fixed_word("VAR_TOKEN"));
        else
            put(number);
        return at + 1;
    }

    /// Includes the types in brackets behind it.
    std::size_t rename_class(std::size_t at) {
        const std::uint32_t number = code_.tokens[at] & LexedCode::kNumber;
        if (!is_next(at, fixed_word("<"), true)) {
            put(types_[number] == CodeWord::own ? number : class_word(code_.words, 0));
            return at + 1;
        }
        const BracketPair pair = bracket_pair(code_.tokens, at + 1);
        put(class_word(code_.words, pair.pairs));
        for (std::size_t i = 0; i < pair.others; ++i) put(fixed_word(">"));
        return pair.end;
    }

    LexedCode& code_;
    const std::span<const CodeWord> types_;
    const CodeRoles& roles_;
    std::size_t size_ = 0;  // of the tokens put so far
};

}  // namespace

Result<CodeTokens> code_tokens(std::string_view source, Stop stop) {
    Result<LexedCode> code = lex_code(source, stop);
    if (!code.ok()) return code.status();
    const std::vector<CodeWord> types = word_types(code->words);
    GPUTEXT_TRY(mark_type_brackets(*code, types, stop));
    const Result<CodeRoles> roles = find_code_roles(*code, types, stop);
    if (!roles.ok()) return roles.status();
    GPUTEXT_TRY(Renamer(*code, types, *roles).run(stop));
    return CodeTokens{std::move(code->words), std::move(code->tokens), std::move(code->line_ends)};
}

}  // namespace gputext
