// cpp/link/wire.hpp - how fields are written into packets, and read from them
//
// A struct that travels says once what its fields are, in their order on the wire:
//
//     static void fields(auto& archive, auto& self) { archive(self.rows, self.parameters); }
//
// or, for a struct of another folder, as a function beside the message that it travels in:
//
//     void fields(auto& archive, Like<KnnParameters> auto& parameters) { ... }
//
// The archive is a Writer or a Reader. Numbers are written as they are, bool as u8, an enum as u32,
// a text as u16 length and bytes, a list as u32 length and elements. An enum tells its largest
// value by last_of(), which is found by the enum's namespace.

#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"

namespace gputext {

// Longer texts are cut and longer lists end there when written, and are errors when read.
inline constexpr std::size_t kMaxName = 128;
inline constexpr std::size_t kMaxSentence = 2048;
inline constexpr std::size_t kMaxPhases = 64;

/// Elements, bytes or tokens that a file is taken to have at most.
inline constexpr std::uint64_t kMostStored = std::uint64_t{1} << 56;

/// T, which may be const.
template <class Type, class T>
concept Like = std::same_as<std::remove_const_t<Type>, T>;

/// Writes or reads one field.
template <class Archive, class T>
void wire_field(Archive& archive, T& value) {
    using Plain = std::remove_const_t<T>;
    if constexpr (std::is_same_v<Plain, bool>)
        archive.flag(value);
    else if constexpr (std::is_arithmetic_v<Plain>)
        archive.number(value);
    else if constexpr (std::is_enum_v<Plain>)
        archive.choice(value, last_of(value));
    else if constexpr (std::is_same_v<Plain, std::string>)
        archive.text(value, kMaxName);
    else if constexpr (std::is_same_v<Plain, std::array<std::uint8_t, 256>>)
        archive.block(value);
    else if constexpr (requires { Plain::fields(archive, value); })
        Plain::fields(archive, value);
    else
        fields(archive, value);
}

/// Appends to a packet.
class Writer {
public:
    explicit Writer(std::vector<std::uint8_t>& bytes) : bytes_(bytes) {}

    template <class... Fields>
    void operator()(const Fields&... values) {
        (wire_field(*this, values), ...);
    }

    template <class T>
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
        for (std::size_t i = 0; i < length; ++i) (*this)(values[i]);
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

    template <class... Fields>
    void operator()(Fields&... values) {
        (wire_field(*this, values), ...);
    }

    template <class T>
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
        for (std::uint32_t i = 0; good_ && i < length; ++i) (*this)(values.emplace_back());
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

/// What every job says, whatever its operator.
struct JobLimits {
    std::uint64_t device_memory_limit = 0;  // bytes; 0 is as much as the device gives
    std::int32_t device = -1;               // the only one to use, or -1 for any

    static void fields(auto& archive, auto& self) {
        archive(self.device_memory_limit, self.device);
    }
};

void fields(auto& archive, Like<PhaseTime> auto& phase) {
    archive(phase.name, phase.seconds);
}

/// What every answer to a job says.
struct JobReport {
    std::int32_t device = 0;  // that ran the job, or the first of several
    std::string device_name;  // of all that did parts of it
    double seconds = 0;       // from the start on the device to the reply
    /// Of parts of the job: with less memory, after the device had run out of it, or on another
    /// device, after one had failed.
    std::uint32_t retries = 0;
    /// Bytes that were copied from the host's memory to devices for all parts of the job, those
    /// included that failed; but for numbers that go there one at a time. What comes back is not
    /// counted, nor are copies within a device. Devices do not copy from each other.
    std::uint64_t uploaded = 0;
    std::vector<PhaseTime> phases;

    static void fields(auto& archive, auto& self) {
        archive(self.device, self.device_name, self.seconds, self.retries, self.uploaded);
        archive.list(self.phases, kMaxPhases);
    }
};

// ---- What has gone wrong ----

/// A request or its files are not what they have to be.
inline Status broken(const char* what) {
    return {ErrorCode::invalid_argument, what};
}

inline Status too_many(const char* what) {
    return {ErrorCode::invalid_argument, std::string("more than 4294967294 ").append(what)};
}

inline constexpr const char* kSeeLog =
    "The server's log says why. It is started again for the next job.";

/// A reply or its file is not what it has to be.
inline Status broken_reply(const std::string& what) {
    return {ErrorCode::unavailable, "gputextd sent a reply that makes no sense: " + what, kSeeLog};
}
inline constexpr const char* kOtherRows = "an answer of another number of rows";
inline constexpr const char* kImpossibleSize = "an answer of impossible size";
/// That, of an answer which a file's check calls an invalid argument; other errors as they are.
inline Status broken_reply(const Status& status) {
    return status.code() == ErrorCode::invalid_argument ? broken_reply(status.message()) : status;
}

}  // namespace gputext
