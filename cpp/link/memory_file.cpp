#include "cpp/link/memory_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "cpp/link/file_parts.hpp"

namespace gputext {
namespace {

constexpr std::size_t kLeastCapacity = std::size_t{1} << 20;
// Pages are reserved in steps of a part of the size, between these bounds.
constexpr std::size_t kLeastStep = std::size_t{64} << 10;
constexpr std::size_t kMostStep = std::size_t{16} << 20;
constexpr std::size_t kPartOfSize = 8;

std::size_t whole_pages(std::size_t bytes) {
    const std::size_t page = page_size();
    return (bytes + page - 1) / page * page;
}

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
    if (descriptor_ >= 0) close(descriptor_);
}

Status MemoryFile::append(std::span<const std::uint8_t> bytes) {
    if (bytes.empty()) return {};
    if (Status status = map(size_ + bytes.size()); !status.ok()) return status;
    if (Status status = reserve_pages(size_ + bytes.size()); !status.ok()) return status;
    std::memcpy(data_ + size_, bytes.data(), bytes.size());
    size_ += bytes.size();
    return {};
}

void MemoryFile::unmap() {
    if (data_ != nullptr) munmap(data_, capacity_);
    data_ = nullptr;
    capacity_ = 0;
}

FileDescriptor MemoryFile::release_descriptor() {
    unmap();
    size_ = reserved_ = 0;
    return FileDescriptor(std::exchange(descriptor_, -1));
}

Status MemoryFile::create() {
    if (descriptor_ >= 0) return {};
    Result<FileDescriptor> file = new_memory_file();
    if (!file.ok()) return file.status();
    descriptor_ = (*file).release();
    return {};
}

Status MemoryFile::seal() {
    if (Status status = create(); !status.ok()) return status;
    // A writable mapping forbids the seal, and the seal forbids a shared one on older kernels.
    unmap();
    if (ftruncate(descriptor_, static_cast<off_t>(size_)) != 0) return no_pages(errno);
    GPUTEXT_TRY(seal_memory_file(descriptor_));
    if (size_ == 0) return {};
    void* const mapped = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, descriptor_, 0);
    if (mapped == MAP_FAILED) return Status::out_of_memory();
    data_ = static_cast<std::uint8_t*>(mapped);
    capacity_ = size_;
    return {};
}

/// Makes room in the address space; pages take memory only when they are reserved.
Status MemoryFile::map(std::size_t wanted) {
    if (wanted <= capacity_) return {};
    if (Status status = create(); !status.ok()) return status;
    const std::size_t capacity = whole_pages(std::max({wanted, 2 * capacity_, kLeastCapacity}));
    if (ftruncate(descriptor_, static_cast<off_t>(capacity)) != 0) return Status::out_of_memory();
    void* const mapped = data_ == nullptr ? mmap(nullptr, capacity, PROT_READ | PROT_WRITE,
                                                 MAP_SHARED, descriptor_, 0)
                                          : mremap(data_, capacity_, capacity, MREMAP_MAYMOVE);
    if (mapped == MAP_FAILED) return Status::out_of_memory();
    data_ = static_cast<std::uint8_t*>(mapped);
    capacity_ = capacity;
    return {};
}

/// A page that cannot be had when the mapping is first written to is a signal, SIGBUS, and no
/// error: so it happens where the kernel does not overcommit memory. fallocate() asks for the pages
/// before.
Status MemoryFile::reserve_pages(std::size_t wanted) {
    std::size_t most = kMostStep;
    while (reserved_ < wanted) {
        const std::size_t missing = whole_pages(wanted) - reserved_;
        const std::size_t ahead =
            std::max({missing, whole_pages(reserved_ / kPartOfSize), kLeastStep});
        const std::size_t step = std::min({ahead, most, capacity_ - reserved_});
        if (fallocate(descriptor_, 0, static_cast<off_t>(reserved_), static_cast<off_t>(step)) ==
            0) {
            reserved_ += step;
        } else if (errno == EINTR) {
            // The kernel has undone the step. A smaller one ends between two signals.
            most = std::max(most / 2, kLeastStep);
        } else {
            const Status failed = no_pages(errno);
            if (failed.code() != ErrorCode::out_of_memory || step <= missing) return failed;
            most = missing;
        }
    }
    return {};
}

}  // namespace gputext
