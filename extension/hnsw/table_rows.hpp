// extension/hnsw/table_rows.hpp - the rows of a table that an index has, read for its build
//
// Each process that reads the table writes what it finds into files of its own, in memory or on
// disk. Then the values are put in the order of rows, which does not depend on who has read them,
// and equal ones are put together.

#pragma once

#include "extension/base/postgres.hpp"

extern "C" {
#include "nodes/execnodes.h"
#include "storage/itemptr.h"
#include "utils/relcache.h"
}

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "cpp/base/vectors.hpp"
#include "cpp/link/input_files.hpp"
#include "cpp/link/memory_file.hpp"
#include "extension/hnsw/index_kind.hpp"
#include "extension/server/parallel_build.hpp"

namespace gputext::hnsw {

/// A file of another owner, or all of its first bytes, mapped for reading.
class Mapping {
public:
    Mapping() = default;
    ~Mapping() { release(); }
    Mapping(const Mapping&) = delete;
    Mapping& operator=(const Mapping&) = delete;

    /// Error: out_of_memory.
    Status map(int file, std::uint64_t size);
    void release();
    const std::byte* data() const { return data_; }

private:
    const std::byte* data_ = nullptr;
    std::uint64_t size_ = 0;
};

/// Rows of values that are written once, in any order, and then read: in memory, in files that
/// gputextd can be handed, or on disk.
class ValueRows {
public:
    /// `file` is one on disk, which stays its owner's, or -1. In memory there are files of
    /// `part_rows` rows, of whole pages. Errors: those of PartedFile.
    Status create(int file, std::uint64_t rows, std::size_t row_bytes, std::size_t part_rows);
    /// From several threads. Errors: out_of_memory, io_error.
    Status write(std::uint64_t row, std::span<const std::uint8_t> bytes);
    /// As many as a file has; on disk all.
    std::size_t part_rows() const { return file_ >= 0 ? rows_ : part_bytes_ / row_bytes_; }
    /// After all rows were written: data() has them. Errors: the same.
    Status finish();
    const std::byte* data() const;
    /// The files of all rows, as long as this object.
    FileParts parts() const;

private:
    PartedFile memory_;
    std::vector<int> files_;  // of memory_
    std::uint64_t part_bytes_ = 0;
    int file_ = -1;
    FileDescriptor on_disk_;  // the same file, which its owner may close
    Mapping disk_;
    std::uint64_t rows_ = 0;
    std::size_t row_bytes_ = 0;
};

/// What one process has found: files with the values and the places of so many rows.
struct FoundRows {
    int values, places;
    std::uint64_t rows;
};

/// The elements of an index: values, equal ones in as few elements as pgvector has of them, and the
/// rows that have these values. Elements with distinct values come first, in the order of their
/// first rows; then those that are left of values of more rows than an element has, as HnswBuilder
/// wants them.
class TableElements {
public:
    /// Files on disk for values that do not fit into memory, else -1: those of all rows, and those
    /// of elements if they are fewer.
    struct Disk {
        int rows = -1, elements = -1;
    };

    /// All files stay their owner's; those that were found have no values any more. Time: O(bytes),
    /// on the execution's threads. Memory beside the values: 40 bytes a row. Errors: cancelled,
    /// out_of_memory, io_error.
    Status set(std::span<const FoundRows> found, const IndexKind& kind, const Disk& disk,
               Execution& execution);

    /// values(), in files for gputextd.
    VectorFiles files() const;

    /// Of a row for each element.
    const Vectors& values() const { return values_; }
    /// See HnswBuilder.
    std::span<const std::uint32_t> copy_of() const { return copy_of_; }
    /// See Elements.
    std::span<const std::uint32_t> first_rows() const { return first_rows_; }
    std::span<const ItemPointerData> rows() const { return rows_; }

private:
    /// Also the hash_of_row() of each.
    Status put_in_order(std::span<const FoundRows> found, int file,
                        std::vector<std::uint64_t>& hashes, Execution& execution);
    Status put_together(int file, std::span<const std::uint64_t> hashes, Execution& execution);

    std::size_t row_bytes_ = 0;
    std::unique_ptr<ValueRows> stored_;
    Vectors values_;
    std::vector<std::uint32_t> copy_of_, first_rows_;
    std::vector<ItemPointerData> rows_;
};

/// Files for what processes find.
struct ReadFiles {
    static constexpr unsigned kMost = 64;

    unsigned processes = 0;
    bool on_disk = false;
    FoundRows found[kMost];

    /// That all have found.
    std::uint64_t rows() const {
        std::uint64_t sum = 0;
        for (unsigned process = 0; process < processes; ++process) sum += found[process].rows;
        return sum;
    }
};

/// Opens files for so many processes, in memory or on disk, until the context is reset or deleted.
/// Raises an error where there are no more.
ReadFiles open_files(unsigned processes, bool on_disk, MemoryContext context);
int open_file(bool on_disk, MemoryContext context);

/// Reads the rows of a table that the index is to have, without those that it has not: null
/// values, and where `kind` is normalized those of norm 0. Fills in how many rows each process has
/// found. Raises an error for a vector that pgvector would refuse.
BuildCounts read_rows(Relation table, Relation index, IndexInfo* info, const IndexKind& kind,
                      ReadFiles& files);

}  // namespace gputext::hnsw
