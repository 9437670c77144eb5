// cpp/daemon/listening_socket.hpp - the one listening socket of gputextd

#pragma once

#include <memory>
#include <string>

#include "cpp/base/status.hpp"
#include "cpp/link/file_descriptor.hpp"

namespace gputext {

/// A socket file that only its owner can connect to, from its first moment on. A lock on the file
/// PATH.lock tells a server that runs from the socket of one that died, which is replaced; both
/// files go with this object.
class ListeningSocket {
public:
    /// Errors: invalid_argument for a path that is too long or names something else; unavailable
    /// when another server listens there; io_error.
    static Result<std::unique_ptr<ListeningSocket>> open(const std::string& path);
    ~ListeningSocket();
    ListeningSocket(const ListeningSocket&) = delete;
    ListeningSocket& operator=(const ListeningSocket&) = delete;

    int descriptor() const { return socket_.get(); }

private:
    ListeningSocket(std::string path, FileDescriptor lock, FileDescriptor socket)
        : path_(std::move(path)), lock_(std::move(lock)), socket_(std::move(socket)) {}

    std::string path_;
    FileDescriptor lock_;
    FileDescriptor socket_;
};

}  // namespace gputext
