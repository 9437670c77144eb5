#include "extension/values/packed_rows.hpp"

extern "C" {
#include "commands/tablespace.h"
#include "utils/datum.h"
#include "utils/lsyscache.h"
#include "utils/wait_event.h"
}

#include <fcntl.h>
#include <sys/mman.h>

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "cpp/link/memory_file.hpp"
#include "extension/base/failure.hpp"

namespace gputext {
namespace {

/// Where nothing was packed.
alignas(MAXIMUM_ALIGNOF) constexpr char kNothing[MAXIMUM_ALIGNOF] = {};

}  // namespace

void PackedBytes::unmap() {
    if (mapped_size_ > 0) munmap(const_cast<void*>(mapped_), mapped_size_);
    mapped_ = nullptr;
    mapped_size_ = 0;
}

void PackedBytes::release() {
    unmap();
    memory_.reset();
    if (file_ >= 0) FileClose(file_);
    file_ = -1;
    buffer_ = {};
    room_ = 0;
}

/// The buffer grows up to kBuffer, so that few bytes take little memory.
void PackedBytes::append_slowly(const std::uint8_t* bytes, std::size_t size) {
    const std::size_t used = buffer_.size() - room_;
    if (used + size <= kBuffer) {
        const std::size_t wanted = std::clamp(2 * (used + size), kLeastBuffer, kBuffer);
        attempt_or_raise([&] { buffer_.resize(wanted); });
        room_ = wanted - used;
        return append(bytes, size);
    }
    flush();
    if (size <= room_) return append(bytes, size);
    write(bytes, size);
    size_ += size;
}

void PackedBytes::flush() {
    const std::size_t used = buffer_.size() - room_;
    if (used > 0) write(buffer_.data(), used);
    room_ = buffer_.size();
}

/// In steps, since a large row takes longer than a cancel may.
void PackedBytes::write(const std::uint8_t* bytes, std::size_t size) {
    open_file();
    if (file_ < 0 && written_ + size > memory_limit_) spill();
    while (size > 0) {
        CHECK_FOR_INTERRUPTS();
        const std::size_t part = std::min(kBuffer, size);
        const auto at = static_cast<off_t>(written_);
        errno = 0;
        const ssize_t done =
            file_ < 0 ? pwrite(memory_.get(), bytes, part, at)
                      : FileWrite(file_, reinterpret_cast<char*>(const_cast<std::uint8_t*>(bytes)),
                                  static_cast<int>(part), at, WAIT_EVENT_BUFFILE_WRITE);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0 && file_ < 0)
            attempt_or_raise([] { return no_pages(errno == 0 ? ENOSPC : errno); });
        if (done <= 0) {
            if (errno == 0) errno = ENOSPC;
            ereport(ERROR, (errcode_for_file_access(),
                            errmsg("could not write to file \"%s\": %m", FilePathName(file_))));
        }
        written_ += static_cast<std::size_t>(done);
        bytes += done;
        size -= static_cast<std::size_t>(done);
    }
}

void PackedBytes::open_file() {
    if (file_ >= 0 || memory_.valid()) return;
    attempt_or_raise([&]() -> Status {
        Result<FileDescriptor> file = new_memory_file();
        if (!file.ok()) return file.status();
        memory_ = std::move(*file);
        return {};
    });
}

/// Goes on in a temporary file, with what is in memory.
void PackedBytes::spill() {
    PrepareTempTablespaces();
    file_ = OpenTemporaryFile(false);
    const std::size_t size = std::exchange(written_, 0);
    if (size == 0) return;
    const void* const bytes = mmap(nullptr, size, PROT_READ, MAP_SHARED, memory_.get(), 0);
    if (bytes == MAP_FAILED)
        ereport(ERROR, (errcode(ERRCODE_OUT_OF_MEMORY), errmsg("out of memory")));
    mapped_ = bytes;
    mapped_size_ = size;
    write(static_cast<const std::uint8_t*>(bytes), size);
    unmap();
    memory_.reset();
}

/// PostgreSQL may have closed its descriptor to save some; asking for the size opens it again.
int PackedBytes::descriptor() {
    if (file_ < 0) return memory_.get();
    if (FileSize(file_) != static_cast<off_t>(size_))
        ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED),
                        errmsg("temporary file \"%s\" has lost bytes", FilePathName(file_))));
    return FileGetRawDesc(file_);
}

void PackedBytes::finish() {
    flush();
    buffer_ = {};
    room_ = 0;
    mapped_ = kNothing;
    if (size_ == 0) return;
    // Private, because older kernels refuse shared mappings of a file sealed against writing.
    void* const mapped = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, descriptor(), 0);
    if (mapped == MAP_FAILED)
        ereport(ERROR, (errcode_for_file_access(),
                        errmsg("could not map the rows of an inner query: %m")));
    mapped_ = mapped;
    mapped_size_ = size_;
}

/// PostgreSQL closes a file's own descriptor when it opens others.
FileDescriptor PackedBytes::share() {
    open_file();
    if (file_ < 0 && !sealed_) attempt_or_raise([&] { return seal_memory_file(memory_.get()); });
    sealed_ = true;
    const int copy = fcntl(descriptor(), F_DUPFD_CLOEXEC, 0);
    if (copy < 0)
        ereport(ERROR, (errcode_for_file_access(),
                        errmsg("could not share the rows of an inner query: %m")));
    return FileDescriptor(copy);
}

int PackedBytes::lend() {
    open_file();
    return memory_.get();
}

bool PackedBytes::borrow(int descriptor) {
    memory_ = FileDescriptor(descriptor);
    return memory_.valid();
}

void PackedBytes::take_back(std::size_t size) {
    size_ = size;
    finish();
}

IdType id_type_of(Oid oid) {
    IdType type{oid, 0, false};
    get_typlenbyval(oid, &type.length, &type.by_value);
    return type;
}

std::size_t append_id(PackedBytes& bytes, const IdType& type, Datum id) {
    static const char zeros[MAXIMUM_ALIGNOF] = {};
    if (const std::size_t gap = MAXALIGN(bytes.size()) - bytes.size(); gap > 0)
        bytes.append(zeros, gap);
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
