#include "cpp/link/memory_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace gputext {
namespace {

// What is written at once: a call costs as much as some hundred bytes.
constexpr std::size_t kBuffer = std::size_t{256} << 10;

}  // namespace

Result<FileDescriptor> new_memory_file() {
    FileDescriptor file(memfd_create("gputext", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (file.valid()) return file;
    return Status(ErrorCode::io_error,
                  std::string("could not create a file in memory: ") + std::strerror(errno));
}

Status seal_memory_file(int descriptor) {
    constexpr int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL;
    if (fcntl(descriptor, F_ADD_SEALS, seals) == 0) return {};
    return {ErrorCode::io_error,
            std::string("could not seal a file in memory: ") + std::strerror(errno)};
}

Status no_pages(int error) {
    if (error == ENOSPC || error == ENOMEM || error == EFBIG) return Status::out_of_memory();
    return {ErrorCode::io_error,
            std::string("could not grow a file in memory: ") + std::strerror(error)};
}

Status write_file(int descriptor, std::span<const std::uint8_t> bytes, std::uint64_t offset) {
    while (!bytes.empty()) {
        const ssize_t written =
            pwrite(descriptor, bytes.data(), bytes.size(), static_cast<off_t>(offset));
        if (written < 0 && errno == EINTR) continue;
        if (written <= 0) return no_pages(written == 0 ? ENOSPC : errno);
        bytes = bytes.subspan(static_cast<std::size_t>(written));
        offset += static_cast<std::uint64_t>(written);
    }
    return {};
}

MemoryFile::~MemoryFile() {
    unmap();
}

Status MemoryFile::append(std::span<const std::uint8_t> bytes) {
    if (buffer_.size() + bytes.size() > kBuffer) GPUTEXT_TRY(flush());
    if (bytes.size() < kBuffer) {
        buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
        return {};
    }
    GPUTEXT_TRY(create());
    GPUTEXT_TRY(write_file(descriptor_.get(), bytes, written_));
    written_ += bytes.size();
    return {};
}

Status MemoryFile::flush() {
    GPUTEXT_TRY(create());
    GPUTEXT_TRY(write_file(descriptor_.get(), buffer_, written_));
    written_ += buffer_.size();
    buffer_.clear();
    return {};
}

void MemoryFile::unmap() {
    if (data_ != nullptr) munmap(data_, written_);
    data_ = nullptr;
}

FileDescriptor MemoryFile::release_descriptor() {
    unmap();
    written_ = 0;
    buffer_.clear();
    return std::move(descriptor_);
}

Status MemoryFile::create() {
    if (descriptor_.valid()) return {};
    Result<FileDescriptor> file = new_memory_file();
    if (!file.ok()) return file.status();
    descriptor_ = std::move(*file);
    return {};
}

Status MemoryFile::seal() {
    GPUTEXT_TRY(flush());
    buffer_ = {};
    // An append that failed may have left bytes behind the last one.
    if (ftruncate(descriptor_.get(), static_cast<off_t>(written_)) != 0) return no_pages(errno);
    GPUTEXT_TRY(seal_memory_file(descriptor_.get()));
    if (written_ == 0) return {};
    // Private, because older kernels refuse shared mappings of a file sealed against writing.
    void* const mapped = mmap(nullptr, written_, PROT_READ, MAP_PRIVATE, descriptor_.get(), 0);
    if (mapped == MAP_FAILED) return Status::out_of_memory();
    data_ = static_cast<std::uint8_t*>(mapped);
    return {};
}

}  // namespace gputext
