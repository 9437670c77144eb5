// extension/values/laid_out_bytes.hpp - bytes of a known size, written by several processes
//
// One process at a time writes to a file in memory at full speed: the kernel locks the file for
// each write, and each page of it for each mapping. So the bytes lie in several such files, the
// parts, and every process begins with a part of its own. Beyond gputext.host_memory_limit they
// lie in one temporary file of PostgreSQL's, which counts against temp_file_limit. Or the bytes
// come from gputextd, in files that it has filled.

#pragma once

#include "extension/base/postgres.hpp"

extern "C" {
#include "storage/fd.h"
}

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpp/link/file_descriptor.hpp"
#include "cpp/link/file_parts.hpp"
#include "cpp/link/mapped_file.hpp"
#include "cpp/link/memory_file.hpp"
#include "extension/values/packed_rows.hpp"

namespace gputext {

/// What another process needs to write.
struct LaidOutFiles {
    pid_t session;
    unsigned parts;
    std::uint64_t part_bytes;     // of each but the last
    int descriptors[kMostParts];  // open in the session
};

/// Functions raise errors.
class LaidOutBytes {
public:
    explicit LaidOutBytes(std::size_t memory_limit) : memory_limit_(memory_limit) {}

    /// Makes room for so many bytes, zeros so far, for so many processes to write.
    void create(std::uint64_t size, unsigned processes);
    /// Takes files of so many bytes from gputextd in place of create() and finish(). `part_bytes`:
    /// as in PartsShape. `resident`: what gputextd calls them, 0 for nothing.
    void receive(std::vector<FileDescriptor>& files, std::uint64_t size, std::uint64_t part_bytes,
                 std::uint64_t resident);
    /// Maps what was received: false when gputextd has not filled it, so far.
    bool map_received();
    /// Whether there are bytes to be read: those of received files are after map_received().
    bool arrived() const { return received_.empty() || !mapped_.bytes().empty() || size_ == 0; }

    /// What was made or received; 0 before.
    std::uint64_t size() const { return size_; }
    std::size_t memory_limit() const { return memory_limit_; }
    LaidOutFiles files() const;
    /// Writes in the session, from any thread: calls nothing of PostgreSQL. Errors: out_of_memory;
    /// io_error.
    Status write(std::uint64_t begin, std::span<const std::uint8_t> bytes);

    /// When nobody writes any more.
    void finish();
    /// After finish(); null before the bytes have arrived. Aligned for any type.
    const std::uint8_t* data() const;
    /// After finish(): the files for another process to read. Nobody changes them any more.
    FileParts share() const;

    /// Whether the bytes lie in memory, and not in a temporary file.
    bool in_memory() const { return file_ < 0; }
    /// What gputextd calls these bytes, which it keeps, too; 0 for nothing.
    std::uint64_t resident() const { return resident_; }
    void set_resident(std::uint64_t resident) { resident_ = resident; }

    /// As PackedBytes::release().
    void release();

private:
    void create_temporary_file();
    void seal();

    std::size_t memory_limit_;
    std::uint64_t size_ = 0;
    PartedFile memory_;
    DescriptorRoom room_;  // for its parts
    File file_ = -1;  // in place of memory; closed by release(), or when the transaction aborts
    FileDescriptor file_copy_;  // PostgreSQL closes a file's own descriptor when it opens others
    std::vector<FileDescriptor> received_;  // in place of both
    std::vector<int> received_descriptors_;
    std::uint64_t received_part_bytes_ = 0;
    std::uint64_t resident_ = 0;
    MappedFile mapped_;  // of the temporary file, or of what was received
};

/// Writes in any process of the session's parallel work.
class LaidOutWriter {
public:
    /// False when the system does not let another process have the session's files.
    bool open(const LaidOutFiles& files, unsigned process);
    /// Raises an error when there is no room.
    void write(std::uint64_t begin, const void* bytes, std::size_t size) const;

private:
    void write_part(std::uint64_t part, std::uint64_t at, const char* bytes,
                    std::size_t size) const;

    std::uint64_t part_bytes_ = 0;
    int descriptors_[kMostParts];
};

}  // namespace gputext
