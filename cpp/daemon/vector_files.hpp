// cpp/daemon/vector_files.hpp - reads vectors from the files of requests, and writes numbers to
// those of replies

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cpp/base/status.hpp"
#include "cpp/base/stoppable.hpp"
#include "cpp/base/vectors.hpp"
#include "cpp/daemon/operator_job.hpp"
#include "cpp/knn/knn.hpp"
#include "cpp/link/file_descriptor.hpp"
#include "cpp/link/mapped_file.hpp"
#include "cpp/link/memory_file.hpp"
#include "cpp/link/protocol.hpp"

namespace gputext {

/// The matrix that a request's files hold.
class MappedMatrix {
public:
    /// Takes the matrix' files off the front of `files`.
    Status map(const MatrixShape& shape, std::span<const FileDescriptor>& files, Stop stop);

    const Vectors& vectors() const { return vectors_; }

private:
    MappedFile elements_, columns_, begins_;
    Vectors vectors_;
};

/// Queries, items, and perhaps keys.
class MappedSearch {
public:
    /// Maps the files of a SubmitNeighbours, or of a message with the same files.
    template <class Submit>
    Status map(const Submit& request, std::span<const FileDescriptor> files, Stop stop) {
        Status status = queries_.map(request.queries, files, stop);
        if (status.ok()) status = items_.map(request.items, files, stop);
        if (!status.ok() || !request.has_keys) return status;
        return map_keys(files[0], request.queries.rows, request.items.rows);
    }

    const Vectors& queries() const { return queries_.vectors(); }
    const Vectors& items() const { return items_.vectors(); }
    const RowKeys& keys() const { return keys_; }

private:
    Status map_keys(const FileDescriptor& file, std::size_t queries, std::size_t items);

    MappedMatrix queries_, items_;
    MappedFile key_file_;
    RowKeys keys_;
};

/// Appends all numbers to a reply's file. Error: cancelled.
template <class T>
Status append_all(MemoryFile& file, const std::vector<T>& values, Stop stop) {
    constexpr std::size_t step = std::max<std::size_t>(1, kLookEvery / sizeof(T));
    for (std::size_t begin = 0; begin < values.size(); begin += step) {
        if (stop()) return Status::cancelled();
        const std::size_t count = std::min(step, values.size() - begin);
        Status status = append_array(file, values.data() + begin, count * sizeof(T));
        if (!status.ok()) return status;
    }
    return {};
}

/// What unpack_neighbours() reads. Error: cancelled.
Status append_neighbours(MemoryFile& file, const Neighbours& neighbours, Stop stop);

}  // namespace gputext
