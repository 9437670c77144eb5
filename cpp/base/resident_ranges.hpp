// cpp/base/resident_ranges.hpp - memory of gputextd that stays as it is from job to job
//
// What sessions have read once stays in gputextd's memory (cpp/resident), where it does not change
// until it is given up. A device may keep a copy of such memory, and knows it again by its address.
// Memory that has just been put together from older memory may be known before its bytes are there,
// and a device may then make its copy of the copies that it has of the older memory.

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "cpp/base/characters.hpp"
#include "cpp/base/filling.hpp"

namespace gputext {

// ---- Which bytes of older resident memory a range was put together from ----

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

/// The ranges of such memory. For all threads. Functions take O(log ranges).
class ResidentRanges {
public:
    struct Range {
        std::uint64_t id = 0;  // that no other range ever has; not 0
        const std::uint8_t* begin = nullptr;
        std::size_t size = 0;
        /// Whether its bytes are there; null where they are from the beginning. Stays as long as
        /// the range.
        const Filling* filling = nullptr;
    };
    using Origin = std::shared_ptr<const ResidentOrigin>;

    /// Before the first job reads it. `origin`: what it is put together from; null where nobody
    /// needs to know.
    void add(const Range& range, Origin origin = nullptr);
    /// After the last job that reads it, and before its memory is given up.
    void remove(std::uint64_t id);

    bool empty() const;
    /// The range that all these bytes lie in, if there is one. It stays while a job holds it.
    std::optional<Range> containing(const std::uint8_t* begin, std::size_t size) const;
    /// Whether it has been added and not removed: else a device's copy is of no use any more.
    bool has(std::uint64_t id) const;

    /// A device says how many bytes it keeps of a range now.
    void set_kept(std::uint32_t device, std::uint64_t id, std::uint64_t bytes);
    /// How many bytes all devices keep of a range.
    std::uint64_t kept(std::uint64_t id) const;

    /// What a range is put together from; null where that is unknown or of no use any more.
    /// Whoever holds it holds the older memory, too, and has to let go of it before it calls
    /// drop_origin() or origin_used().
    Origin origin(std::uint64_t id) const;
    bool has_origin(std::uint64_t id) const { return origin(id) != nullptr; }
    /// The device has its copy of the range, after set_kept(). The origin is dropped unless another
    /// device, which has none, has copies of the older memory.
    void origin_used(std::uint32_t device, std::uint64_t id);
    void drop_origin(std::uint64_t id);

private:
    bool of_use_to_others(std::uint32_t device, std::uint64_t id,
                          const ResidentOrigin& origin) const;

    mutable std::mutex mutex_;
    std::map<const std::uint8_t*, Range> by_address_;
    std::map<std::uint64_t, const std::uint8_t*> address_of_;
    std::map<std::pair<std::uint64_t, std::uint32_t>, std::uint64_t> kept_;  // by id and device
    std::map<std::uint64_t, Origin> origins_;                                // by id
};

}  // namespace gputext
