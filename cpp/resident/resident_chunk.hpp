// cpp/resident/resident_chunk.hpp - immutable memory with the values of a column

#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "cpp/base/filling.hpp"
#include "cpp/base/resident_ranges.hpp"
#include "cpp/base/status.hpp"
#include "cpp/base/vectors.hpp"
#include "cpp/link/file_descriptor.hpp"
#include "cpp/link/file_parts.hpp"
#include "cpp/link/mapped_file.hpp"

namespace gputext {

class ResidentChunks;

/// The list of words whose numbers lie in a chunk's values: a sealed memfd, as in AddTerms. Nobody
/// in gputextd reads it.
struct ChunkWords {
    FileDescriptor file;
    std::uint64_t count = 0;
    std::uint64_t bytes = 0;  // of the file; 0 where values have no words

    std::size_t files() const { return bytes > 0 ? 1 : 0; }
};

/// Memfds, mapped side by side for as long as this object lives, at an address that devices know
/// from ResidentRanges. Its owners share it: the store, the requests that found values in it, and
/// the jobs that read it. Unmapping takes a tenth of a second a gigabyte, for the last of them.
/// They are sealed, and nothing of them ever changes, so that all threads may read them; but for a
/// chunk that is being filled, whose bytes nobody may read, and whose files are not sealed, before
/// filling() says that it is filled.
class ResidentChunk {
public:
    ~ResidentChunk();
    ResidentChunk(const ResidentChunk&) = delete;
    ResidentChunk& operator=(const ResidentChunk&) = delete;

    /// Not 0, and no other chunk of any gputextd has it, as far as chance allows.
    std::uint64_t id() const { return id_; }
    std::span<const std::uint8_t> bytes() const { return mapped_.bytes(); }
    PartsShape shape() const;
    std::size_t files() const { return files_.size() + words_.files(); }
    const ChunkWords& words() const { return words_; }
    const Filling& filling() const { return filling_; }
    /// What jobs have found of the chunk's values, where these are vectors.
    KnownElements& known() const { return known_; }

    /// Further descriptors of the files, for a message, the one of words behind the others. Error:
    /// io_error without descriptors.
    Result<std::vector<FileDescriptor>> duplicate_files() const;
    /// Whether these are descriptors of the values' files in the same order.
    bool has_files(std::span<const FileDescriptor> files) const;

    // For the threads that fill it.

    /// Writes from that byte on, within one file. Errors: out_of_memory, io_error.
    Status write(std::uint64_t offset, std::span<const std::uint8_t> bytes);
    /// All bytes are written, or never will be, as the status says: seals the files.
    void end_filling(Status status);

private:
    friend class ResidentChunks;
    ResidentChunk() = default;

    std::shared_ptr<ResidentChunks> all_;
    std::uint64_t id_ = 0;
    std::uint64_t part_bytes_ = 0;
    std::vector<FileDescriptor> files_;
    ChunkWords words_;
    MappedFile mapped_;
    Filling filling_;
    mutable KnownElements known_{&filling_};
};

/// All chunks that somebody holds, by their ids. For all threads. Lives as long as any chunk.
class ResidentChunks : public std::enable_shared_from_this<ResidentChunks> {
public:
    /// `ranges` may be null where no device wants to know.
    static std::shared_ptr<ResidentChunks> create(std::shared_ptr<ResidentRanges> ranges);

    /// Takes over files that hold so many bytes, without a copy. Errors: invalid_argument when they
    /// are not sealed or have another size; out_of_memory.
    Result<std::shared_ptr<const ResidentChunk>> adopt(std::vector<FileDescriptor> files,
                                                       const PartsShape& parts, std::uint64_t bytes,
                                                       ChunkWords words = {});
    /// A chunk of so many bytes, which are still to be written, with this origin. Errors:
    /// out_of_memory; io_error.
    Result<std::shared_ptr<ResidentChunk>> reserve(std::uint64_t bytes,
                                                   ResidentRanges::Origin origin);
    /// Null where there is none any more.
    std::shared_ptr<const ResidentChunk> find(std::uint64_t id) const;

    /// How many bytes of a chunk all devices have copies of.
    std::uint64_t on_devices(std::uint64_t id) const;
    /// Null where no device wants to know.
    const std::shared_ptr<ResidentRanges>& ranges() const { return ranges_; }

private:
    friend class ResidentChunk;
    explicit ResidentChunks(std::shared_ptr<ResidentRanges> ranges);
    void add(const std::shared_ptr<ResidentChunk>& chunk, ResidentRanges::Origin origin);
    void remove(const ResidentChunk& chunk);

    const std::shared_ptr<ResidentRanges> ranges_;
    mutable std::mutex mutex_;
    std::uint64_t next_id_;
    std::map<std::uint64_t, std::weak_ptr<const ResidentChunk>> chunks_;
};

}  // namespace gputext
