#include "extension/texts/plain_text.hpp"

extern "C" {
#include "mb/pg_wchar.h"
#include "tsearch/ts_type.h"
#include "utils/fmgrprotos.h"
}

#include <algorithm>
#include <cstring>

#include "extension/base/failure.hpp"

namespace gputext {
namespace {

bool is_letter_of_ascii(int c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool is_digit_of_ascii(int c) {
    return c >= '0' && c <= '9';
}

/// Calls `take(type, begin, size)` for each token that the server's default parser finds.
template <class Take>
void parse_by_default(const char* text, std::size_t size, const Take& take) {
    const Datum state = DirectFunctionCall2(prsd_start, PointerGetDatum(const_cast<char*>(text)),
                                            Int32GetDatum(static_cast<int32>(size)));
    for (;;) {
        char* token = nullptr;
        int bytes = 0;
        const int type = DatumGetInt32(DirectFunctionCall3(
            prsd_nexttoken, state, PointerGetDatum(&token), PointerGetDatum(&bytes)));
        if (type <= 0) break;
        take(type, token - text, bytes);
    }
    DirectFunctionCall1(prsd_end, state);
}

/// Whether a parser that is at "<" may see a tag there.
bool may_be_tag(const char* at, const char* end) {
    return at + 1 != end && (is_letter_of_ascii(at[1]) || std::strchr("/!?:_", at[1]) != nullptr);
}

/// Whether a tag goes on at the character, outside of quotes. Of the states of tags, none takes
/// other characters than these.
bool may_be_in_tag(const char* at, const char* less) {
    const auto c = static_cast<unsigned char>(*at);
    if (c == '!') return at == less + 1;
    return c >= 0x80 || c == ' ' || (c >= '\t' && c <= '\r') || is_letter_of_ascii(c) ||
           is_digit_of_ascii(c) || std::strchr("=-_#/:.&?%~", c) != nullptr;
}

/// Where the parser surely knows what is at "<", if not before; the end for a tag with a backslash
/// in quotes, which is not looked into.
const char* end_of_tag(const char* less, const char* end) {
    char quote = '\0';
    for (const char* at = less + 1; at != end; ++at) {
        if (quote != '\0') {
            if (*at == '\\') return end;
            if (*at == quote) quote = '\0';
        } else if (*at == '\'' || *at == '"') {
            quote = *at;
        } else if (*at == '>' || !may_be_in_tag(at, less)) {
            return at + 1;
        }
    }
    return end;
}

bool begins_comment(const char* at, const char* end) {
    return end - at >= 4 && std::memcmp(at, "<!--", 4) == 0;
}

const char* end_of_comment(const char* at, const char* end) {
    static constexpr std::string_view kEnd = "-->";
    const std::string_view rest(at + 4, end);
    const std::size_t found = rest.find(kEnd);
    return found == rest.npos ? end : rest.data() + found + kEnd.size();
}

/// Whether the text begins with the word, which has lower case, in any case. Bytes beyond ASCII
/// count as any letter, since a locale may know one of a smaller alphabet.
bool begins_with(std::string_view text, std::string_view word) {
    return text.size() >= word.size() &&
           std::equal(word.begin(), word.end(), text.begin(), [](char wanted, char c) {
               return static_cast<signed char>(c) < 0 ||
                      (c | (c >= 'A' && c <= 'Z' ? 0x20 : 0)) == wanted;
           });
}

/// Whether the parser could ignore what follows the stretch.
bool may_be_ignored_behind(std::string_view stretch) {
    for (std::size_t at = stretch.find('<'); at != stretch.npos; at = stretch.find('<', at + 1)) {
        const std::string_view tag = stretch.substr(at + 1);
        if (begins_with(tag, "script") || begins_with(tag, "style")) return true;
    }
    return false;
}

}  // namespace

// ---- Characters ----

bool PlainCharacters::learn_ascii() {
    utf8_ = GetDatabaseEncoding() == PG_UTF8;
    const bool single = pg_database_encoding_max_length() == 1;
    for (int c = 1; c < 256; ++c)
        bytes_[c] = c < 128 ? blank : utf8_ ? wide : single ? unknown : hard;
    char text[2 * 127];
    for (int c = 1; c < 128; ++c) {
        text[2 * c - 2] = static_cast<char>(c);
        text[2 * c - 1] = '\n';
    }
    bool plain = true;
    parse_by_default(text, sizeof text, [&](int type, std::ptrdiff_t begin, int size) {
        if (type == kBlankToken) return;
        const auto c = static_cast<unsigned char>(text[begin]);
        plain = plain && size == 1 && (type == kAsciiWord || type == kUnsignedInt);
        bytes_[c] = type == kAsciiWord ? letter : digit;
    });
    for (int c = 1; c < 128; ++c)
        plain = plain && (bytes_[c] == letter) == is_letter_of_ascii(c) &&
                (bytes_[c] == digit) == is_digit_of_ascii(c);
    bytes_['-'] = bytes_['+'] = sign;
    bytes_['.'] = dot;
    bytes_['/'] = slash;
    bytes_['~'] = tilde;
    bytes_['&'] = ampersand;
    bytes_['<'] = less;
    return plain;
}

/// Asks for the tokens of the character, behind it of a word with it, and behind that of a blank
/// with it.
void PlainCharacters::learn(std::string_view text) {
    std::size_t bytes = 1;
    std::uint32_t code = 0;
    if (utf8_) code = code_of(text.data(), text.data() + text.size(), bytes);
    char asked[16];
    std::size_t size = 0;
    const auto add = [&](std::string_view part) {
        std::memcpy(asked + size, part.data(), part.size());
        size += part.size();
    };
    const std::string_view character = text.substr(0, bytes);
    add(character);
    add("\na");
    add(character);
    add("\n");
    add(character);
    // The tokens' types, each with the place behind it
    const auto n = static_cast<int>(bytes);
    int types[6] = {}, ends[6] = {}, tokens = 0;
    parse_by_default(asked, size, [&](int type, std::ptrdiff_t begin, int length) {
        if (tokens == 6) return;
        types[tokens] = type;
        ends[tokens++] = static_cast<int>(begin) + length;
    });
    const auto are = [&](std::initializer_list<std::pair<int, int>> wanted) {
        int i = 0;
        for (const auto& [type, end] : wanted) {
            if (types[i] != type || ends[i] != end) return false;
            ++i;
        }
        return tokens == i;
    };
    Kind kind = hard;
    if (are({{kWord, n},
             {kBlankToken, n + 1},
             {kWord, 2 * n + 2},
             {kBlankToken, 2 * n + 3},
             {kWord, 3 * n + 3}}))
        kind = other_letter;
    else if (are({{kBlankToken, n + 1}, {kAsciiWord, n + 2}, {kBlankToken, 3 * n + 3}}))
        kind = blank;
    else if (are({{kBlankToken, n + 1}, {kWord, 2 * n + 2}, {kBlankToken, 3 * n + 3}}))
        kind = joining;
    if (!utf8_) {
        bytes_[static_cast<unsigned char>(text[0])] = kind;
        return;
    }
    attempt_or_raise([&] {
        if (wide_.empty()) wide_.resize(kCodes);
    });
    wide_[code] = kind;
}

// ---- Stretches ----

std::string_view PlainText::stretch() const {
    const char* known = at_;  // the tags that begin before end there
    const char* to = at_;
    while (to != end_ && known != end_) {
        if (begins_comment(to, end_)) {
            // Within a tag it may be none.
            to = known = to < known ? end_ : end_of_comment(to, end_);
            continue;
        }
        if (*to == '<' && may_be_tag(to, end_)) known = std::max(known, end_of_tag(to, end_));
        const char c = *to++;
        if (to > known && (c == ' ' || c == '\n' || c == '\t' || c == '\r')) break;
    }
    const std::string_view stretch(at_, known == end_ ? end_ : to);
    return may_be_ignored_behind(stretch) ? rest() : stretch;
}

}  // namespace gputext
