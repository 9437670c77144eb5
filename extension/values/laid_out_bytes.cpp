#include "extension/values/laid_out_bytes.hpp"

extern "C" {
#include "commands/tablespace.h"
#include "utils/wait_event.h"
}

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "cpp/link/memory_file.hpp"
#include "extension/base/failure.hpp"
#include "extension/server/parallel_work.hpp"
#include "extension/server/session_job.hpp"

namespace gputext {
namespace {

/// Bytes that threads seal in less time than they take to start.
constexpr std::uint64_t kWorthThreads = std::uint64_t{1} << 27;

[[noreturn]] void raise_write_error() {
    if (errno == 0) errno = ENOSPC;  // a short write
    ereport(ERROR,
            (errcode_for_file_access(), errmsg("could not write the rows of an inner query: %m"),
             errhint("gputext.host_memory_limit bounds the memory that they take.")));
    pg_unreachable();
}

}  // namespace

void LaidOutBytes::create(std::uint64_t size, unsigned processes) {
    size_ = std::max<std::uint64_t>(1, size);  // a file that can be mapped
    if (size > memory_limit_) return create_temporary_file();
    room_.reserve(std::min<unsigned>(processes, kMostParts));
    attempt_or_raise([&] { return memory_.create(size_, part_bytes_for(size_, processes)); });
}

/// A byte at the end gives the file its size, which PostgreSQL then counts.
void LaidOutBytes::create_temporary_file() {
    PrepareTempTablespaces();
    file_ = OpenTemporaryFile(false);
    char zero = 0;
    errno = 0;
    if (FileWrite(file_, &zero, 1, static_cast<off_t>(size_) - 1, WAIT_EVENT_BUFFILE_WRITE) != 1)
        raise_write_error();
    file_copy_ = FileDescriptor(fcntl(FileGetRawDesc(file_), F_DUPFD_CLOEXEC, 0));
    if (!file_copy_.valid())
        ereport(ERROR, (errcode_for_file_access(),
                        errmsg("could not share the rows of an inner query: %m")));
}

void LaidOutBytes::receive(std::vector<FileDescriptor>& files, std::uint64_t size,
                           std::uint64_t part_bytes, std::uint64_t resident) {
    room_.reserve(static_cast<unsigned>(files.size()));
    attempt_or_raise([&] {
        received_ = std::move(files);
        for (const FileDescriptor& file : received_) received_descriptors_.push_back(file.get());
    });
    received_part_bytes_ = part_bytes;
    size_ = size;
    resident_ = resident;
}

/// Only what is sealed is mapped, so that nobody sees bytes that are still being written.
bool LaidOutBytes::map_received() {
    Failure failure;
    return attempt(failure, [&]() -> Status {
        auto mapped = MappedFile::map(share(), size_, Trust::sealed);
        if (!mapped.ok()) return mapped.status();
        mapped_ = std::move(*mapped);
        return {};
    });
}

LaidOutFiles LaidOutBytes::files() const {
    LaidOutFiles files{MyProcPid, 1, size_, {file_copy_.get()}};
    if (file_ >= 0) return files;
    const FileParts parts = memory_.parts();
    const auto descriptors = parts.descriptors();
    files.parts = static_cast<unsigned>(descriptors.size());
    if (files.parts > 1) files.part_bytes = parts.shape().part_bytes;
    std::copy(descriptors.begin(), descriptors.end(), files.descriptors);
    return files;
}

Status LaidOutBytes::write(std::uint64_t begin, std::span<const std::uint8_t> bytes) {
    return file_ < 0 ? memory_.write(begin, bytes) : write_file(file_copy_.get(), bytes, begin);
}

/// The kernel looks at each page of a file that it seals.
void LaidOutBytes::seal() {
    if (size_ < kWorthThreads) return attempt_or_raise([&] { return memory_.seal(); });
    run_threaded([this](Execution& execution) {
        const FileParts files = memory_.parts();
        const std::span<const int> parts = files.descriptors();
        return execution.parallel_for(parts.size(), [&](std::size_t part, unsigned) {
            return seal_memory_file(parts[part]);
        });
    });
}

void LaidOutBytes::finish() {
    if (file_ < 0) seal();
    Failure failure;
    if (!attempt(failure, [&]() -> Status {
            if (file_ < 0) return memory_.map();
            auto mapped = MappedFile::map(file_copy_.get(), size_, Trust::sealed_or_disk);
            if (!mapped.ok()) return mapped.status();
            mapped_ = std::move(*mapped);
            return {};
        }))
        raise_failure(failure);
}

const std::uint8_t* LaidOutBytes::data() const {
    return mapped_.bytes().empty() ? memory_.data() : mapped_.bytes().data();
}

FileParts LaidOutBytes::share() const {
    if (!received_.empty()) return {received_descriptors_, received_part_bytes_};
    return file_ < 0 ? memory_.parts() : FileParts(file_copy_.get());
}

void LaidOutBytes::release() {
    memory_.release();
    room_.give_back();
    mapped_ = {};
    std::vector<FileDescriptor>().swap(received_);
    received_descriptors_ = {};
    resident_ = 0;
    file_copy_.reset();
    if (file_ >= 0) FileClose(file_);
    file_ = -1;
}

bool LaidOutWriter::open(const LaidOutFiles& files, unsigned process) {
    part_bytes_ = files.part_bytes;
    for (unsigned part = 0; part < files.parts; ++part) {
        descriptors_[part] =
            process == 0 ? files.descriptors[part]
                         : open_file_of_session(files.session, files.descriptors[part], O_RDWR);
        if (descriptors_[part] < 0) return false;
    }
    return true;
}

void LaidOutWriter::write_part(std::uint64_t part, std::uint64_t at, const char* bytes,
                               std::size_t size) const {
    while (size > 0) {
        errno = 0;
        const ssize_t written = pwrite(descriptors_[part], bytes, size, static_cast<off_t>(at));
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) raise_write_error();
        bytes += written;
        at += static_cast<std::uint64_t>(written);
        size -= static_cast<std::size_t>(written);
    }
}

void LaidOutWriter::write(std::uint64_t begin, const void* bytes, std::size_t size) const {
    const auto* from = static_cast<const char*>(bytes);
    while (size > 0) {
        const std::uint64_t part = begin / part_bytes_, at = begin % part_bytes_;
        const std::size_t here = std::min<std::uint64_t>(size, part_bytes_ - at);
        write_part(part, at, from, here);
        begin += here;
        from += here;
        size -= here;
    }
}

}  // namespace gputext
