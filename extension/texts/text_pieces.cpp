#include "extension/texts/text_pieces.hpp"

extern "C" {
#include "mb/pg_wchar.h"
#include "tsearch/ts_type.h"
}

#include <algorithm>
#include <cstring>

#include "extension/base/server_versions.hpp"

namespace gputext {
namespace {

/// Bytes of a text that are parsed at once: the parser looks for no cancel, and what it gives for
/// one text is to stay below the 1 GB of an allocation.
constexpr std::size_t kPiece = std::size_t{1} << 20;
/// Size of a piece where there is no blank to end it at.
constexpr std::size_t kLongestPiece = 2 * kPiece;
/// So far around the end of such a piece a better place is looked for. Longer than any word that
/// to_tsvector() does not ignore, which is what makes a cut harmless where there is none: both
/// parts of the word that is cut are ignored, too.
constexpr std::size_t kWindow = 4096;
static_assert(kWindow > MAXSTRLEN);

/// How surely no word goes on behind the character, by PostgreSQL's own parser.
enum class Ending { none, unless_url, always };

Ending ending_of(const char* character, int length) {
    if (length > 1)
        return is_letter_or_digit(character) || pg_dsplen(character) == 0 ? Ending::none
                                                                          : Ending::always;
    if (static_cast<unsigned char>(*character) < ' ' || std::strchr("\">\\^`{|}", *character))
        return Ending::always;
    return std::strchr("!'()*,;[]", *character) ? Ending::unless_url : Ending::none;
}

/// Where a piece ends that has no blank: behind the last character before kLongestPiece that ends a
/// word, or else the first one behind that, or else between any two characters.
std::size_t end_without_blank(std::string_view text, std::size_t begin) {
    const char* const piece = text.data() + begin;
    constexpr std::size_t size = kLongestPiece + kWindow;  // that there is
    std::size_t at = pg_mbcliplen(piece, size, kLongestPiece - kWindow);
    std::size_t surely = 0, likely = 0;
    while (at < kLongestPiece || (at < size && surely + likely == 0)) {
        const int length = pg_mblen(piece + at);
        const Ending ending = ending_of(piece + at, length);
        at += length;
        if (ending == Ending::always) surely = at;
        if (ending == Ending::unless_url) likely = at;
    }
    if (surely + likely > 0) return begin + (surely > 0 ? surely : likely);
    return begin + pg_mbcliplen(piece, size, kLongestPiece);
}

}  // namespace

/// Bytes below 128 are characters of their own in every server encoding.
std::size_t end_of_piece(std::string_view text, std::size_t begin) {
    if (text.size() - begin <= kPiece) return text.size();
    for (const char end : {'\n', ' '}) {
        const std::size_t at = text.rfind(end, begin + kPiece - 1);
        if (at != text.npos && at >= begin + kPiece / 2) return at + 1;
    }
    const std::size_t most = std::min(text.size(), begin + kLongestPiece + kWindow);
    const std::size_t blank = text.substr(0, most).find_first_of("\n ", begin + kPiece);
    if (blank != text.npos) return blank + 1;
    return most == text.size() ? most : end_without_blank(text, begin);
}

}  // namespace gputext
