#include "cpp/link/protocol.hpp"

#include <cstring>
#include <optional>
#include <utility>

namespace gputext {
namespace {

struct Header {
    std::uint32_t magic;
    std::uint16_t version;
    std::uint16_t type;
    std::uint32_t body_size;
    std::uint32_t descriptors;
};
static_assert(sizeof(Header) == 16);

template <class... Types>
constexpr bool types_differ(TypeList<Types...>) {
    const std::uint16_t types[] = {Types::type...};
    for (std::size_t i = 0; i < std::size(types); ++i)
        for (std::size_t j = 0; j < i; ++j)
            if (types[i] == types[j]) return false;
    return true;
}
static_assert(types_differ(Messages()), "two messages with one number");

template <class... Submits>
constexpr bool is_one_of(std::uint16_t type, TypeList<Submits...>) {
    return ((Submits::type == type) || ...);
}

/// The message with a type's number, its fields as they are before reading; none for other numbers.
template <class... Types>
std::optional<Message> message_of_type(std::uint16_t type, TypeList<Types...>) {
    std::optional<Message> message;
    static_cast<void>(((Types::type == type && (message.emplace(Types()), true)) || ...));
    return message;
}

/// What the fields' own bounds leave open.
bool consistent(const Message& message) {
    return std::visit(
        [](const auto& alternative) {
            if constexpr (requires { alternative.consistent(); })
                return alternative.consistent();
            else
                return true;
        },
        message);
}

}  // namespace

bool submits_job(std::uint16_t type) {
    return is_one_of(type, Submits());
}

bool asks_for_values(std::uint16_t type) {
    return is_one_of(type, ValueRequests());
}

std::size_t descriptors_of(const Message& message) {
    return std::visit(
        [](const auto& alternative) -> std::size_t {
            if constexpr (requires { alternative.files(); })
                return alternative.files();
            else
                return requires {
                    alternative.report;
                }
            ? 1 : 0;
        },
        message);
}

std::vector<std::uint8_t> encode(const Message& message) {
    std::vector<std::uint8_t> packet(sizeof(Header));
    Writer writer(packet);
    Header header{};
    std::visit(
        [&](const auto& alternative) {
            header.type = alternative.type;
            writer(alternative);
        },
        message);
    header.magic = kProtocolMagic;
    header.version = kProtocolVersion;
    header.body_size = static_cast<std::uint32_t>(packet.size() - sizeof header);
    header.descriptors = static_cast<std::uint32_t>(descriptors_of(message));
    std::memcpy(packet.data(), &header, sizeof header);
    return packet;
}

Result<Message> decode(std::span<const std::uint8_t> packet, std::size_t descriptors) {
    Header header;
    if (packet.size() < sizeof header) return broken("a message shorter than its header");
    std::memcpy(&header, packet.data(), sizeof header);
    if (header.magic != kProtocolMagic) return broken("a message that does not begin as one");
    if (header.version != kProtocolVersion)
        return Status(ErrorCode::unavailable, "version " + std::to_string(header.version) +
                                                  " of the protocol instead of " +
                                                  std::to_string(kProtocolVersion));
    const auto body = packet.subspan(sizeof header);
    if (header.body_size != body.size()) return broken("a message of another length than it says");

    std::optional<Message> message = message_of_type(header.type, Messages());
    if (!message) return broken("a message of unknown type");
    Reader reader(body);
    std::visit([&](auto& alternative) { reader(alternative); }, *message);
    if (!reader.complete() || !consistent(*message)) return broken("a message with wrong fields");
    if (header.descriptors != descriptors || descriptors != descriptors_of(*message))
        return broken("a message with a wrong number of file descriptors");
    return std::move(*message);
}

}  // namespace gputext
