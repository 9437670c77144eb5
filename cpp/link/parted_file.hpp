// cpp/link/parted_file.hpp - file in memory of a known size, in parts that several processes write

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
