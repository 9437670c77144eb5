// cpp/memory_file.hpp - bytes that grow without being copied, in memory that a file descriptor
// names

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "cpp/file_descriptor.hpp"
#include "cpp/status.hpp"

namespace gputext {

/// An anonymous file in memory (memfd), mapped and appended to. Its memory belongs to no allocator,
/// so no limit of one applies, and it can be handed to another process by its descriptor.
class MemoryFile {
public:
    MemoryFile() = default;
    ~MemoryFile();
    MemoryFile(const MemoryFile&) = delete;
    MemoryFile& operator=(const MemoryFile&) = delete;

    /// Amortised O(size). Errors: out_of_memory, io_error (no descriptor).
    Status append(std::span<const std::uint8_t> bytes);

    /// Ends the appending: from now on nobody can change the bytes or their number, so that another
    /// process can trust the descriptor. There is one even when nothing was appended. Moves data().
    /// Errors: out_of_memory, io_error.
    Status seal();

    /// Valid until the next append or seal.
    const std::uint8_t* data() const { return data_; }
    std::size_t size() const { return size_; }
    int descriptor() const { return descriptor_; }

    /// Hands the file over; this one is empty then.
    FileDescriptor release_descriptor();

private:
    Status create();
    Status reserve(std::size_t wanted);
    void unmap();

    int descriptor_ = -1;
    std::uint8_t* data_ = nullptr;
    std::size_t size_ = 0;
    std::size_t capacity_ = 0;
};

}  // namespace gputext
