// extension/texts/plain_text.hpp - finds the tokens of plain text as PostgreSQL's default parser
// does
//
// The default parser (wparser_def.c) is a state machine that looks at each character through a
// dozen functions. This one knows the tokens of the most frequent characters, and names the
// stretches in which anything else is, for PostgreSQL's parser.
//
// Why the tokens are the same:
//
// - A token begins in the state Base, but for the parts of words with hyphens and what follows a
//   host of a URL. Behind each of the tokens found here the parser is in Base, as if it began at
//   that character; or behind the last part of a word, in ParseHyphen, which leaves all but
//   letters, digits and hyphens to Base.
// - Words: from Base, a run of ASCII letters leads to InAsciiWord, and letters of other scripts to
//   InWord. Both states end the token at a character that none of their rules names. Where a rule
//   names it, as ".", ":" or "-", the rule's state looks at the next character, and returns unless
//   that is one of a few: only these make the stretch one for PostgreSQL's parser. Digits are alike
//   (InUnsignedInt).
// - Words with hyphens, words with digits and decimal numbers are first tried as a host or an
//   address of mail, in the state InHost, which fails unless "@", or "." and a letter or digit,
//   follows. Then InHyphenAsciiWord, InNumWord and InUDecimal take them. Those with characters
//   beyond ASCII are for PostgreSQL's parser.
// - Blanks: everything else is InSpace, which goes on up to a letter or a digit, or to one of
//   "<-+&/", where Base looks again: at a tag, a number with a sign, an entity or a path, each of
//   which is recognised by its next character, or else is another blank. Base also looks at "." and
//   "~", but not InSpace.
// - A stretch for PostgreSQL's parser begins where a token does, and ends behind a blank character
//   (space, tab, end of line). Of the states that a parser can be in there, only those of tags and
//   comments go over it; all others end their token or go back to where they were pushed. Only
//   InSpace takes the character, and no state looks behind it. How far a tag may reach is found by
//   its quotes and its ">", and the stretch ends behind that. As a check, the last token of a
//   stretch must be blank and end where the stretch does; otherwise PostgreSQL's parser gets the
//   rest of the piece.
// - What a token leaves behind in the parser is its state, and two flags. "wanthost" is taken back
// by
//   the token behind the URL that set it. "ignore" is set by what begins with "<script" or "<style"
//   and may stay: PostgreSQL's parser gets the rest of such a piece.
// - Letters and digits depend on the locale, on the library that knows it, and on the release of
//   PostgreSQL. So the parser itself is asked about each character, once: alone, behind a letter
//   and behind a blank.

#pragma once

#include "extension/base/postgres.hpp"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace gputext {

/// Types of tokens of the default parser.
enum DefaultToken {
    kAsciiWord = 1,
    kWord = 2,
    kNumWord = 3,
    kAsciiPart = 11,
    kBlankToken = 12,
    kAsciiCompound = 16,
    kDecimal = 20,
    kUnsignedInt = 22
};

/// What is known of characters, learned from the server's default parser.
class PlainCharacters {
public:
    /// What a character is, or what its next one has to be looked at for.
    enum Kind : std::uint8_t {
        unknown,
        letter,  // of ASCII
        digit,   // of ASCII
        blank,   // any other that is no part of a word
        sign,
        dot,
        slash,
        tilde,
        ampersand,
        less,
        // Beyond ASCII
        other_letter,
        joining,  // part of a word, but not as its first character
        hard,     // for PostgreSQL's parser
        wide      // the first byte of several
    };

    /// Raises errors. False if the parser does not see ASCII as it should.
    bool learn_ascii();
    /// Learns the character that begins there. Raises errors.
    void learn(std::string_view text);

    Kind of_byte(char byte) const { return bytes_[static_cast<unsigned char>(byte)]; }
    /// The kind of the character that is not ASCII, and its bytes.
    Kind of_wide(const char* at, const char* end, std::size_t& bytes) const {
        if (!utf8_) {
            bytes = 1;
            return of_byte(*at);
        }
        const std::uint32_t code = code_of(at, end, bytes);
        if (code >= wide_.size()) return code < kCodes && bytes > 0 ? unknown : hard;
        return wide_[code];
    }

private:
    /// The characters that are learned are below.
    static constexpr std::uint32_t kCodes = 0x20000;

