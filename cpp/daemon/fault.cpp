#include "cpp/daemon/fault.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <atomic>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <thread>

namespace gputext {
namespace {

constexpr std::string_view kPoints[] = {"accept",      "before_job", "in_job",      "before_reply",
                                        "find_values", "add_values", "take_values", "fill_values"};
static_assert(std::size(kPoints) == static_cast<std::size_t>(FaultPoint::fill_values) + 1);
constexpr std::string_view kKinds[] = {
    "none",           "crash",        "abort",       "hang",          "stuck",
    "slow",           "hold",         "gather",      "out_of_memory", "device_error",
    "device_lost",    "no_reply",     "wrong_magic", "wrong_version", "wrong_length",
    "wrong_counts",   "wrong_answer", "short_file",  "unsealed_file", "no_file",
    "too_many_files", "lift"};
static_assert(std::size(kKinds) == static_cast<std::size_t>(FaultKind::lift) + 1);

template <class Enum>
bool parse_name(std::string_view text, std::span<const std::string_view> names, Enum& value) {
    for (std::size_t i = 0; i < names.size(); ++i) {
        if (names[i] != text) continue;
        value = static_cast<Enum>(i);
        return true;
    }
    return false;
}

/// The text up to the next colon, which is taken off with it.
std::string_view take_word(std::string_view& text) {
    const std::size_t end = text.find(':');
    const std::string_view word = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    return word;
}

/// The number that a word is, and nothing else; false when it is none.
template <class Number>
bool parse_number(std::string_view word, Number& number) {
    const char* const end = word.data() + word.size();
    const auto [stopped, error] = std::from_chars(word.data(), end, number);
    return error == std::errc() && stopped == end;
}

/// Whatever handlers there are, and without a core file.
[[noreturn]] void die_by(int signal_number) {
    prctl(PR_SET_DUMPABLE, 0);
    signal(signal_number, SIG_DFL);
    sigset_t only;
    sigemptyset(&only);
    sigaddset(&only, signal_number);
    pthread_sigmask(SIG_UNBLOCK, &only, nullptr);
    raise(signal_number);
    std::_Exit(1);
}

constexpr std::chrono::milliseconds kStep{10};

Status sleep_in_steps(unsigned milliseconds, Execution& execution) {
    const auto steps = milliseconds / kStep.count();
    execution.begin_phase("being slow", static_cast<std::uint64_t>(steps));
    for (std::int64_t i = 0; i < steps; ++i) {
        std::this_thread::sleep_for(kStep);
        if (Status status = execution.checkpoint(); !status.ok()) return status;
    }
    return {};
}

std::atomic<std::uint64_t> lifts = 0;

Status hold(const Fault& fault, Execution& execution) {
    execution.begin_phase("being held", 0);
    while (lifts < fault.lifts + fault.count) {
        if (execution.stop_requested()) return Status::cancelled();
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return {};
}

Status hang(bool for_ever, Execution& execution) {
    execution.begin_phase("hanging", 0);
    while (for_ever || !execution.stop_requested()) std::this_thread::sleep_for(kStep);
    return Status::cancelled();
}

Status fail(Fault& fault) {
    if (fault.count == 0) return {};
    --fault.count;
    switch (fault.kind) {
        case FaultKind::out_of_memory:
            return {ErrorCode::out_of_memory, "out of device memory, as a test asked for"};
        case FaultKind::device_error:
            return {ErrorCode::device_error, "the device failed, as a test asked for"};
        default:
            return {ErrorCode::device_lost, "the device is lost, as a test asked for"};
    }
}

/// A file with so many bytes cut off, sealed or open to changes.
FileDescriptor copy_of_file(int from, off_t cut, bool seal) {
    FileDescriptor copy(memfd_create("gputext", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    const off_t size = lseek(from, 0, SEEK_END) - cut;
    std::vector<char> bytes(static_cast<std::size_t>(size));
    if (pread(from, bytes.data(), bytes.size(), 0) != size ||
        pwrite(copy.get(), bytes.data(), bytes.size(), 0) != size)
        return {};
    if (seal) fcntl(copy.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
    return copy;
}

/// Every document becomes a copy of the last one.
FileDescriptor wrong_copy_of_file(int from) {
    FileDescriptor copy = copy_of_file(from, 0, false);
    const off_t size = lseek(from, 0, SEEK_END);
    const std::vector<char> ones(static_cast<std::size_t>(size), '\x01');
    if (pwrite(copy.get(), ones.data(), ones.size(), 0) != size) return {};
    fcntl(copy.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
    return copy;
}

template <class T>
void overwrite(std::vector<std::uint8_t>& bytes, std::size_t at, T value) {
    if (at + sizeof value <= bytes.size()) std::memcpy(bytes.data() + at, &value, sizeof value);
}

}  // namespace

Result<Fault> parse_fault(std::string_view text) {
    Fault fault;
    fault.lifts = lifts;
    const bool named = parse_name(take_word(text), kPoints, fault.point) &&
                       parse_name(take_word(text), kKinds, fault.kind);
    if (!named)
        return Status(
            ErrorCode::invalid_argument, "unknown fault",
            "Faults are written POINT:KIND, POINT:KIND:COUNT or in_job:KIND:COUNT:DEVICE.");
    if (text.empty()) return fault;
    if (!parse_number(take_word(text), fault.count))
        return Status(ErrorCode::invalid_argument, "the count of a fault must be a number");
    if (text.empty()) return fault;
    if (fault.point != FaultPoint::in_job)
        return Status(ErrorCode::invalid_argument, "only a fault of in_job can name a device");
    if (!parse_number(text, fault.device) || fault.device < 0)
        return Status(ErrorCode::invalid_argument, "the device of a fault must be its number");
    return fault;
}

bool of_job(const Fault& fault) {
    return fault.point == FaultPoint::before_job || fault.point == FaultPoint::in_job ||
           fault.point == FaultPoint::before_reply;
}

void lift_faults() {
    ++lifts;
}

Status suffer(Fault& fault, FaultPoint point, Execution& execution) {
    if (fault.point != point) return {};
    switch (fault.kind) {
        case FaultKind::crash:
            die_by(SIGSEGV);
        case FaultKind::abort:
            die_by(SIGABRT);
        case FaultKind::slow:
            return sleep_in_steps(fault.count, execution);
        case FaultKind::hold:
            return hold(fault, execution);
        case FaultKind::hang:
        case FaultKind::stuck:
            return hang(fault.kind == FaultKind::stuck, execution);
        case FaultKind::out_of_memory:
        case FaultKind::device_error:
        case FaultKind::device_lost:
            return fail(fault);
        default:
            return {};
    }
}

void break_reply(const Fault& fault, Packet& reply) {
    if (fault.kind == FaultKind::no_reply) reply = {};
    // Offsets of the header's fields, and of the number of pairs behind that of the documents.
    if (fault.kind == FaultKind::wrong_magic) overwrite(reply.bytes, 0, ~kProtocolMagic);
    if (fault.kind == FaultKind::wrong_version)
        overwrite(reply.bytes, 4, static_cast<std::uint16_t>(kProtocolVersion + 1));
    if (fault.kind == FaultKind::wrong_length) overwrite(reply.bytes, 8, UINT32_MAX);
    if (fault.kind == FaultKind::no_file) reply.descriptors.clear();
    if (reply.descriptors.empty()) return;

    FileDescriptor& file = reply.descriptors[0];
    if (fault.kind == FaultKind::wrong_counts) overwrite(reply.bytes, 20, std::uint64_t{1} << 60);
    if (fault.kind == FaultKind::short_file) file = copy_of_file(file.get(), 1, true);
    if (fault.kind == FaultKind::unsealed_file) file = copy_of_file(file.get(), 0, false);
    if (fault.kind == FaultKind::wrong_answer) file = wrong_copy_of_file(file.get());
    if (fault.kind == FaultKind::too_many_files)
        reply.descriptors.push_back(FileDescriptor(fcntl(file.get(), F_DUPFD_CLOEXEC, 0)));
}

}  // namespace gputext
