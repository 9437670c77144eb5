#include "extension/server/release.hpp"

#include "build/pgxs/generated/release.hpp"  // made by scripts/write-release
#include "extension/base/postgres.hpp"
#include "extension/server/file_identity.hpp"

namespace gputext {
namespace {

FileIdentity loaded;

}  // namespace

const char* module_release() {
    return GPUTEXT_RELEASE;
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
