#include "extension/server/release.hpp"

#include <dlfcn.h>
#include <sys/stat.h>

#include <algorithm>
#include <string_view>

#include "build/pgxs/generated/release.hpp"  // made by scripts/write-release

namespace gputext {
namespace {

FileIdentity loaded;

/// The part of the release in front of the digest, and a null byte.
struct Version {
    char text[sizeof GPUTEXT_RELEASE] = {};
};
constexpr Version kVersion = [] {
    constexpr std::string_view release = GPUTEXT_RELEASE;
    Version version;
    std::copy_n(release.data(), release.find('+'), version.text);
    return version;
}();

}  // namespace

FileIdentity identity_of(const char* path) noexcept {
    struct stat file;
    if (stat(path, &file) != 0) return {};
    return {true, file.st_dev, file.st_ino, file.st_size,
            std::int64_t{file.st_mtim.tv_sec} * 1'000'000'000 + file.st_mtim.tv_nsec};
}

bool find_module(char (&path)[MAXPGPATH]) noexcept {
    Dl_info library;
    if (dladdr(reinterpret_cast<const void*>(&find_module), &library) == 0) return false;
    strlcpy(path, library.dli_fname, sizeof path);
    return true;
}

const char* module_release() {
    return GPUTEXT_RELEASE;
}

const char* module_version() {
    return kVersion.text;
}

void remember_module_file() {
    char path[MAXPGPATH];
    if (find_module(path)) loaded = identity_of(path);
}

bool module_is_replaced() {
    char path[MAXPGPATH];
    if (!loaded.exists || !find_module(path)) return false;
    const FileIdentity now = identity_of(path);
    return now.exists && !(now == loaded);
}

}  // namespace gputext
