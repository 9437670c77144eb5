#include "cpp/link/mapped_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <utility>

namespace gputext {
namespace {

Status check(int descriptor, std::uint64_t size, Trust trust) {
    struct stat file;
    if (fstat(descriptor, &file) != 0 || !S_ISREG(file.st_mode))
        return {ErrorCode::invalid_argument, "a descriptor that is no file"};
    constexpr int needed = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
    const int seals = fcntl(descriptor, F_GET_SEALS);
    const bool sealed = seals >= 0 && (seals & needed) == needed;
    // A file on disk has no seals at all; one on a tmpfs forbids to add any.
    const bool plain = seals < 0 || seals == F_SEAL_SEAL;
    if (!sealed && !(plain && trust == Trust::sealed_or_disk))
        return {ErrorCode::invalid_argument, "a file in memory that is not sealed"};
    if (file.st_size < 0 || static_cast<std::uint64_t>(file.st_size) != size)
        return {ErrorCode::invalid_argument, "a file of another size than said"};
    return {};
}

}  // namespace

MappedFile::~MappedFile() {
    if (data_ != nullptr) munmap(const_cast<std::uint8_t*>(data_), size_);
}

void MappedFile::swap(MappedFile& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
}

Result<MappedFile> MappedFile::map(int descriptor, std::uint64_t size, Trust trust) {
    if (Status status = check(descriptor, size, trust); !status.ok()) return status;
    MappedFile file;
    if (size == 0) return file;
    // Private, because older kernels refuse shared mappings of a file sealed against writing.
    void* const mapped = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (mapped == MAP_FAILED) return Status::out_of_memory();
    file.data_ = static_cast<const std::uint8_t*>(mapped);
    file.size_ = size;
    return file;
}

}  // namespace gputext
