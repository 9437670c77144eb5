#include "cpp/link/parted_file.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "cpp/link/memory_file.hpp"

namespace gputext {

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
