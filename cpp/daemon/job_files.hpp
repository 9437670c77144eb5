// cpp/daemon/job_files.hpp - reads the files of requests, and writes those of replies

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "cpp/base/filling.hpp"
#include "cpp/base/status.hpp"
#include "cpp/base/stoppable.hpp"
#include "cpp/base/vectors.hpp"
#include "cpp/base/words.hpp"
#include "cpp/embeddings/word_movers.hpp"
#include "cpp/knn/key_groups.hpp"
#include "cpp/knn/knn.hpp"
#include "cpp/link/file_descriptor.hpp"
#include "cpp/link/file_parts.hpp"
#include "cpp/link/input_files.hpp"
#include "cpp/link/mapped_file.hpp"
#include "cpp/link/memory_file.hpp"
#include "cpp/resident/resident_chunk.hpp"

namespace gputext {

/// The files of a request that are still to be mapped. Each of the functions below takes its own
/// off the front, in the order in which a RequestFiles has got them.
class JobFiles {
public:
    /// `chunks` are what a message may call resident; null for none. Both outlive this object.
    explicit JobFiles(std::span<const FileDescriptor> files, const ResidentChunks* chunks = nullptr)
        : files_(files), chunks_(chunks) {}

    /// The next ones, as many as there have to be by descriptors_of().
    std::span<const FileDescriptor> take(std::size_t count);
    /// The chunk of that number that consists of these files, if there is one.
    std::shared_ptr<const ResidentChunk> chunk(std::uint64_t resident,
                                               std::span<const FileDescriptor> files,
                                               std::uint64_t size) const;

private:
    std::span<const FileDescriptor> files_;
    const ResidentChunks* chunks_;
};

/// Bytes in files that may be resident: gputextd has mapped these already, and a
/// device may know them by their address.
class InputBytes {
public:
    std::span<const std::uint8_t> bytes() const {
        return chunk_ != nullptr ? chunk_->bytes() : own_.bytes();
    }
    /// What is known of them; null where they are not resident.
    KnownElements* known() const { return chunk_ != nullptr ? &chunk_->known() : nullptr; }
    /// Takes the next files, which have so many bytes in all. Errors as of MappedFile::map();
    /// cancelled, unavailable for files that gputextd has not filled.
    Status map(JobFiles& files, const PartsShape& parts, std::uint64_t size, std::uint64_t resident,
               Arrival arrival, Stop stop);

private:
    MappedFile own_;
    std::shared_ptr<const ResidentChunk> chunk_;  // which this object holds
};

/// Maps the next file, of exactly so many bytes.
Status map_next(JobFiles& files, std::uint64_t size, Trust trust, MappedFile& mapped);

/// Maps the next file, an array of exactly so many values.
template <class T>
Status map_next(JobFiles& files, std::uint64_t count, Trust trust, MappedFile& mapped,
                std::span<const T>& array) {
    GPUTEXT_TRY(map_next(files, count * sizeof(T), trust, mapped));
    array = mapped.array<T>(0, count);
    return {};
}

/// The matrix that a request's files hold.
class MappedMatrix {
public:
    /// With Arrival::later the host has to await_elements().
    Status map(const MatrixShape& shape, JobFiles& files, Stop stop,
               Arrival arrival = Arrival::awaited);

    const Vectors& vectors() const { return vectors_; }
    /// The same, of a model's words.
    WordVectors words() const {
        return {static_cast<const float*>(vectors_.elements), vectors_.rows, vectors_.dimensions};
    }

private:
    InputBytes elements_;
    MappedFile columns_, begins_;
    Vectors vectors_;
};

/// Keys that exclude and keys that have to match, where a search has them.
class MappedKeys {
public:
    Status map(bool has_keys, bool has_matches, std::uint32_t queries, std::uint32_t items,
               JobFiles& files);

    const RowKeys& keys() const { return keys_; }
    const MatchKeys& matches() const { return matches_; }

private:
    MappedFile key_file_, match_file_;
    RowKeys keys_;
    MatchKeys matches_;
};

/// Queries, items, and perhaps keys.
class MappedSearch {
public:
    Status map(const SearchShape& shape, JobFiles& files, Stop stop,
               Arrival of_items = Arrival::awaited);

    const Vectors& queries() const { return queries_.vectors(); }
    const Vectors& items() const { return items_.vectors(); }
    const RowKeys& keys() const { return keys_.keys(); }
    const MatchKeys& matches() const { return keys_.matches(); }

private:
    MappedMatrix queries_, items_;
    MappedKeys keys_;
};

/// The words that a request's files hold.
class MappedWords {
public:
    Status map(const WordsShape& shape, JobFiles& files, Stop stop);

    const Words& words() const { return words_; }

private:
    MappedFile bytes_, begins_;
    Words words_;
};

/// Appends all numbers to a reply's file. Error: cancelled.
template <class T>
Status append_all(MemoryFile& file, std::span<const T> values, Stop stop) {
    constexpr std::size_t step = std::max<std::size_t>(1, kLookEvery / sizeof(T));
    while (!values.empty()) {
        if (stop()) return Status::cancelled();
        const auto part = values.first(std::min(step, values.size()));
        Status status =
            file.append({reinterpret_cast<const std::uint8_t*>(part.data()), part.size_bytes()});
        if (!status.ok()) return status;
        values = values.subspan(part.size());
    }
    return {};
}
template <class T>
Status append_all(MemoryFile& file, const std::vector<T>& values, Stop stop) {
    return append_all(file, std::span<const T>(values), stop);
}

/// What unpack_neighbors() reads, of answers for consecutive queries. Error: cancelled.
Status append_neighbors(MemoryFile& file, std::span<const Neighbors> answers, Stop stop);

}  // namespace gputext
