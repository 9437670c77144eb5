// cpp/resident/resident_chunk.hpp - immutable memory with the values of a column

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "cpp/base/resident_ranges.hpp"
#include "cpp/base/status.hpp"
#include "cpp/base/vectors.hpp"
#include "cpp/link/file_descriptor.hpp"
#include "cpp/link/file_parts.hpp"
#include "cpp/link/mapped_file.hpp"

namespace gputext {

class ResidentChunks;

/// Sealed memfds, mapped side by side for as long as this object lives, at an address that devices
/// know from ResidentRanges. Its owners share it: the store, the requests that found values in it,
/// and the jobs that read it. Unmapping takes a tenth of a second a gigabyte, for the last of them.
/// Nothing of it ever changes, so that all threads may read it.
class ResidentChunk {
public:
    ~ResidentChunk();
    ResidentChunk(const ResidentChunk&) = delete;
    ResidentChunk& operator=(const ResidentChunk&) = delete;

    /// Not 0, and no other chunk of any gputextd has it, as far as chance allows.
    std::uint64_t id() const { return id_; }
    std::span<const std::uint8_t> bytes() const { return mapped_.bytes(); }
    PartsShape shape() const;
    std::size_t files() const { return files_.size(); }
    /// What jobs have found of the chunk's values, where these are vectors.
    KnownElements& known() const { return known_; }

    /// Further descriptors of the files, for a message. Error: io_error without descriptors.
    Result<std::vector<FileDescriptor>> duplicate_files() const;
    /// Whether these are descriptors of the same files in the same order.
    bool has_files(std::span<const FileDescriptor> files) const;

private:
    friend class ResidentChunks;
    ResidentChunk() = default;

    std::shared_ptr<ResidentChunks> all_;
    std::uint64_t id_ = 0;
    std::uint64_t part_bytes_ = 0;
    std::vector<FileDescriptor> files_;
    MappedFile mapped_;
    mutable KnownElements known_;
};

/// All chunks that somebody holds, by their ids. For all threads. Lives as long as any chunk.
class ResidentChunks : public std::enable_shared_from_this<ResidentChunks> {
public:
    /// `ranges` may be null where no device wants to know.
    static std::shared_ptr<ResidentChunks> create(std::shared_ptr<ResidentRanges> ranges);

    /// Takes over files that hold so many bytes, without a copy. Errors: invalid_argument when they
    /// are not sealed or have another size; out_of_memory.
    Result<std::shared_ptr<const ResidentChunk>> adopt(std::vector<FileDescriptor> files,
                                                       const PartsShape& parts,
                                                       std::uint64_t bytes);
    /// Null where there is none any more.
    std::shared_ptr<const ResidentChunk> find(std::uint64_t id) const;

    /// How many bytes of a chunk all devices have copies of.
    std::uint64_t on_devices(std::uint64_t id) const;

private:
    friend class ResidentChunk;
    explicit ResidentChunks(std::shared_ptr<ResidentRanges> ranges);
    void remove(const ResidentChunk& chunk);

    const std::shared_ptr<ResidentRanges> ranges_;
    mutable std::mutex mutex_;
    std::uint64_t next_id_;
    std::map<std::uint64_t, std::weak_ptr<const ResidentChunk>> chunks_;
};

}  // namespace gputext
