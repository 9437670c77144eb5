// cpp/link/message_socket.hpp - packets with file descriptors over a Unix socket (SOCK_SEQPACKET)
//
// Nothing here blocks, raises SIGPIPE, or leaves a descriptor open over exec.

#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cpp/base/status.hpp"
#include "cpp/link/file_descriptor.hpp"
#include "cpp/link/protocol.hpp"

namespace gputext {

struct Packet {
    std::vector<std::uint8_t> bytes;
    std::vector<FileDescriptor> descriptors;
};

/// A non-blocking socket; not valid when the system gives none.
FileDescriptor new_message_socket();

/// Null when the path is longer than a socket's may be (107 bytes).
std::optional<sockaddr_un> socket_address(const std::string& path);

enum class Sent {
    all,
    not_now,  // until the socket is writable
    later,    // the system is short of memory, or has too many descriptors on their way: the socket
              // may be writable all the same
    closed
};

/// `descriptors` stay the caller's. At most kMaxDescriptors.
Sent send_packet(int socket, std::span<const std::uint8_t> bytes, std::span<const int> descriptors);
Sent send_packet(int socket, const Packet& packet);

enum class Received {
    packet,
    nothing,  // so far
    closed,   // and nothing more to read
    broken    // too large, or with descriptors that did not arrive; those that did are closed
};

Received receive_packet(int socket, Packet& packet);

/// The peer's process, when its user is the one that this process runs as.
std::optional<pid_t> peer_of_same_user(int socket);
/// The part of it that decides.
bool same_user(const ucred& peer, uid_t user);

}  // namespace gputext
