// extension/types/trie_value.hpp - stored form of the type trie, and dictionaries that stay open

#pragma once

#include "extension/base/postgres.hpp"

#include <span>

#include "cpp/trie/trie.hpp"

namespace gputext {

/// A value of type trie: an image (cpp/trie/trie.hpp). It is stored without PostgreSQL's
/// compression, which would gain nothing: so that its first bytes can be fetched alone.
inline std::span<const std::uint8_t> image_of(const varlena* value) {
    return {reinterpret_cast<const std::uint8_t*>(VARDATA_ANY(value)), VARSIZE_ANY_EXHDR(value)};
}

/// A value of type trie, with room for an image of this size. Raises an error when it is larger
/// than a value may be.
varlena* new_trie_value(std::size_t size);

/// The argument, open: until the function's own memory context ends, that of the statement in
/// which it is called. The same dictionary is fetched and opened once for all its calls there, as
/// long as they alternate between a few. Raises an error when the value is broken.
const Trie& trie_argument(FunctionCallInfo fcinfo, int argument);

/// An open dictionary, and its image.
struct OpenImage {
    const Trie* trie;
    std::span<const std::uint8_t> image;
};

/// The argument, which is not null, in memory of this context and open as long as that.
OpenImage open_trie_value(Datum dictionary, MemoryContext context);

}  // namespace gputext
