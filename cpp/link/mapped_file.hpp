// cpp/link/mapped_file.hpp - maps and checks a file that another process handed over

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cpp/base/large_pages.hpp"
#include "cpp/base/status.hpp"
#include "cpp/link/file_parts.hpp"

namespace gputext {

enum class Trust {
    sealed,          // a memfd whose size and bytes nobody can change: reading it never faults
    sealed_or_disk,  // that, or a plain file, which its owner promises to leave as it is
    own              // a memfd of this process, which may still write it
};

/// A file of exactly the expected size, or its parts side by side, mapped for reading. The
/// descriptors may be closed then.
class MappedFile {
public:
    MappedFile() = default;
    ~MappedFile();
    MappedFile(MappedFile&& other) noexcept { swap(other); }
    MappedFile& operator=(MappedFile&& other) noexcept {
        swap(other);
        return *this;
    }

    /// Errors: invalid_argument when the seals, the kind or the size of a file are not as said;
    /// out_of_memory.
    static Result<MappedFile> map(const FileParts& parts, std::uint64_t size, Trust trust);

    std::span<const std::uint8_t> bytes() const { return {data_, size_}; }

    /// `count` values of T from byte `begin` on, which has T's alignment. Requires that they are
    /// within the file.
    template <class T>
    std::span<const T> array(std::size_t begin, std::size_t count) const {
        return {reinterpret_cast<const T*>(data_ + begin), count};
    }

private:
    void swap(MappedFile& other) noexcept;

    const std::uint8_t* data_ = nullptr;
    std::size_t size_ = 0;
};

/// Copies an array out of the file; false when it was told to stop.
template <class T>
bool copy_array(const MappedFile& file, std::size_t begin, std::size_t count, std::vector<T>& to,
                Stop stop) {
    if (!assign_pages(to, count, T{}, stop)) return false;
    const auto from = file.array<T>(begin, count);
    std::copy(from.begin(), from.end(), to.begin());
    return true;
}

}  // namespace gputext
