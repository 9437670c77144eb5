// extension/server/release.hpp - which release this session's library is of, and whether a file is
// still the one that it was

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

/// The version and a digest of the sources, as gputextd says it of itself in its hello: equal if
/// both were built from the same sources.
const char* module_release();

/// The version alone, as the control file has it.
const char* module_version();

/// Remembers which file the library was loaded from. Called once, when it is loaded.
void remember_module_file();

/// Whether another file has come into its place since: the session goes on with the old one.
bool module_is_replaced();

}  // namespace gputext
