// tests/support/resident_value_files.hpp - values of a made-up table, and the files in which
// sessions hand them over

#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cpp/link/memory_file.hpp"
#include "cpp/link/resident_values.hpp"

namespace gputext::testing {

/// A row's pointer, and what the value is that it points to.
struct ResidentValue {
    std::uint32_t table = 0;
    std::uint64_t number = 0;
    std::uint64_t since = 0;
    std::uint64_t content = 0;  // what its bytes follow from
    std::uint64_t size = 0;
};

using ResidentValueList = std::vector<ResidentValue>;
using ByteList = std::vector<std::uint8_t>;

/// Numbers from `first` on, of vectors of so many bytes, made by transaction 10. Those of tables
/// with odd numbers are places within rows: pages and lines.
inline ResidentValueList some_values(std::uint32_t table, std::uint32_t first, std::size_t count,
                                     std::uint64_t size) {
    ResidentValueList values;
    for (std::uint32_t i = 0; i < count; ++i) {
        const std::uint64_t number = first + i;
        values.push_back({table,
                          table % 2 == 0 ? number : number / 4 << 32 | (number % 4) << 16 | 1, 10,
                          std::uint64_t{table} << 32 | number, size});
    }
    return values;
}

inline void append_bytes(const ResidentValue& value, ByteList& bytes) {
    std::uint64_t state = value.content * 0x9e3779b97f4a7c15 + 1;
    for (std::uint64_t i = 0; i < value.size; ++i) {
        state = state * 6364136223846793005 + 1442695040888963407;
        bytes.push_back(static_cast<std::uint8_t>(state >> 56));
    }
}

inline ByteList bytes_of_all(const ResidentValueList& values) {
    ByteList bytes;
    for (const ResidentValue& value : values) append_bytes(value, bytes);
    return bytes;
}

inline ByteList bytes_of_rows(const ResidentValueList& values,
                              std::span<const std::uint32_t> rows) {
    ByteList bytes;
    for (const std::uint32_t row : rows) append_bytes(values[row], bytes);
    return bytes;
}

inline FileDescriptor sealed_file(std::span<const std::uint8_t> bytes) {
    MemoryFile file;
    EXPECT_TRUE(file.append(bytes).ok());
    EXPECT_TRUE(file.seal().ok());
    return file.release_descriptor();
}

inline FileDescriptor pointer_file(const ResidentValueList& values) {
    std::vector<ValuePointer> pointers;
    for (const ResidentValue& value : values)
        pointers.push_back(
            {value.table, static_cast<std::uint32_t>(value.size), value.number, value.since});
    return sealed_file({reinterpret_cast<const std::uint8_t*>(pointers.data()),
                        pointers.size() * sizeof(ValuePointer)});
}

/// The bytes in sealed files of so many pages each, or in one file for 0 pages.
class ValueFiles {
public:
    explicit ValueFiles(std::span<const std::uint8_t> bytes, std::uint64_t pages = 0) {
        const std::uint64_t part = pages * page_size();
        if (pages == 0 || bytes.size() <= part) {
            files.push_back(sealed_file(bytes));
        } else {
            PartedFile parted;
            EXPECT_TRUE(parted.create(bytes.size(), part).ok());
            EXPECT_TRUE(parted.write(0, bytes).ok());
            EXPECT_TRUE(parted.seal().ok());
            shape = parted.parts().shape();
            files = parted.release_files();
        }
        for (const FileDescriptor& file : files) descriptors_.push_back(file.get());
    }

    FileParts parts() const { return {descriptors_, shape.part_bytes}; }

    std::vector<FileDescriptor> files;
    PartsShape shape;

private:
    std::vector<int> descriptors_;
};

}  // namespace gputext::testing
