// cpp/link/memory_file.hpp - files in memory, which descriptors can hand to other processes: one
// that grows, and one of a known size in parts, which several processes write

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cpp/base/status.hpp"
#include "cpp/link/file_descriptor.hpp"
#include "cpp/link/file_parts.hpp"
#include "cpp/link/mapped_file.hpp"

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

/// Reads all bytes from a file, from that offset on. Error: io_error, also where it has fewer.
Status read_file(int descriptor, std::span<std::uint8_t> bytes, std::uint64_t offset);

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

/// Bytes of a part, for a file of that size that so many writers fill at once: at most kMostParts
/// parts, in whole pages, and none that is not worth a file of its own.
std::uint64_t part_bytes_for(std::uint64_t size, std::size_t writers);

/// Anonymous files in memory (memfds) that hold the bytes of one file one behind the other. A byte
/// that nobody has written is 0 and takes no memory. Other processes may open the parts by
/// /proc/PID/fd/DESCRIPTOR and write() there, too.
class PartedFile {
public:
    PartedFile() = default;
    PartedFile(const PartedFile&) = delete;
    PartedFile& operator=(const PartedFile&) = delete;

    /// Makes so many bytes in parts of `part_bytes`, a multiple of page_size(), the last one
    /// shorter; what this object had is released. Errors: invalid_argument for more than kMostParts
    /// parts; out_of_memory; io_error (no descriptor).
    Status create(std::uint64_t size, std::uint64_t part_bytes);

    /// Writes from that byte on, over the border of parts where need be. Looks at no stop request,
    /// so that much is better written in pieces. Errors: invalid_argument beyond the size;
    /// out_of_memory, also where the kernel does not overcommit memory; io_error.
    Status write(std::uint64_t offset, std::span<const std::uint8_t> bytes);

    /// Ends the writing of all processes, as MemoryFile::seal() does. Error: io_error, also while
    /// one of them has a part mapped for writing.
    Status seal();

    /// Maps all parts side by side for reading, after seal(); data() then has the bytes. A process
    /// that hands the file over does not need it. Errors: invalid_argument before seal();
    /// out_of_memory.
    Status map();
    const std::uint8_t* data() const { return mapped_.bytes().data(); }

    std::uint64_t size() const { return size_; }
    /// The descriptors, which stay this object's.
    FileParts parts() const { return {descriptors_, part_bytes_}; }

    /// Hands the files over, in their order, after seal(); this object has none then.
    std::vector<FileDescriptor> release_files();

    /// Unmaps and closes.
    void release();

private:
    std::uint64_t size_ = 0;
    std::uint64_t part_bytes_ = 0;
    std::vector<FileDescriptor> files_;
    std::vector<int> descriptors_;  // of the files
    MappedFile mapped_;
};

}  // namespace gputext
