// cpp/documents/documents.hpp - the documents of one job, packed one behind the other

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "cpp/base/characters.hpp"

namespace gputext {

/// Where a document lies in the packed bytes.
struct Extent {
    std::uint64_t begin;
    std::uint64_t size;
};

/// A view: whoever made it keeps the memory. At most 2^32 - 1 documents, each below 2^31 bytes.
struct Documents {
    const std::uint8_t* bytes = nullptr;
    std::span<const Extent> extents;
    /// How the bytes are characters: edit rates count characters, signatures bytes.
    CharacterLengths characters = CharacterLengths::single_byte();

    std::size_t size() const { return extents.size(); }
    Bytes operator[](std::size_t i) const { return {bytes + extents[i].begin, extents[i].size}; }
};

}  // namespace gputext
