#include "extension/rows/packed_rows.hpp"

extern "C" {
#include "commands/tablespace.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/wait_event.h"
}

#include <fcntl.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "extension/base/failure.hpp"

namespace gputext {

PackedBytes::~PackedBytes() {
    unmap();
}

void PackedBytes::unmap() {
    if (mapped_ != nullptr) munmap(mapped_, mapped_size_);
    mapped_ = nullptr;
}

void PackedBytes::release() {
    unmap();
    memory_.reset();
    if (file_ >= 0) FileClose(file_);
    file_ = -1;
}

void PackedBytes::append(const void* bytes, std::size_t size) {
    const auto* from = static_cast<const std::uint8_t*>(bytes);
    if (file_ < 0 && size_ + size > memory_limit_) spill();
    if (file_ >= 0) {
        write(from, size);
    } else {
        // A large row takes longer than a cancel may.
        for (std::size_t at = 0; at < size; at += kPart) {
            CHECK_FOR_INTERRUPTS();
            append_in_memory(from + at, std::min(kPart, size - at));
        }
    }
    size_ += size;
}

void PackedBytes::append_in_memory(const std::uint8_t* bytes, std::size_t size) {
    attempt_or_raise([&] { return memory_->append({bytes, size}); });
}

void PackedBytes::spill() {
    attempt_or_raise([&] { buffer_.resize(kBuffer); });
    PrepareTempTablespaces();
    file_ = OpenTemporaryFile(false);
    write(memory_->data(), memory_->size());
    memory_.reset();
}

void PackedBytes::write(const std::uint8_t* bytes, std::size_t size) {
    while (size > 0) {
        const std::size_t part = std::min(size, kBuffer - buffered_);
        std::memcpy(buffer_.data() + buffered_, bytes, part);
        buffered_ += part;
        bytes += part;
        size -= part;
        if (buffered_ == kBuffer) flush();
    }
}

void PackedBytes::flush() {
    CHECK_FOR_INTERRUPTS();
    const auto size = static_cast<int>(buffered_);
    errno = 0;
    if (FileWrite(file_, reinterpret_cast<char*>(buffer_.data()), size, written_,
                  WAIT_EVENT_BUFFILE_WRITE) != size) {
        if (errno == 0) errno = ENOSPC;  // a short write
        ereport(ERROR, (errcode_for_file_access(),
                        errmsg("could not write to file \"%s\": %m", FilePathName(file_))));
    }
    written_ += size;
    buffered_ = 0;
}

/// PostgreSQL may have closed its descriptor to save some; asking for the size opens it again.
void PackedBytes::reopen_file() {
    if (FileSize(file_) != static_cast<off_t>(size_))
        ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED),
                        errmsg("temporary file \"%s\" has lost bytes", FilePathName(file_))));
}

void PackedBytes::finish() {
    if (file_ < 0) return;
    flush();
    reopen_file();
    void* const mapped = mmap(nullptr, size_, PROT_READ, MAP_SHARED, FileGetRawDesc(file_), 0);
    if (mapped == MAP_FAILED)
        ereport(ERROR, (errcode_for_file_access(),
                        errmsg("could not map file \"%s\": %m", FilePathName(file_))));
    mapped_ = mapped;
    mapped_size_ = size_;
}

const std::uint8_t* PackedBytes::data() const {
    return file_ < 0 ? memory_->data() : static_cast<const std::uint8_t*>(mapped_);
}

/// PostgreSQL closes a file's own descriptor when it opens others.
FileDescriptor PackedBytes::share() {
    int shared = -1;
    if (file_ >= 0) {
        reopen_file();
        shared = FileGetRawDesc(file_);
    } else {
        Failure failure;
        if (!sealed_ && !attempt(failure, [&] { return memory_->seal(); })) raise_failure(failure);
        sealed_ = true;
        shared = memory_->descriptor();
    }
    const int copy = fcntl(shared, F_DUPFD_CLOEXEC, 0);
    if (copy < 0)
        ereport(ERROR, (errcode_for_file_access(),
                        errmsg("could not share the rows of an inner query: %m")));
    return FileDescriptor(copy);
}

IdType id_type_of(Oid oid) {
    IdType type{oid, 0, false};
    get_typlenbyval(oid, &type.length, &type.by_value);
    return type;
}

std::size_t append_id(PackedBytes& bytes, const IdType& type, Datum id) {
    static const char zeros[MAXIMUM_ALIGNOF] = {};
    bytes.append(zeros, MAXALIGN(bytes.size()) - bytes.size());
    const std::size_t begin = bytes.size();
    if (type.by_value) {
        bytes.append(&id, sizeof id);
    } else if (type.length == -1) {
        const varlena* value = PG_DETOAST_DATUM_PACKED(id);
        bytes.append(value, VARSIZE_ANY(value));
    } else {
        bytes.append(DatumGetPointer(id), datumGetSize(id, false, type.length));
    }
    return begin;
}

Datum id_at(const IdType& type, const std::uint8_t* packed) {
    if (!type.by_value) return PointerGetDatum(packed);
    Datum id;
    std::memcpy(&id, packed, sizeof id);
    return id;
}

}  // namespace gputext
