#include "extension/server/release.hpp"

#include "build/pgxs/generated/release.hpp"  // made by scripts/write-release
#include "extension/base/postgres.hpp"
#include "extension/server/file_identity.hpp"

#include <algorithm>
#include <string_view>

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
