// extension/rows/packed_rows.hpp - packs the rows of an inner query into files for cpp/ to read

#pragma once

#include "extension/base/postgres.hpp"

extern "C" {
#include "storage/fd.h"
}

#include <optional>
#include <vector>

#include "cpp/documents/ctph.hpp"
#include "cpp/documents/documents.hpp"
#include "cpp/link/file_descriptor.hpp"
#include "cpp/link/memory_file.hpp"

namespace gputext {

/// Bytes appended in memory up to gputext.host_memory_limit, and from there on in a temporary file
/// of PostgreSQL's, which counts against temp_file_limit. Functions raise errors.
class PackedBytes {
public:
    explicit PackedBytes(std::size_t memory_limit) : memory_limit_(memory_limit) {}
    ~PackedBytes();
    PackedBytes(const PackedBytes&) = delete;
    PackedBytes& operator=(const PackedBytes&) = delete;

    void append(const void* bytes, std::size_t size);
    std::size_t size() const { return size_; }

    /// Ends the appending. From here on data() may be called.
    void finish();
    /// Valid until share(). Aligned for any type.
    const std::uint8_t* data() const;

    /// After finish(): a descriptor by which another process may read the bytes, and nobody changes
    /// them any more.
    FileDescriptor share();

    /// Gives memory and file back. After an error it must not be called: PostgreSQL then closes the
    /// file by itself, and would warn of a file left open otherwise.
    void release();

private:
    void append_in_memory(const std::uint8_t* bytes, std::size_t size);
    void spill();
    void write(const std::uint8_t* bytes, std::size_t size);
    void flush();
    void reopen_file();
    void unmap();

    static constexpr std::size_t kBuffer = std::size_t{1} << 18;
    static constexpr std::size_t kPart = std::size_t{1} << 22;

    std::size_t memory_limit_;
    std::size_t size_ = 0;
    std::optional<MemoryFile> memory_{std::in_place};
    bool sealed_ = false;
    // Once spilled:
    File file_ = -1;  // closed by release(), or by PostgreSQL when the transaction aborts
    off_t written_ = 0;
    std::vector<std::uint8_t> buffer_;
    std::size_t buffered_ = 0;
    void* mapped_ = nullptr;
    std::size_t mapped_size_ = 0;
};

/// Documents with their ids and perhaps their signatures.
struct DocumentRows {
    explicit DocumentRows(std::size_t memory_limit) : bytes(memory_limit) {}

    PackedBytes bytes;
    bool binary = false;                          // bytea, which has no characters but bytes
    std::vector<std::uint64_t> id_begins;         // of each row's id in the bytes
    std::vector<Extent> extents;                  // of each row's document
    std::vector<std::optional<Ctph>> signatures;  // empty, or one a row
};

/// How values of a type are packed: by value in eight bytes, or as they are stored.
struct IdType {
    Oid oid;
    int16 length;
    bool by_value;
};
IdType id_type_of(Oid oid);

/// Appends an id, aligned for any type; returns where it begins.
std::size_t append_id(PackedBytes& bytes, const IdType& type, Datum id);

/// The id that was packed at this address.
Datum id_at(const IdType& type, const std::uint8_t* packed);

}  // namespace gputext
