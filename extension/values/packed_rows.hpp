// extension/values/packed_rows.hpp - packs the rows of an inner query into files for cpp/ to read

#pragma once

#include "extension/base/postgres.hpp"

extern "C" {
#include "storage/fd.h"
}

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "cpp/link/file_descriptor.hpp"

namespace gputext {

/// Room for descriptors that PostgreSQL does not know: it has so many files fewer open at a time,
/// where a session reads many tables.
class DescriptorRoom {
public:
    DescriptorRoom() = default;
    ~DescriptorRoom() { give_back(); }
    DescriptorRoom(const DescriptorRoom&) = delete;
    DescriptorRoom& operator=(const DescriptorRoom&) = delete;

    /// For so many, and for those by which values are shared.
    void reserve(unsigned count) {
        for (count += kOthers; count > 0; --count, ++count_) ReserveExternalFD();
    }
    void give_back() {
        for (; count_ > 0; --count_) ReleaseExternalFD();
    }

private:
    static constexpr unsigned kOthers = 2;

    unsigned count_ = 0;
};

/// Bytes appended to a file in memory up to gputext.host_memory_limit, and from there on to a
/// temporary file of PostgreSQL's, which counts against temp_file_limit. Functions raise errors.
class PackedBytes {
public:
    explicit PackedBytes(std::size_t memory_limit) : memory_limit_(memory_limit) {}
    ~PackedBytes() { unmap(); }
    PackedBytes(const PackedBytes&) = delete;
    PackedBytes& operator=(const PackedBytes&) = delete;

    void append(const void* bytes, std::size_t size) {
        if (size > room_) return append_slowly(static_cast<const std::uint8_t*>(bytes), size);
        std::memcpy(end_of_buffer(), bytes, size);
        room_ -= size;
        size_ += size;
    }
    std::size_t size() const { return size_; }

    /// Ends the appending. From here on data() may be called.
    void finish();
    /// Valid until release(). Aligned for any type.
    const std::uint8_t* data() const { return static_cast<const std::uint8_t*>(mapped_); }

    /// After finish(): a descriptor by which another process may read the bytes, and nobody changes
    /// them any more.
    FileDescriptor share();

    // A file in memory that another process appends to, whatever the limit.

    /// In the process that keeps it: an empty file. Returns its descriptor, which stays this
    /// object's.
    int lend();
    /// In the other process: appends there. False without a descriptor, which is this object's
    /// then.
    bool borrow(int descriptor);
    /// When the other process has finished, in the first one: so many bytes are there, and
    /// finished.
    void take_back(std::size_t size);

    /// Gives memory and file back. After an error it must not be called: PostgreSQL then closes the
    /// file by itself, and would warn of a file left open otherwise.
    void release();

private:
    void append_slowly(const std::uint8_t* bytes, std::size_t size);
    std::uint8_t* end_of_buffer() { return buffer_.data() + (buffer_.size() - room_); }
    void flush();
    void write(const std::uint8_t* bytes, std::size_t size);
    void open_file();
    void spill();
    int descriptor();
    void unmap();

    static constexpr std::size_t kBuffer = std::size_t{1} << 18;
    static constexpr std::size_t kLeastBuffer = 4096;

    std::size_t memory_limit_;
    std::size_t size_ = 0;
    std::vector<std::uint8_t> buffer_;  // bytes on their way; empty before the first ones
    std::size_t room_ = 0;              // at its end
    std::size_t written_ = 0;
    FileDescriptor memory_;
    File file_ = -1;  // in place of memory; closed by release(), or when the transaction aborts
    bool sealed_ = false;
    const void* mapped_ = nullptr;
    std::size_t mapped_size_ = 0;
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
