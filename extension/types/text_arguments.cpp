#include "extension/types/text_arguments.hpp"

extern "C" {
#include "mb/pg_wchar.h"
}

namespace gputext {
namespace {

CharacterLengths lengths_of_encoding(int encoding) {
    std::array<std::uint8_t, 256> lengths;
    for (unsigned byte = 0; byte < 256; ++byte) {
        // Some encodings' functions look at a second byte, and none at more.
        const char text[] = {static_cast<char>(byte), '\0', '\0', '\0', '\0'};
        lengths[byte] = static_cast<std::uint8_t>(pg_encoding_mblen(encoding, text));
    }
    return CharacterLengths(lengths);
}

}  // namespace

const CharacterLengths& database_characters() {
    // A session stays in one database.
    static const CharacterLengths lengths = lengths_of_encoding(GetDatabaseEncoding());
    return lengths;
}

}  // namespace gputext