    /// The code of a UTF-8 character, and its bytes; kCodes where there is none.
    static std::uint32_t code_of(const char* at, const char* end, std::size_t& bytes) {
        const auto byte = [at](std::size_t i) { return static_cast<unsigned char>(at[i]); };
        const auto left = static_cast<std::size_t>(end - at);
        const std::uint32_t first = byte(0);
        bytes = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
        if (first < 0xc0 || bytes > left) return kCodes;
        std::uint32_t code = first & (0x7fU >> bytes);
        for (std::size_t i = 1; i < bytes; ++i) code = code << 6 | (byte(i) & 0x3fU);
        return code;
    }

    std::array<Kind, 256> bytes_{};
    std::vector<Kind> wide_;  // by their codes; empty until one is learned
    bool utf8_ = false;
};

/// Finds one token after another.
class PlainText {
public:
    using Kind = PlainCharacters::Kind;

    enum class Found {
        token,
        end,
        unknown,  // a character that is to be learned
        hard      // a stretch for PostgreSQL's parser begins at at()
    };
    struct Token {
        int type;
        const char* begin;
        std::size_t size;
        std::string_view view() const { return {begin, size}; }
    };

    /// Begins a piece, which has to stay where it is.
    void begin_piece(std::string_view piece) {
        at_ = piece.data();
        end_ = at_ + piece.size();
        parts_end_ = at_;
        blank_ = 0;
        too_long_ = 0;
    }

    /// Finds the next token that is not blank; or what is to be done before it can be found.
    Found next(const PlainCharacters& characters, Token& token);

    const char* at() const { return at_; }
    /// The text from the character that is to be learned.
    std::string_view unknown() const { return {unknown_, end_}; }
    /// The stretch for PostgreSQL's parser that begins at at().
    std::string_view stretch() const;
    /// The same up to the end of the piece.
    std::string_view rest() const { return {at_, end_}; }
    void skip(std::string_view stretch) { at_ += stretch.size(); }

    /// Adds a blank token of a stretch; the first token of a stretch goes on with one before it.
    void add_blank(std::size_t size, bool first) {
        if (!first) end_blank();
        blank_ += size;
    }
    /// Bytes of the blank token that has begun.
    std::size_t blank() const { return blank_; }
    /// Ends the blank token, if there is one.
    void end_blank() {
        too_long_ += blank_ > longest_;
        blank_ = 0;
    }
    /// Blank tokens that have ended and are too long for PostgreSQL, which says so.
    int too_long() const { return too_long_; }
    /// The longest token that the server takes.
    void set_longest(std::size_t longest) { longest_ = longest; }

private:
    static bool is_ascii(char c) { return static_cast<signed char>(c) >= 0; }
    static bool is_alnum(Kind kind) {
        return kind == PlainCharacters::letter || kind == PlainCharacters::digit;
    }
    /// Whether the character behind, or the end, is of ASCII, and neither letter nor digit nor one
    /// of the others.
    bool ends_before(const PlainCharacters& characters, const char* behind,
                     std::string_view others) const {
        return behind == end_ || (is_ascii(*behind) && !is_alnum(characters.of_byte(*behind)) &&
                                  others.find(*behind) == others.npos);
    }
    bool is_blank_in_base(const PlainCharacters& characters, Kind kind, const char* at) const;
    bool ends_ascii_word(const PlainCharacters& characters, const char* at) const;
    bool ends_number(const PlainCharacters& characters, const char* at) const;
    const char* behind_letters(const PlainCharacters& characters, const char* at) const;
    const char* behind_alnum(const PlainCharacters& characters, const char* at) const;
    Found word(const PlainCharacters& characters, Token& token);
    Found number(const PlainCharacters& characters, Token& token);
    Found mixed_word(const PlainCharacters& characters, const char* to, Token& token);
    Found compound(const PlainCharacters& characters, const char* hyphen, Token& token);
    Found part(const PlainCharacters& characters, Token& token);
    template <class Ends>
    Found found_if(const PlainCharacters& characters, int type, const char* to, Token& token,
                   const Ends& ends);
    Found found(int type, const char* end, Token& token) {
        token = {type, at_, static_cast<std::size_t>(end - at_)};
        at_ = end;
        return Found::token;
    }
    Found wants(const char* character) {
        unknown_ = character;
        return Found::unknown;
    }

    const char* at_ = nullptr;
    const char* end_ = nullptr;
    const char* unknown_ = nullptr;
    const char* parts_end_ = nullptr;  // up to there, parts of a word with hyphens follow
    std::size_t blank_ = 0;  // bytes of the blank token that has begun; 0 is the state Base
    std::size_t longest_ = 2047;
    int too_long_ = 0;
};

