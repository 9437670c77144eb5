#include "cpp/resident/resident_chunk.hpp"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>
#include <utility>

#include "cpp/link/wire.hpp"

namespace gputext {
namespace {

/// Where this process begins to count, so that the ids of the one before it are not given again.
std::uint64_t first_id() {
    std::uint32_t high = 0;
    if (getrandom(&high, sizeof high, 0) != sizeof high)
        high = static_cast<std::uint32_t>(
            std::chrono::system_clock::now().time_since_epoch().count() >> 20);
    return (std::uint64_t{high} << 32) + 1;
}

bool same_file(int one, int other) {
    struct stat first, second;
    return fstat(one, &first) == 0 && fstat(other, &second) == 0 && first.st_dev == second.st_dev &&
           first.st_ino == second.st_ino;
}

}  // namespace

ResidentChunk::~ResidentChunk() {
    if (all_ != nullptr) all_->remove(*this);
}

PartsShape ResidentChunk::shape() const {
    return {static_cast<std::uint32_t>(files_.size()), part_bytes_};
}

Result<std::vector<FileDescriptor>> ResidentChunk::duplicate_files() const {
    std::vector<FileDescriptor> copies;
    copies.reserve(files_.size());
    for (const FileDescriptor& file : files_) {
        copies.emplace_back(fcntl(file.get(), F_DUPFD_CLOEXEC, 0));
        if (!copies.back().valid())
            return Status(ErrorCode::io_error,
                          std::string("could not hand over a file: ") + std::strerror(errno));
    }
    return copies;
}

bool ResidentChunk::has_files(std::span<const FileDescriptor> files) const {
    if (files.size() != files_.size()) return false;
    for (std::size_t i = 0; i < files.size(); ++i)
        if (!same_file(files[i].get(), files_[i].get())) return false;
    return true;
}

std::shared_ptr<ResidentChunks> ResidentChunks::create(std::shared_ptr<ResidentRanges> ranges) {
    return std::shared_ptr<ResidentChunks>(new ResidentChunks(std::move(ranges)));
}

ResidentChunks::ResidentChunks(std::shared_ptr<ResidentRanges> ranges)
    : ranges_(std::move(ranges)), next_id_(first_id()) {}

Result<std::shared_ptr<const ResidentChunk>> ResidentChunks::adopt(
    std::vector<FileDescriptor> files, const PartsShape& parts, std::uint64_t bytes) {
    if (files.size() != parts.parts) return broken("values in another number of files than said");
    std::vector<int> descriptors;
    for (const FileDescriptor& file : files) descriptors.push_back(file.get());
    Result<MappedFile> mapped =
        MappedFile::map({descriptors, parts.part_bytes}, bytes, Trust::sealed);
    if (!mapped.ok()) return mapped.status();
    const std::shared_ptr<ResidentChunk> chunk(new ResidentChunk());
    chunk->part_bytes_ = parts.part_bytes;
    chunk->files_ = std::move(files);
    chunk->mapped_ = std::move(*mapped);
    {
        const std::lock_guard lock(mutex_);
        chunk->id_ = next_id_++;
        chunks_[chunk->id_] = chunk;
    }
    chunk->all_ = shared_from_this();  // from now on its destructor removes it
    if (ranges_ != nullptr && bytes > 0)
        ranges_->add({chunk->id_, chunk->bytes().data(), chunk->bytes().size()});
    return std::shared_ptr<const ResidentChunk>(chunk);
}

void ResidentChunks::remove(const ResidentChunk& chunk) {
    if (ranges_ != nullptr) ranges_->remove(chunk.id());
    const std::lock_guard lock(mutex_);
    chunks_.erase(chunk.id());
}

std::shared_ptr<const ResidentChunk> ResidentChunks::find(std::uint64_t id) const {
    const std::lock_guard lock(mutex_);
    const auto found = chunks_.find(id);
    return found == chunks_.end() ? nullptr : found->second.lock();
}

std::uint64_t ResidentChunks::on_devices(std::uint64_t id) const {
    return ranges_ == nullptr ? 0 : ranges_->kept(id);
}

}  // namespace gputext
