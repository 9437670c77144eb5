#include "cpp/resident/resident_chunk.hpp"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>
#include <utility>

#include "cpp/link/memory_file.hpp"
#include "cpp/link/wire.hpp"

namespace gputext {
namespace {

constexpr std::size_t kPartsOfReserved = 16;

/// Where this process begins to count, so that the ids of the one before it are not given again.
std::uint64_t first_id() {
    std::uint32_t high = 0;
    if (getrandom(&high, sizeof high, 0) != sizeof high)
        high = static_cast<std::uint32_t>(
            std::chrono::system_clock::now().time_since_epoch().count() >> 20);
    return (std::uint64_t{high} << 32) + 1;
}

/// Whether so many bytes of words lie there, for ever.
Status check_words(const ChunkWords& words) {
    return MappedFile::map(words.file.get(), words.bytes, Trust::sealed).status();
}

FileDescriptor duplicate(const FileDescriptor& file) {
    return FileDescriptor(fcntl(file.get(), F_DUPFD_CLOEXEC, 0));
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
    copies.reserve(files());
    for (const FileDescriptor& file : files_) copies.push_back(duplicate(file));
    if (words_.files() > 0) copies.push_back(duplicate(words_.file));
    for (const FileDescriptor& copy : copies)
        if (!copy.valid())
            return Status(ErrorCode::io_error,
                          std::string("could not hand over a file: ") + std::strerror(errno));
    return copies;
}

bool ResidentChunk::has_files(std::span<const FileDescriptor> files) const {
    if (files.size() != files_.size()) return false;
    for (std::size_t i = 0; i < files.size(); ++i)
        if (!same_file(files[i].get(), files_[i].get())) return false;
    return true;
}

Status ResidentChunk::write(std::uint64_t offset, std::span<const std::uint8_t> bytes) {
    const std::size_t part = part_bytes_ == 0 ? 0 : offset / part_bytes_;
    return write_file(files_[part].get(), bytes, offset - part * part_bytes_);
}

void ResidentChunk::end_filling(Status status) {
    for (const FileDescriptor& file : files_)
        if (status.ok()) status = seal_memory_file(file.get());
    filling_.end(std::move(status));
}

std::shared_ptr<ResidentChunks> ResidentChunks::create(std::shared_ptr<ResidentRanges> ranges) {
    return std::shared_ptr<ResidentChunks>(new ResidentChunks(std::move(ranges)));
}

ResidentChunks::ResidentChunks(std::shared_ptr<ResidentRanges> ranges)
    : ranges_(std::move(ranges)), next_id_(first_id()) {}

Result<std::shared_ptr<const ResidentChunk>> ResidentChunks::adopt(
    std::vector<FileDescriptor> files, const PartsShape& parts, std::uint64_t bytes,
    ChunkWords words) {
    if (files.size() != parts.parts) return broken("values in another number of files than said");
    std::vector<int> descriptors;
    for (const FileDescriptor& file : files) descriptors.push_back(file.get());
    Result<MappedFile> mapped =
        MappedFile::map({descriptors, parts.part_bytes}, bytes, Trust::sealed);
    if (!mapped.ok()) return mapped.status();
    if (words.files() > 0) GPUTEXT_TRY(check_words(words));
    const std::shared_ptr<ResidentChunk> chunk(new ResidentChunk());
    chunk->part_bytes_ = parts.part_bytes;
    chunk->files_ = std::move(files);
    chunk->words_ = std::move(words);
    chunk->mapped_ = std::move(*mapped);
    add(chunk, nullptr);
    return std::shared_ptr<const ResidentChunk>(chunk);
}

Result<std::shared_ptr<ResidentChunk>> ResidentChunks::reserve(std::uint64_t bytes,
                                                               ResidentRanges::Origin origin) {
    PartedFile file;
    GPUTEXT_TRY(file.create(bytes, part_bytes_for(bytes, kPartsOfReserved)));
    Result<MappedFile> mapped = MappedFile::map(file.parts(), bytes, Trust::own);
    if (!mapped.ok()) return mapped.status();
    const std::shared_ptr<ResidentChunk> chunk(new ResidentChunk());
    chunk->filling_.begin();
    chunk->part_bytes_ = file.parts().shape().part_bytes;
    chunk->files_ = file.release_files();
    chunk->mapped_ = std::move(*mapped);
    add(chunk, std::move(origin));
    return chunk;
}

void ResidentChunks::add(const std::shared_ptr<ResidentChunk>& chunk,
                         ResidentRanges::Origin origin) {
    {
        const std::lock_guard lock(mutex_);
        chunk->id_ = next_id_++;
        chunks_[chunk->id_] = chunk;
    }
    chunk->all_ = shared_from_this();  // from now on its destructor removes it
    const auto bytes = chunk->bytes();
    if (ranges_ != nullptr && !bytes.empty())
        ranges_->add({chunk->id_, bytes.data(), bytes.size(), &chunk->filling_}, std::move(origin));
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
