#include "extension/server/file_identity.hpp"

#include <dlfcn.h>
#include <sys/stat.h>

namespace gputext {

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

}  // namespace gputext
