#include "cpp/protocol.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <type_traits>

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

template <class T>
concept Number = std::is_arithmetic_v<T> && !std::is_same_v<T, bool>;

class Writer {
public:
    explicit Writer(std::vector<std::uint8_t>& bytes) : bytes_(bytes) {}

    template <Number T>
    void number(const T& value) {
        const std::size_t at = bytes_.size();
        bytes_.resize(at + sizeof value);
        std::memcpy(bytes_.data() + at, &value, sizeof value);
    }
    void flag(const bool& value) { number(static_cast<std::uint8_t>(value)); }
    template <class Enum>
    void choice(const Enum& value, Enum) {
        number(static_cast<std::uint32_t>(value));
    }
    void text(const std::string& value, std::size_t longest) {
        const std::size_t length = std::min(value.size(), longest);
        number(static_cast<std::uint16_t>(length));
        bytes_.insert(bytes_.end(), value.begin(),
                      value.begin() + static_cast<std::ptrdiff_t>(length));
    }
    void block(const std::array<std::uint8_t, 256>& value) {
        bytes_.insert(bytes_.end(), value.begin(), value.end());
    }
    template <class T>
    void list(const std::vector<T>& values, std::size_t longest) {
        const std::size_t length = std::min(values.size(), longest);
        number(static_cast<std::uint32_t>(length));
        for (std::size_t i = 0; i < length; ++i) fields(*this, values[i]);
    }

private:
    std::vector<std::uint8_t>& bytes_;
};

