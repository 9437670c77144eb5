#include "extension/parsed_pieces.hpp"

#include <algorithm>
#include <cstring>

namespace gputext {
namespace {

/// Bytes of a text that are parsed at once: the parser looks for no cancel, and what it gives for
/// one text is to stay below the 1 GB of an allocation.
constexpr std::size_t kPiece = std::size_t{1} << 20;

}  // namespace

/// Bytes below 128 are characters of their own in every server encoding.
std::size_t end_of_piece(std::string_view text, std::size_t begin) {
    if (text.size() - begin <= kPiece) return text.size();
    for (const char end : {'\n', ' '}) {
        const std::size_t at = text.rfind(end, begin + kPiece - 1);
        if (at != text.npos && at >= begin + kPiece / 2) return at + 1;
    }
    const std::size_t at = text.find_first_of("\n ", begin + kPiece);
    return at == text.npos ? text.size() : at + 1;
}

ParsedText parse_piece(Oid config, std::string_view piece) {
    ParsedText parsed{};
    parsed.lenwords = static_cast<int32>(std::max<std::size_t>(16, piece.size() / 6));
    parsed.words = static_cast<ParsedWord*>(palloc(sizeof(ParsedWord) * parsed.lenwords));
    // The parser stops to count positions at 16383. From here it does not get there, and those of
    // neighbouring tokens differ in the 16 bits that it keeps.
    parsed.pos = PG_INT32_MIN;
    parsetext(config, &parsed, const_cast<char*>(piece.data()), static_cast<int32>(piece.size()));
    return parsed;
}

bool seen_at_position(const ParsedWord* words, int32 index) {
    const ParsedWord& word = words[index];
    for (int32 i = index - 1; i >= 0 && words[i].pos.pos == word.pos.pos; --i)
        if (words[i].len == word.len && std::memcmp(words[i].word, word.word, word.len) == 0)
            return true;
    return false;
}

}  // namespace gputext
