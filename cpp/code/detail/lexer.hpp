// cpp/code/detail/lexer.hpp - lexer for the C family of languages
//
// Source: the 2019 thesis, section 6.3.1, "Defects4J Preprocessing", steps i to iv.

#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "cpp/base/status.hpp"
#include "cpp/base/stop.hpp"
#include "cpp/base/vocabulary.hpp"

namespace gputext {

// ---- Keywords and operators of C, C++, Java and C# ----
//
// A token of source code is the number of its text in a Vocabulary that begins with the fixed words
// below, so that what is known of a token is looked up by its number.

enum class CodeWord : std::uint8_t {
    kind,            // what stands for a literal: INT_TOKEN, ...
    assignment,      // an assignment or a comparison
    punctuation,     // every other operator, brackets
    keyword,         // words that are never names nor types
    modifier,        // keywords before a type, which go into the name of what is declared
    primitive,       // keywords that are types
    soft_modifier,   // modifiers in one language, names in another
    soft_primitive,  // the same of types
    name,            // an identifier
    own,             // a name that the normalisation gives: VAR_TOKEN, VAR_INT, CLASS, CLASS_2
    other            // of a directive: its begin, the name of a header
};

/// Whether it names something, here or in another language.
constexpr bool is_name(CodeWord word) {
    return word == CodeWord::name || word == CodeWord::own || word == CodeWord::soft_modifier ||
           word == CodeWord::soft_primitive;
}

struct FixedWord {
    std::string_view text;
    CodeWord type;
};

inline constexpr std::string_view kClassWord = "CLASS";
inline constexpr std::string_view kVariableWord = "VAR";

/// In no order that means anything.
inline constexpr auto kFixedWords = std::to_array<FixedWord>({
    {"INT_TOKEN", CodeWord::kind},
    {"FLOAT_TOKEN", CodeWord::kind},
    {"CHAR_TOKEN", CodeWord::kind},
    {"STRING_TOKEN", CodeWord::kind},
    {"BOOL_TOKEN", CodeWord::kind},
    {"NULL_TOKEN", CodeWord::kind},
    {"VAR_TOKEN", CodeWord::own},

    {"=", CodeWord::assignment},
    {"+=", CodeWord::assignment},
    {"-=", CodeWord::assignment},
    {"*=", CodeWord::assignment},
    {"/=", CodeWord::assignment},
    {"%=", CodeWord::assignment},
    {"&=", CodeWord::assignment},
    {"|=", CodeWord::assignment},
    {"^=", CodeWord::assignment},
    {"<<=", CodeWord::assignment},
    {">>=", CodeWord::assignment},
    {">>>=", CodeWord::assignment},
    {"?"
     "?=",
     CodeWord::assignment},  // in one piece it would be a trigraph
    {"==", CodeWord::assignment},
    {"!=", CodeWord::assignment},
    {"<", CodeWord::assignment},
    {">", CodeWord::assignment},
    {"<=", CodeWord::assignment},
    {">=", CodeWord::assignment},
    {"<=>", CodeWord::assignment},

    {"!", CodeWord::punctuation},
    {"#", CodeWord::punctuation},
    {"##", CodeWord::punctuation},
    {"%", CodeWord::punctuation},
    {"&", CodeWord::punctuation},
    {"&&", CodeWord::punctuation},
    {"(", CodeWord::punctuation},
    {")", CodeWord::punctuation},
    {"*", CodeWord::punctuation},
    {"+", CodeWord::punctuation},
    {"++", CodeWord::punctuation},
    {",", CodeWord::punctuation},
    {"-", CodeWord::punctuation},
    {"--", CodeWord::punctuation},
    {"->", CodeWord::punctuation},
    {"->*", CodeWord::punctuation},
    {".", CodeWord::punctuation},
    {"...", CodeWord::punctuation},
    {"/", CodeWord::punctuation},
    {":", CodeWord::punctuation},
    {"::", CodeWord::punctuation},
    {";", CodeWord::punctuation},
    {"<<", CodeWord::punctuation},
    {"=>", CodeWord::punctuation},
    {">>", CodeWord::punctuation},
    {">>>", CodeWord::punctuation},
    {"?", CodeWord::punctuation},
    {"?.", CodeWord::punctuation},
    {"??", CodeWord::punctuation},
    {"@", CodeWord::punctuation},
    {"[", CodeWord::punctuation},
    {"\\", CodeWord::punctuation},
    {"]", CodeWord::punctuation},
    {"^", CodeWord::punctuation},
    {"`", CodeWord::punctuation},
    {"{", CodeWord::punctuation},
    {"|", CodeWord::punctuation},
    {"||", CodeWord::punctuation},
    {"}", CodeWord::punctuation},
    {"~", CodeWord::punctuation},

    {"alignas", CodeWord::keyword},
    {"alignof", CodeWord::keyword},
    {"asm", CodeWord::keyword},
    {"assert", CodeWord::keyword},
    {"await", CodeWord::keyword},
    {"break", CodeWord::keyword},
    {"case", CodeWord::keyword},
    {"catch", CodeWord::keyword},
    {"class", CodeWord::keyword},
    {"co_await", CodeWord::keyword},
    {"co_return", CodeWord::keyword},
    {"co_yield", CodeWord::keyword},
    {"concept", CodeWord::keyword},
    {"const_cast", CodeWord::keyword},
    {"continue", CodeWord::keyword},
    {"decltype", CodeWord::keyword},
    {"default", CodeWord::keyword},
    {"delete", CodeWord::keyword},
    {"do", CodeWord::keyword},
    {"dynamic_cast", CodeWord::keyword},
    {"else", CodeWord::keyword},
    {"enum", CodeWord::keyword},
    {"extends", CodeWord::keyword},
    {"finally", CodeWord::keyword},
    {"for", CodeWord::keyword},
    {"foreach", CodeWord::keyword},
    {"goto", CodeWord::keyword},
    {"if", CodeWord::keyword},
    {"implements", CodeWord::keyword},
    {"import", CodeWord::keyword},
    {"instanceof", CodeWord::keyword},
    {"interface", CodeWord::keyword},
    {"namespace", CodeWord::keyword},
    {"new", CodeWord::keyword},
    {"noexcept", CodeWord::keyword},
    {"operator", CodeWord::keyword},
    {"package", CodeWord::keyword},
    {"reinterpret_cast", CodeWord::keyword},
    {"requires", CodeWord::keyword},
    {"return", CodeWord::keyword},
    {"sizeof", CodeWord::keyword},
    {"static_assert", CodeWord::keyword},
    {"static_cast", CodeWord::keyword},
    {"struct", CodeWord::keyword},
    {"super", CodeWord::keyword},
    {"switch", CodeWord::keyword},
    {"template", CodeWord::keyword},
    {"this", CodeWord::keyword},
    {"throw", CodeWord::keyword},
    {"throws", CodeWord::keyword},
    {"try", CodeWord::keyword},
    {"typedef", CodeWord::keyword},
    {"typeid", CodeWord::keyword},
    {"typename", CodeWord::keyword},
    {"typeof", CodeWord::keyword},
    {"union", CodeWord::keyword},
    {"using", CodeWord::keyword},
    {"while", CodeWord::keyword},
    {"yield", CodeWord::keyword},

    {"abstract", CodeWord::modifier},
    {"const", CodeWord::modifier},
    {"consteval", CodeWord::modifier},
    {"constexpr", CodeWord::modifier},
    {"constinit", CodeWord::modifier},
    {"explicit", CodeWord::modifier},
    {"extern", CodeWord::modifier},
    {"friend", CodeWord::modifier},
    {"inline", CodeWord::modifier},
    {"mutable", CodeWord::modifier},
    {"private", CodeWord::modifier},
    {"protected", CodeWord::modifier},
    {"public", CodeWord::modifier},
    {"register", CodeWord::modifier},
    {"restrict", CodeWord::modifier},
    {"static", CodeWord::modifier},
    {"synchronized", CodeWord::modifier},
    {"thread_local", CodeWord::modifier},
    {"virtual", CodeWord::modifier},
    {"volatile", CodeWord::modifier},

    {"auto", CodeWord::primitive},
    {"bool", CodeWord::primitive},
    {"char", CodeWord::primitive},
    {"char16_t", CodeWord::primitive},
    {"char32_t", CodeWord::primitive},
    {"char8_t", CodeWord::primitive},
    {"double", CodeWord::primitive},
    {"float", CodeWord::primitive},
    {"int", CodeWord::primitive},
    {"long", CodeWord::primitive},
    {"short", CodeWord::primitive},
    {"signed", CodeWord::primitive},
    {"unsigned", CodeWord::primitive},
    {"void", CodeWord::primitive},
    {"wchar_t", CodeWord::primitive},

    {"async", CodeWord::soft_modifier},
    {"delegate", CodeWord::soft_modifier},
    {"event", CodeWord::soft_modifier},
    {"final", CodeWord::soft_modifier},
    {"internal", CodeWord::soft_modifier},
    {"native", CodeWord::soft_modifier},
    {"out", CodeWord::soft_modifier},
    {"override", CodeWord::soft_modifier},
    {"params", CodeWord::soft_modifier},
    {"partial", CodeWord::soft_modifier},
    {"readonly", CodeWord::soft_modifier},
    {"ref", CodeWord::soft_modifier},
    {"required", CodeWord::soft_modifier},
    {"sealed", CodeWord::soft_modifier},
    {"strictfp", CodeWord::soft_modifier},
    {"transient", CodeWord::soft_modifier},
    {"unsafe", CodeWord::soft_modifier},

    {"boolean", CodeWord::soft_primitive},
    {"byte", CodeWord::soft_primitive},
    {"decimal", CodeWord::soft_primitive},
    {"int16_t", CodeWord::soft_primitive},
    {"int32_t", CodeWord::soft_primitive},
    {"int64_t", CodeWord::soft_primitive},
    {"int8_t", CodeWord::soft_primitive},
    {"intptr_t", CodeWord::soft_primitive},
    {"nint", CodeWord::soft_primitive},
    {"nuint", CodeWord::soft_primitive},
    {"ptrdiff_t", CodeWord::soft_primitive},
    {"sbyte", CodeWord::soft_primitive},
    {"size_t", CodeWord::soft_primitive},
    {"ssize_t", CodeWord::soft_primitive},
    {"uint", CodeWord::soft_primitive},
    {"uint16_t", CodeWord::soft_primitive},
    {"uint32_t", CodeWord::soft_primitive},
    {"uint64_t", CodeWord::soft_primitive},
    {"uint8_t", CodeWord::soft_primitive},
    {"uintptr_t", CodeWord::soft_primitive},
    {"ulong", CodeWord::soft_primitive},
    {"ushort", CodeWord::soft_primitive},
    {"var", CodeWord::soft_primitive},
});

/// The number of a fixed word; a text that is none does not compile.
consteval std::uint32_t fixed_word(std::string_view text) {
    for (std::uint32_t number = 0; number < kFixedWords.size(); ++number)
        if (kFixedWords[number].text == text) return number;
    throw "no fixed word";
}

/// A vocabulary of the fixed words alone.
Vocabulary fixed_vocabulary();

/// Meaning of a word of such a vocabulary.
CodeWord code_word(const Vocabulary& words, std::uint32_t number);

/// CLASS, or CLASS_n with n pairs of brackets around types.
std::uint32_t class_word(Vocabulary& words, std::uint32_t pairs);

inline bool is_digit(char letter) {
    return letter >= '0' && letter <= '9';
}

/// Letters, '_', '$' and every byte above ASCII, whatever the encoding of the server: no byte of a
/// character beyond ASCII is below 128 in any of them.
inline bool begins_identifier(char letter) {
    const char lower = static_cast<char>(letter | 0x20);
    return (lower >= 'a' && lower <= 'z') || letter == '_' || letter == '$' ||
           static_cast<unsigned char>(letter) >= 0x80;
}

inline bool in_identifier(char letter) {
    return begins_identifier(letter) || is_digit(letter);
}

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
