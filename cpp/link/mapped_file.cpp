#include "cpp/link/mapped_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <utility>

namespace gputext {
namespace {

constexpr std::size_t kUnmapAtOnce = std::size_t{64} << 20;

Status check(int descriptor, std::uint64_t size, Trust trust) {
    struct stat file;
    if (fstat(descriptor, &file) != 0 || !S_ISREG(file.st_mode))
        return {ErrorCode::invalid_argument, "a descriptor that is no file"};
    constexpr int needed = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
    const int seals = fcntl(descriptor, F_GET_SEALS);
    const bool sealed = seals >= 0 && (seals & needed) == needed;
    // A file on disk has no seals at all; one on a tmpfs forbids to add any.
    const bool plain = seals < 0 || seals == F_SEAL_SEAL;
    if (!sealed && trust != Trust::own && !(plain && trust == Trust::sealed_or_disk))
        return {ErrorCode::invalid_argument, "a file in memory that is not sealed"};
    if (file.st_size < 0 || static_cast<std::uint64_t>(file.st_size) != size)
        return {ErrorCode::invalid_argument, "a file of another size than said"};
    return {};
}

}  // namespace

MappedFile::~MappedFile() {
    // While a thread unmaps, others of the process cannot map anything.
    for (std::size_t begin = 0; begin < size_; begin += kUnmapAtOnce)
        munmap(const_cast<std::uint8_t*>(data_) + begin, std::min(kUnmapAtOnce, size_ - begin));
}

void MappedFile::swap(MappedFile& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
}

Result<MappedFile> MappedFile::map(const FileParts& parts, std::uint64_t size, Trust trust) {
    const PartsShape shape = parts.shape();
    if (!shape.hold(size))
        return Status(ErrorCode::invalid_argument, "parts of a file of another size than said");
    const std::span<const int> descriptors = parts.descriptors();
    for (std::size_t i = 0; i < descriptors.size(); ++i)
        if (Status status = check(descriptors[i], shape.size_of(i, size), trust); !status.ok())
            return status;
    MappedFile file;
    if (size == 0) return file;
    // The addresses first, for all parts.
    void* const begin =
        mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (begin == MAP_FAILED) return Status::out_of_memory();
    file.data_ = static_cast<const std::uint8_t*>(begin);
    file.size_ = size;
    for (std::size_t i = 0; i < descriptors.size(); ++i) {
        // Private, because older kernels refuse shared mappings of a file sealed against writing.
        void* const at = static_cast<std::uint8_t*>(begin) + i * shape.part_bytes;
        if (mmap(at, shape.size_of(i, size), PROT_READ, MAP_PRIVATE | MAP_FIXED, descriptors[i],
                 0) == MAP_FAILED)
            return Status::out_of_memory();
    }
    return file;
}

}  // namespace gputext
