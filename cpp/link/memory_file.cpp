#include "cpp/link/memory_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
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
    // The kernel refuses while somebody holds a page for a moment, be it to move it.
    constexpr int kTries = 20;
    for (int tried = 0; tried < kTries; ++tried) {
        if (fcntl(descriptor, F_ADD_SEALS, seals) == 0) return {};
        if (errno != EBUSY || tried + 1 == kTries) break;
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
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

Status read_file(int descriptor, std::span<std::uint8_t> bytes, std::uint64_t offset) {
    while (!bytes.empty()) {
        const ssize_t read =
            pread(descriptor, bytes.data(), bytes.size(), static_cast<off_t>(offset));
        if (read < 0 && errno == EINTR) continue;
        if (read <= 0)
            return {ErrorCode::io_error, std::string("could not read a file: ") +
                                             (read == 0 ? "it is too short" : std::strerror(errno))};
        bytes = bytes.subspan(static_cast<std::size_t>(read));
        offset += static_cast<std::uint64_t>(read);
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

std::uint64_t part_bytes_for(std::uint64_t size, std::size_t writers) {
    constexpr std::uint64_t least = std::uint64_t{1} << 20;
    const std::uint64_t parts = std::clamp<std::uint64_t>(writers, 1, kMostParts);
    const std::uint64_t wanted = std::max(least, (size + parts - 1) / parts);
    return (wanted + page_size() - 1) / page_size() * page_size();
}

Status PartedFile::create(std::uint64_t size, std::uint64_t part_bytes) {
    release();
    if (part_bytes == 0 || part_bytes % page_size() != 0)
        return {ErrorCode::invalid_argument, "parts of a file that do not consist of pages"};
    const std::uint64_t parts = size == 0 ? 1 : (size - 1) / part_bytes + 1;
    if (parts > kMostParts)
        return {ErrorCode::invalid_argument, "a file in more parts than there may be"};
    std::vector<FileDescriptor> files;
    for (std::uint64_t begin = 0; files.size() < parts; begin += part_bytes) {
        Result<FileDescriptor> file = new_memory_file();
        if (!file.ok()) return file.status();
        const std::uint64_t bytes = std::min(part_bytes, size - begin);
        if (ftruncate(file->get(), static_cast<off_t>(bytes)) != 0) return no_pages(errno);
        files.push_back(std::move(*file));
    }
    files_ = std::move(files);
    for (const FileDescriptor& file : files_) descriptors_.push_back(file.get());
    size_ = size;
    part_bytes_ = part_bytes;
    return {};
}

Status PartedFile::write(std::uint64_t offset, std::span<const std::uint8_t> bytes) {
    if (offset > size_ || bytes.size() > size_ - offset)
        return {ErrorCode::invalid_argument, "bytes behind the end of a file in memory"};
    while (!bytes.empty()) {
        const std::uint64_t within = offset % part_bytes_;
        const auto now = bytes.first(std::min<std::uint64_t>(bytes.size(), part_bytes_ - within));
        GPUTEXT_TRY(write_file(descriptors_[offset / part_bytes_], now, within));
        bytes = bytes.subspan(now.size());
        offset += now.size();
    }
    return {};
}

Status PartedFile::seal() {
    for (const int descriptor : descriptors_) GPUTEXT_TRY(seal_memory_file(descriptor));
    return {};
}

Status PartedFile::map() {
    Result<MappedFile> mapped = MappedFile::map(parts(), size_, Trust::sealed);
    if (!mapped.ok()) return mapped.status();
    mapped_ = std::move(*mapped);
    return {};
}

std::vector<FileDescriptor> PartedFile::release_files() {
    std::vector<FileDescriptor> files = std::move(files_);
    release();
    return files;
}

void PartedFile::release() {
    mapped_ = {};
    files_.clear();
    descriptors_.clear();
    size_ = part_bytes_ = 0;
}

}  // namespace gputext
