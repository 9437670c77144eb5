#include "cpp/daemon/listening_socket.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "cpp/link/message_socket.hpp"

namespace gputext {
namespace {

constexpr mode_t kOwnerOnly = S_IRUSR | S_IWUSR;
constexpr int kWaiting = 4096;  // connections not accepted yet; the system has its own limit

std::string lock_path(const std::string& path) {
    return path + ".lock";
}

Status failed(const std::string& what, const std::string& path) {
    return {ErrorCode::io_error,
            "could not " + what + " \"" + path + "\": " + std::strerror(errno)};
}

Result<FileDescriptor> take_lock(const std::string& path) {
    for (;;) {
        FileDescriptor file(
            ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, kOwnerOnly));
        if (!file.valid()) return failed("open lock file", path);
        if (flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
            if (errno == EINTR) continue;
            if (errno != EWOULDBLOCK) return failed("lock file", path);
            return Status(ErrorCode::unavailable, "another gputextd holds \"" + path + "\"");
        }
        // The one who held it before may just have removed the file: then it is nobody's lock.
        struct stat locked;
        struct stat named;
        if (fstat(file.get(), &locked) == 0 && stat(path.c_str(), &named) == 0 &&
            locked.st_ino == named.st_ino && locked.st_dev == named.st_dev)
            return file;
    }
}

/// Removes the socket of a server that died.
Status make_room(const std::string& path) {
    struct stat found;
    if (lstat(path.c_str(), &found) != 0) return errno == ENOENT ? Status() : failed("see", path);
    if (!S_ISSOCK(found.st_mode))
        return {ErrorCode::invalid_argument, "\"" + path + "\" is there and no socket"};
    return unlink(path.c_str()) == 0 ? Status() : failed("remove old socket", path);
}

}  // namespace

Result<std::unique_ptr<ListeningSocket>> ListeningSocket::open(const std::string& path) {
    const auto address = socket_address(path);
    if (!address)
        return Status(ErrorCode::invalid_argument,
                      "the path of a socket must have 1 to 107 bytes: \"" + path + "\"",
                      "A path relative to the working directory may be shorter.");
    Result<FileDescriptor> lock = take_lock(lock_path(path));
    if (!lock.ok()) return lock.status();
    if (Status status = make_room(path); !status.ok()) return status;
    FileDescriptor socket = new_message_socket();
    if (!socket.valid()) return failed("make socket", path);
    // The file gets the mode that the socket has when it is bound, less the umask; so there is no
    // moment at which others could connect.
    if (fchmod(socket.get(), kOwnerOnly) != 0 ||
        bind(socket.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address) != 0)
        return failed("bind socket", path);
    std::unique_ptr<ListeningSocket> listening(
        new ListeningSocket(path, std::move(*lock), std::move(socket)));
    if (chmod(path.c_str(), kOwnerOnly) != 0) return failed("set the mode of", path);
    if (listen(listening->descriptor(), kWaiting) != 0) return failed("listen on", path);
    return listening;
}

ListeningSocket::~ListeningSocket() {
    unlink(path_.c_str());
    unlink(lock_path(path_).c_str());
}

}  // namespace gputext