/// Whether the character, from state Base, begins a blank token.
inline bool PlainText::is_blank_in_base(const PlainCharacters& characters, Kind kind,
                                        const char* at) const {
    const char* const behind = at + 1;
    const std::string_view next(behind, behind == end_ ? 0 : 1);
    switch (kind) {
        case PlainCharacters::sign:
            return ends_before(characters, behind, "");
        case PlainCharacters::dot:  // not "../", nor ".." before a blank
            if (next == ".")
                return behind + 1 != end_ && behind[1] > ' ' && behind[1] < '\x7f' &&
                       behind[1] != '/';
            return next != "/";
        case PlainCharacters::slash:
            return ends_before(characters, behind, "._~");
        case PlainCharacters::tilde:
            return ends_before(characters, behind, "_/");
        case PlainCharacters::ampersand:
            return behind == end_ || !is_ascii(*behind) ||
                   (characters.of_byte(*behind) != PlainCharacters::letter &&
                    std::string_view("#:_").find(*behind) == std::string_view::npos);
        case PlainCharacters::less:
            return behind == end_ || !is_ascii(*behind) ||
                   (characters.of_byte(*behind) != PlainCharacters::letter &&
                    std::string_view("/!?:_").find(*behind) == std::string_view::npos);
        default:
            return true;
    }
}

/// Whether a word of ASCII letters surely ends before the ASCII character.
inline bool PlainText::ends_ascii_word(const PlainCharacters& characters, const char* at) const {
    switch (*at) {
        case '.':
            return ends_before(characters, at + 1, "_");
        case '-':
        case '_':
            return ends_before(characters, at + 1, "");
        case ':':
            return at + 1 == end_ || at[1] != '/';
        case '/':
            return ends_before(characters, at + 1, "._~");
        case '@':
            return false;
        default:
            return characters.of_byte(*at) != PlainCharacters::digit;
    }
}

/// Whether a number surely ends before the ASCII character.
inline bool PlainText::ends_number(const PlainCharacters& characters, const char* at) const {
    switch (*at) {
        case '.':
        case '-':
        case '_':
            return ends_before(characters, at + 1, "");
        case '/':
            return ends_before(characters, at + 1, "._~");
        case '@':
            return false;
        default:
            return characters.of_byte(*at) != PlainCharacters::letter;
    }
}

/// Where the letters of ASCII end that begin there.
inline const char* PlainText::behind_letters(const PlainCharacters& characters,
                                             const char* at) const {
#ifdef __SSE2__
    while (end_ - at >= 16) {
        const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
        const __m128i letters =
            _mm_sub_epi8(_mm_or_si128(bytes, _mm_set1_epi8(0x20)), _mm_set1_epi8('a'));
        const __m128i are =
            _mm_cmpeq_epi8(_mm_min_epu8(letters, _mm_set1_epi8('z' - 'a')), letters);
        const auto others = ~static_cast<std::uint32_t>(_mm_movemask_epi8(are)) & 0xffffU;
        if (others != 0) return at + std::countr_zero(others);
        at += 16;
    }
#endif
    while (at != end_ && characters.of_byte(*at) == PlainCharacters::letter) ++at;
    return at;
}

/// Where the letters and digits of ASCII end that begin there.
inline const char* PlainText::behind_alnum(const PlainCharacters& characters,
                                           const char* at) const {
    while (at != end_ && is_alnum(characters.of_byte(*at))) ++at;
    return at;
}

/// A token that ends at `to` if `ends` says so of the ASCII character there, and if none beyond
/// ASCII there belongs to a word.
template <class Ends>
PlainText::Found PlainText::found_if(const PlainCharacters& characters, int type, const char* to,
                                     Token& token, const Ends& ends) {
    if (to == end_) return found(type, to, token);
    if (is_ascii(*to)) return ends(*to) ? found(type, to, token) : Found::hard;
    std::size_t bytes;
    const Kind kind = characters.of_wide(to, end_, bytes);
    if (kind == PlainCharacters::unknown) return wants(to);
    return kind == PlainCharacters::blank ? found(type, to, token) : Found::hard;
}

/// A word of letters and digits, known to be one up to `to`.
inline PlainText::Found PlainText::mixed_word(const PlainCharacters& characters, const char* to,
                                              Token& token) {
    to = behind_alnum(characters, to);
    return found_if(characters, kNumWord, to, token,
                    [&](char) { return ends_ascii_word(characters, to); });
}

