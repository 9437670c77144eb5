// extension/server/file_identity.hpp - whether a file is still the one that it was

#pragma once

#include "extension/base/postgres.hpp"

#include <cstdint>

namespace gputext {

/// An installation puts a new file into the place of the old one.
struct FileIdentity {
    bool exists = false;
    std::uint64_t device = 0;
    std::uint64_t inode = 0;
    std::int64_t size = 0;
    std::int64_t changed = 0;  // nanoseconds

    bool operator==(const FileIdentity&) const = default;
};

FileIdentity identity_of(const char* path) noexcept;

/// The file that this library was loaded from; false where the system does not know.
bool find_module(char (&path)[MAXPGPATH]) noexcept;

}  // namespace gputext
