#include "cpp/memory_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace gputext {

MemoryFile::~MemoryFile() {
    unmap();
    if (descriptor_ >= 0) close(descriptor_);
}

Status MemoryFile::append(std::span<const std::uint8_t> bytes) {
    if (bytes.empty()) return {};
    if (Status status = reserve(size_ + bytes.size()); !status.ok()) return status;
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
    size_ = 0;
    return FileDescriptor(std::exchange(descriptor_, -1));
}

Status MemoryFile::create() {
    if (descriptor_ >= 0) return {};
    descriptor_ = memfd_create("gputext", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (descriptor_ >= 0) return {};
    return {ErrorCode::io_error,
            std::string("could not create a file in memory: ") + std::strerror(errno)};
}

Status MemoryFile::seal() {
    if (Status status = create(); !status.ok()) return status;
    // A writable mapping forbids the seal, and the seal forbids a shared one on older kernels.
    unmap();
    constexpr int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL;
    if (ftruncate(descriptor_, static_cast<off_t>(size_)) != 0 ||
        fcntl(descriptor_, F_ADD_SEALS, seals) != 0)
        return {ErrorCode::io_error,
                std::string("could not seal a file in memory: ") + std::strerror(errno)};
    if (size_ == 0) return {};
    void* const mapped = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, descriptor_, 0);
    if (mapped == MAP_FAILED) return Status::out_of_memory();
    data_ = static_cast<std::uint8_t*>(mapped);
    capacity_ = size_;
    return {};
}

Status MemoryFile::reserve(std::size_t wanted) {
    if (wanted <= capacity_) return {};
    if (Status status = create(); !status.ok()) return status;
    // Pages take memory when they are first written, so room to spare costs none.
    constexpr std::size_t least = std::size_t{1} << 20;
    const std::size_t page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t capacity =
        (std::max({wanted, 2 * capacity_, least}) + page - 1) / page * page;
    if (ftruncate(descriptor_, static_cast<off_t>(capacity)) != 0) return Status::out_of_memory();
    void* const mapped = data_ == nullptr ? mmap(nullptr, capacity, PROT_READ | PROT_WRITE,
                                                 MAP_SHARED, descriptor_, 0)
                                          : mremap(data_, capacity_, capacity, MREMAP_MAYMOVE);
    if (mapped == MAP_FAILED) return Status::out_of_memory();
    data_ = static_cast<std::uint8_t*>(mapped);
    capacity_ = capacity;
    return {};
}

}  // namespace gputext
