#include "cpp/link/message_socket.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace gputext {
namespace {

struct alignas(cmsghdr) ControlBuffer {
    char bytes[CMSG_SPACE(kMaxDescriptors * sizeof(int))] = {};
};

void take_descriptors(msghdr& message, std::vector<FileDescriptor>& descriptors) {
    for (cmsghdr* part = CMSG_FIRSTHDR(&message); part != nullptr;
         part = CMSG_NXTHDR(&message, part)) {
        if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) continue;
        const std::size_t count = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (std::size_t i = 0; i < count; ++i) {
            int descriptor;
            std::memcpy(&descriptor, CMSG_DATA(part) + i * sizeof descriptor, sizeof descriptor);
            descriptors.emplace_back(descriptor);
        }
    }
}

}  // namespace

FileDescriptor new_message_socket() {
    return FileDescriptor(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

std::optional<sockaddr_un> socket_address(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.empty() || path.size() >= sizeof address.sun_path) return std::nullopt;
    std::memcpy(address.sun_path, path.data(), path.size());
    return address;
}

Sent send_packet(int socket, std::span<const std::uint8_t> bytes,
                 std::span<const int> descriptors) {
    iovec part{const_cast<std::uint8_t*>(bytes.data()), bytes.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    ControlBuffer control;
    if (!descriptors.empty()) {
        message.msg_control = control.bytes;
        message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
        cmsghdr* const header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(descriptors.size_bytes());
        std::memcpy(CMSG_DATA(header), descriptors.data(), descriptors.size_bytes());
    }
    for (;;) {
        if (sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0) return Sent::all;
        if (errno == EINTR) continue;
        if (errno == EAGAIN) return Sent::not_now;
        const bool is_short = errno == ENOBUFS || errno == ENOMEM || errno == ETOOMANYREFS;
        return is_short ? Sent::later : Sent::closed;
    }
}

Sent send_packet(int socket, const Packet& packet) {
    std::vector<int> descriptors;
    for (const FileDescriptor& descriptor : packet.descriptors)
        descriptors.push_back(descriptor.get());
    return send_packet(socket, packet.bytes, descriptors);
}

Received receive_packet(int socket, Packet& packet) {
    packet.descriptors.clear();
    packet.descriptors.reserve(kMaxDescriptors + 1);  // the control buffer's padding may carry one
    packet.bytes.resize(kMaxMessageSize);
    iovec part{packet.bytes.data(), packet.bytes.size()};
    ControlBuffer control;
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.bytes;
    message.msg_controllen = sizeof control.bytes;

    ssize_t size;
    do {
        size = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
        // A peer that closed without reading all is told once; what it wrote is still to be read.
    } while (size < 0 && (errno == EINTR || errno == ECONNRESET));
    if (size < 0)
        return errno == EAGAIN || errno == EWOULDBLOCK ? Received::nothing : Received::closed;
    take_descriptors(message, packet.descriptors);
    packet.bytes.resize(static_cast<std::size_t>(size));
    if ((message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) {
        packet.descriptors.clear();
        return Received::broken;
    }
    return size == 0 ? Received::closed : Received::packet;
}

bool same_user(const ucred& peer, uid_t user) {
    return peer.uid == user;
}

std::optional<pid_t> peer_of_same_user(int socket) {
    ucred peer{};
    socklen_t size = sizeof peer;
    if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return std::nullopt;
    if (!same_user(peer, geteuid())) return std::nullopt;
    return peer.pid;
}

}  // namespace gputext