/// Reads nothing more once something was wrong; what it has given until then is of no use.
class Reader {
public:
    explicit Reader(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

    /// All bytes were read and all of them were right.
    bool complete() const { return good_ && bytes_.empty(); }

    template <Number T>
    void number(T& value) {
        take(&value, sizeof value);
    }
    void flag(bool& value) {
        std::uint8_t byte = 0;
        number(byte);
        if (byte > 1) good_ = false;
        value = byte == 1;
    }
    template <class Enum>
    void choice(Enum& value, Enum last) {
        std::uint32_t raw = 0;
        number(raw);
        if (raw > static_cast<std::uint32_t>(last))
            good_ = false;
        else
            value = static_cast<Enum>(raw);
    }
    void text(std::string& value, std::size_t longest) {
        std::uint16_t length = 0;
        number(length);
        if (length > longest || length > bytes_.size()) good_ = false;
        if (!good_) return;
        value.resize(length);
        take(value.data(), length);
        for (char& c : value)
            if (c < ' ' || c > '~') c = '?';
    }
    void block(std::array<std::uint8_t, 256>& value) { take(value.data(), value.size()); }
    template <class T>
    void list(std::vector<T>& values, std::size_t longest) {
        std::uint32_t length = 0;
        number(length);
        if (length > longest) good_ = false;
        for (std::uint32_t i = 0; good_ && i < length; ++i) fields(*this, values.emplace_back());
    }

private:
    void take(void* to, std::size_t size) {
        if (!good_ || size > bytes_.size()) {
            good_ = false;
            return;
        }
        if (size > 0) std::memcpy(to, bytes_.data(), size);
        bytes_ = bytes_.subspan(size);
    }

    std::span<const std::uint8_t> bytes_;
    bool good_ = true;
};

// Each message's fields, for writing and for reading.

template <class Archive>
void fields(Archive& archive, auto& message) {
    using T = std::remove_cvref_t<decltype(message)>;
    if constexpr (std::is_same_v<T, Hello>) {
        archive.number(message.pid);
        archive.text(message.release, kMaxName);
    } else if constexpr (std::is_same_v<T, SubmitNearDuplicates>) {
        archive.number(message.documents);
        archive.number(message.bytes);
        archive.flag(message.has_signatures);
        archive.number(message.signature_bytes);
        archive.number(message.threshold);
        archive.choice(message.mode, NearDuplicateMode::exact);
        archive.number(message.signature_length);
        archive.number(message.host_memory_limit);
        archive.number(message.device_memory_limit);
        archive.number(message.device);
        archive.block(message.character_lengths);
    } else if constexpr (std::is_same_v<T, Progress>) {
        archive.text(message.phase, kMaxName);
        archive.number(message.done);
        archive.number(message.total);
        archive.number(message.device);
    } else if constexpr (std::is_same_v<T, NearDuplicatesReply>) {
        archive.number(message.documents);
        archive.number(message.pairs);
        archive.flag(message.copies_are_near);
        archive.number(message.device);
        archive.text(message.device_name, kMaxName);
        archive.number(message.seconds);
        archive.number(message.retries);
        archive.list(message.phases, kMaxPhases);
    } else if constexpr (std::is_same_v<T, PhaseTime>) {
        archive.text(message.name, kMaxName);
        archive.number(message.seconds);
    } else if constexpr (std::is_same_v<T, ErrorReply>) {
        archive.choice(message.code, ErrorCode::internal_error);
        archive.text(message.message, kMaxSentence);
        archive.text(message.hint, kMaxSentence);
        archive.number(message.request);
    } else if constexpr (std::is_same_v<T, DeviceInfo>) {
        archive.text(message.name, kMaxName);
        archive.number(message.memory);
        archive.text(message.driver, kMaxName);
    } else if constexpr (std::is_same_v<T, DeviceList>) {
        archive.list(message.devices, kMaxDevices);
        archive.text(message.why_none, kMaxSentence);
    } else if constexpr (std::is_same_v<T, RunningJob>) {
        archive.number(message.pid);
        archive.text(message.operation, kMaxName);
        archive.number(message.device);
        archive.text(message.phase, kMaxName);
        archive.number(message.done);
        archive.number(message.total);
        archive.number(message.documents);
        archive.number(message.bytes);
        archive.number(message.seconds);
    } else if constexpr (std::is_same_v<T, ActivityList>) {
        archive.list(message.jobs, kMaxActivity);
    } else if constexpr (std::is_same_v<T, CounterValues>) {
        archive.number(message.jobs);
        archive.number(message.documents);
        archive.number(message.bytes);
        archive.number(message.milliseconds);
        archive.number(message.retries);
        archive.number(message.failures);
        archive.number(message.cancelled);
    } else if constexpr (std::is_same_v<T, InjectFault>) {
        archive.text(message.fault, kMaxName);
    } else {
        static_assert(std::is_empty_v<T>, "a message whose fields are not listed");
    }
}

Status broken(const char* what) {
    return {ErrorCode::invalid_argument, what};
}

/// The message with a type's number, its fields as they are before reading; none for other numbers.
template <std::size_t Index = 0>
std::optional<Message> message_of_type(std::uint16_t type) {
    if constexpr (Index < std::variant_size_v<Message>) {
        using T = std::variant_alternative_t<Index, Message>;
        if (T::type == type) return T();
        return message_of_type<Index + 1>(type);
    } else {
        return std::nullopt;
    }
}

/// What the fields' own bounds leave open.
bool consistent(const Message& message) {
    if (const auto* reply = std::get_if<ErrorReply>(&message)) return reply->code != ErrorCode::ok;
    if (const auto* submit = std::get_if<SubmitNearDuplicates>(&message))
        return submit->documents < UINT32_MAX &&
               (submit->has_signatures || submit->signature_bytes == 0);
    return true;
}

}  // namespace

std::size_t descriptors_of(const Message& message) {
    if (const auto* submit = std::get_if<SubmitNearDuplicates>(&message))
        return submit->has_signatures ? 3 : 2;
    return std::holds_alternative<NearDuplicatesReply>(message) ? 1 : 0;
}

