// cpp/base/resident_origin.hpp - which bytes of older resident memory a range was put together from

#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "cpp/base/characters.hpp"

namespace gputext {

class Filling;

/// Values that lie side by side in a source, and do so in the range, are one piece.
struct ResidentOrigin {
    struct Source {
        std::uint64_t id = 0;  // of its range
        Bytes bytes;
        const Filling* filling = nullptr;
        std::shared_ptr<const void> held;  // its memory
    };
    struct Piece {
        std::uint64_t begin = 0;   // in the range, where the piece before ends
        std::uint64_t size = 0;    // not 0
        std::uint64_t offset = 0;  // in the source
        std::uint32_t source = 0;

        std::uint64_t end() const { return begin + size; }
    };

    Bytes bytes_of(const Piece& piece) const {
        return sources[piece.source].bytes.subspan(piece.offset, piece.size);
    }

    std::vector<Source> sources;
    std::vector<Piece> pieces;
};

}  // namespace gputext
