// cpp/link/file_parts.hpp - files that hold the bytes of an input one behind the other
//
// An input is one file, or parts of one length, each a file of its own: so several processes can
// write it at once without waiting for each other, which they do for the lock of one file. Whoever
// reads it maps the parts side by side (mapped_file.hpp).

#pragma once

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace gputext {

inline constexpr std::size_t kMostParts = 32;

/// Bytes of a page of memory, of which the length of a part is a multiple.
inline std::uint64_t page_size() {
    static const auto size = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
    return size;
}

/// How many files hold an input, as a message says it.
struct PartsShape {
    std::uint32_t parts = 1;
    std::uint64_t part_bytes = 0;  // of each but the last one, which has the rest; 0 of one file

    static void fields(auto& archive, auto& self) { archive(self.parts, self.part_bytes); }
    /// Whether so many bytes lie in such files.
    bool hold(std::uint64_t size) const {
        if (parts == 1) return part_bytes == 0;
        return parts >= 2 && parts <= kMostParts && part_bytes > 0 &&
               part_bytes % page_size() == 0 && size > 0 && (size - 1) / part_bytes == parts - 1;
    }
    /// Bytes of a part. Requires hold(size).
    std::uint64_t size_of(std::size_t part, std::uint64_t size) const {
        return part + 1 < parts ? part_bytes : size - part * part_bytes;
    }
};

/// The descriptors of these files, which stay their owner's.
class FileParts {
public:
    /// None: the input is copied into a file.
    FileParts() = default;
    /// One file; -1 for none.
    FileParts(int descriptor) : one_(descriptor) {}
    /// `descriptors` outlive this object.
    FileParts(std::span<const int> descriptors, std::uint64_t part_bytes)
        : several_(descriptors), part_bytes_(part_bytes) {}

    bool none() const { return several_.empty() && one_ < 0; }
    /// Valid as long as this object.
    std::span<const int> descriptors() const {
        return several_.empty() ? std::span<const int>(&one_, one_ < 0 ? 0 : 1) : several_;
    }
    PartsShape shape() const {
        const auto parts = static_cast<std::uint32_t>(descriptors().size());
        return {parts, parts > 1 ? part_bytes_ : 0};
    }

private:
    int one_ = -1;
    std::span<const int> several_;
    std::uint64_t part_bytes_ = 0;
};

}  // namespace gputext