std::vector<std::uint8_t> encode(const Message& message) {
    std::vector<std::uint8_t> packet(sizeof(Header));
    Writer writer(packet);
    Header header{};
    std::visit(
        [&](const auto& alternative) {
            header.type = alternative.type;
            fields(writer, alternative);
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

    std::optional<Message> message = message_of_type(header.type);
    if (!message) return broken("a message of unknown type");
    Reader reader(body);
    std::visit([&](auto& alternative) { fields(reader, alternative); }, *message);
    if (!reader.complete() || !consistent(*message)) return broken("a message with wrong fields");
    if (header.descriptors != descriptors || descriptors != descriptors_of(*message))
        return broken("a message with a wrong number of file descriptors");
    return std::move(*message);
}

Status check_extents(std::span<const Extent> extents, std::uint64_t bytes) {
    for (const Extent& extent : extents)
        if (extent.begin > bytes || extent.size > bytes - extent.begin ||
            extent.size > std::numeric_limits<std::int32_t>::max())
            return broken("a document outside the packed bytes");
    return {};
}

std::vector<std::uint8_t> pack_signatures(GivenSignatures signatures, Stop stop) {
    const std::size_t table_size = signatures.size() * sizeof(PackedSignature);
    std::size_t letters = 0;
    for (const std::optional<Ctph>& signature : signatures)
        if (signature) letters += signature->letters.size();
    std::vector<std::uint8_t> file;
    file.reserve(table_size + letters);
    file.resize(table_size);
    for (std::size_t i = 0; i < signatures.size(); ++i) {
        if (i % 4096 == 0 && stop()) return file;
        if (!signatures[i]) continue;
        const Ctph& signature = *signatures[i];
        const PackedSignature packed{file.size() - table_size,
                                     signature.first_length,
                                     static_cast<std::uint16_t>(signature.letters.size()),
                                     signature.level,
                                     1,
                                     0};
        std::memcpy(file.data() + i * sizeof packed, &packed, sizeof packed);
        file.insert(file.end(), signature.letters.begin(), signature.letters.end());
    }
    return file;
}

Result<std::vector<std::optional<Ctph>>> unpack_signatures(std::span<const std::uint8_t> file,
                                                           std::size_t documents, Stop stop) {
    if (documents > file.size() / sizeof(PackedSignature)) return broken("too few signatures");
    const auto letters = file.subspan(documents * sizeof(PackedSignature));
    std::vector<std::optional<Ctph>> signatures(documents);
    std::uint64_t end = 0;
    for (std::size_t i = 0; i < documents; ++i) {
        if (i % 4096 == 0 && stop()) return Status::cancelled();
        PackedSignature packed;
        std::memcpy(&packed, file.data() + i * sizeof packed, sizeof packed);
        if (packed.present == 0) {
            const PackedSignature none{};
            if (std::memcmp(&packed, &none, sizeof none) != 0) return broken("a wrong signature");
            continue;
        }
        if (packed.present != 1 || packed.zero != 0 || packed.begin != end ||
            packed.length > letters.size() - end || packed.first_length > packed.length)
            return broken("a wrong signature");
        Ctph& signature = signatures[i].emplace();
        signature.level = packed.level;
        signature.first_length = packed.first_length;
        const auto own = letters.subspan(end, packed.length);
        signature.letters.assign(own.begin(), own.end());
        if (!check_ctph(signature).ok()) return broken("a wrong signature");
        end += packed.length;
    }
    if (end != letters.size()) return broken("letters without a signature");
    return signatures;
}

std::optional<ReplyLayout> reply_layout(std::uint32_t documents, std::uint64_t pairs) {
    const std::uint64_t pairs_begin =
        (std::uint64_t{documents} * sizeof(std::uint32_t) + 7) / 8 * 8;
    constexpr std::uint64_t most = std::uint64_t{1} << 62;
    if (pairs > (most - pairs_begin) / sizeof(NearPair)) return std::nullopt;
    return ReplyLayout{pairs_begin, pairs_begin + pairs * sizeof(NearPair)};
}

}  // namespace gputext
