// cpp/link/memory_file.hpp - growing file in memory, which a descriptor can hand to another process

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cpp/base/status.hpp"
#include "cpp/link/file_descriptor.hpp"

namespace gputext {

/// An empty anonymous file in memory (memfd), which can be sealed. Error: io_error.
Result<FileDescriptor> new_memory_file();

/// From now on nobody can change the bytes of such a file or their number. Error: io_error, also
/// while a process has it mapped for writing.
Status seal_memory_file(int descriptor);

/// What this error of a call that was to give a file in memory pages means: out_of_memory or
/// io_error.
Status no_pages(int error);

/// Writes all bytes to a file, from that offset on, however many calls that takes. Errors:
/// out_of_memory, also for a full disk; io_error.
Status write_file(int descriptor, std::span<const std::uint8_t> bytes, std::uint64_t offset);

/// An anonymous file in memory (memfd), appended to. Its memory belongs to no allocator, so no
/// limit of one applies, and it can be handed to another process by its descriptor.
class MemoryFile {
public:
    MemoryFile() = default;
    ~MemoryFile();
    MemoryFile(const MemoryFile&) = delete;
    MemoryFile& operator=(const MemoryFile&) = delete;

    /// Small pieces are written together. Errors: out_of_memory, also where the kernel does not
    /// overcommit memory; io_error (no descriptor). After an error the bytes that were appended
    /// before are still there.
    Status append(std::span<const std::uint8_t> bytes);

    /// Ends the appending: from now on nobody can change the bytes or their number, so that another
    /// process can trust the descriptor. There is one even when nothing was appended. Errors:
    /// out_of_memory, io_error.
    Status seal();

    /// After seal().
    const std::uint8_t* data() const { return data_; }
    std::size_t size() const { return written_ + buffer_.size(); }
    /// Has all bytes after seal().
    int descriptor() const { return descriptor_.get(); }

    /// Hands the file over after seal(); this one is empty then.
    FileDescriptor release_descriptor();

private:
    Status create();
    Status flush();
    void unmap();

    FileDescriptor descriptor_;
    std::size_t written_ = 0;
    std::vector<std::uint8_t> buffer_;  // that comes behind what is written
    std::uint8_t* data_ = nullptr;
};

}  // namespace gputext
