// extension/types/text_arguments.hpp - text and bytea arguments as cpp/ reads them

#pragma once

#include "extension/base/postgres.hpp"

#include <string_view>

#include "cpp/base/characters.hpp"

namespace gputext {

/// The bytes of a text or bytea that is not compressed or stored elsewhere.
inline Bytes bytes_of(const varlena* value) {
    return {reinterpret_cast<const std::uint8_t*>(VARDATA_ANY(value)), VARSIZE_ANY_EXHDR(value)};
}

inline std::string_view view_of(const varlena* value) {
    return {VARDATA_ANY(value), VARSIZE_ANY_EXHDR(value)};
}

/// How the bytes of a text in this database are characters.
const CharacterLengths& database_characters();

}  // namespace gputext