/// A word with a hyphen at `hyphen`: its parts follow.
inline PlainText::Found PlainText::compound(const PlainCharacters& characters, const char* hyphen,
                                            Token& token) {
    const char* to = hyphen;
    while (to != end_ && *to == '-') {
        if (to + 1 == end_ || characters.of_byte(to[1]) != PlainCharacters::letter)
            return Found::hard;
        to = behind_letters(characters, to + 1);
    }
    const char* const part = at_;
    const Found result = found_if(characters, kAsciiCompound, to, token, [&](char c) {
        return c == '.' ? ends_before(characters, to + 1, "_")
                        : characters.of_byte(c) == PlainCharacters::blank &&
                              std::string_view("_@:").find(c) == std::string_view::npos;
    });
    if (result == Found::token) {
        at_ = part;
        parts_end_ = to;
    }
    return result;
}

/// The next part of a word with hyphens.
inline PlainText::Found PlainText::part(const PlainCharacters& characters, Token& token) {
    if (*at_ == '-') ++at_;  // a blank token
    return found(kAsciiPart, behind_letters(characters, at_), token);
}

inline PlainText::Found PlainText::word(const PlainCharacters& characters, Token& token) {
    int type = kAsciiWord;
    for (const char* to = at_;;) {
        to = behind_letters(characters, to);
        if (to == end_) return found(type, to, token);
        if (is_ascii(*to)) {
            const bool is_digit = characters.of_byte(*to) == PlainCharacters::digit;
            if (type == kAsciiWord) {
                if (is_digit) return mixed_word(characters, to, token);
                if (ends_ascii_word(characters, to)) return found(type, to, token);
                return *to == '-' ? compound(characters, to, token) : Found::hard;
            }
            const bool ends = *to == '-' ? ends_before(characters, to + 1, "") : !is_digit;
            return ends ? found(type, to, token) : Found::hard;
        }
        std::size_t bytes;
        switch (characters.of_wide(to, end_, bytes)) {
            case PlainCharacters::other_letter:
            case PlainCharacters::joining:
                type = kWord;
                to += bytes;
                break;
            case PlainCharacters::blank:
                return found(type, to, token);
            case PlainCharacters::unknown:
                return wants(to);
            default:
                return Found::hard;
        }
    }
}

inline PlainText::Found PlainText::number(const PlainCharacters& characters, Token& token) {
    const auto is_digit = [&](const char* at) {
        return at != end_ && characters.of_byte(*at) == PlainCharacters::digit;
    };
    const char* to = at_;
    while (is_digit(to)) ++to;
    if (to != end_ && characters.of_byte(*to) == PlainCharacters::letter) {
        // Not an exponent, nor what might be one
        const bool exponent =
            (*to == 'e' || *to == 'E') &&
            (is_digit(to + 1) || (to + 1 != end_ && (to[1] == '+' || to[1] == '-')));
        return exponent ? Found::hard : mixed_word(characters, to, token);
    }
    if (to == end_ || *to != '.' || !is_digit(to + 1))
        return found_if(characters, kUnsignedInt, to, token,
                        [&](char) { return ends_number(characters, to); });
    for (++to; is_digit(to);) ++to;
    return found_if(characters, kDecimal, to, token, [&](char c) {
        return c == '.' ? ends_before(characters, to + 1, "_")
                        : characters.of_byte(c) == PlainCharacters::blank &&
                              std::string_view("_@:").find(c) == std::string_view::npos;
    });
}

inline PlainText::Found PlainText::next(const PlainCharacters& characters, Token& token) {
    if (at_ < parts_end_) return part(characters, token);
    while (at_ != end_) {
        std::size_t bytes = 1;
        Kind kind = characters.of_byte(*at_);
        if (!is_ascii(*at_)) kind = characters.of_wide(at_, end_, bytes);
        switch (kind) {
            case PlainCharacters::letter:
            case PlainCharacters::other_letter:
                end_blank();
                return word(characters, token);
            case PlainCharacters::digit:
                end_blank();
                return number(characters, token);
            case PlainCharacters::dot:
            case PlainCharacters::tilde:
                if (blank_ == 0 && !is_blank_in_base(characters, kind, at_)) return Found::hard;
                break;
            case PlainCharacters::sign:
            case PlainCharacters::slash:
            case PlainCharacters::ampersand:
            case PlainCharacters::less:
                end_blank();
                if (!is_blank_in_base(characters, kind, at_)) return Found::hard;
                break;
            case PlainCharacters::unknown:
                return wants(at_);
            case PlainCharacters::hard:
            case PlainCharacters::wide:
                return Found::hard;
            case PlainCharacters::blank:
            case PlainCharacters::joining:
                break;
        }
        blank_ += bytes;
        at_ += bytes;
    }
    return Found::end;
}

}  // namespace gputext
