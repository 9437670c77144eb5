// gputextd/main.cpp - main program of gputextd: options, signals, log, exit

#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <vector>

#include "cpp/base/machine.hpp"
#include "cpp/base/resident_ranges.hpp"
#include "cpp/daemon/fake_device.hpp"
#include "cpp/daemon/on_device.hpp"
#include "cpp/daemon/server.hpp"
#include "cpp/link/protocol.hpp"
#include "release.hpp"  // made by scripts/write-release
#ifdef GPUTEXT_CUDA
#include "kernels/daemon/cuda_devices.hpp"
#endif

namespace gputext {
namespace {

// Exit codes, for the supervisor.
constexpr int kEnded = 0;
constexpr int kCouldNotStart = 1;
constexpr int kWrongUsage = 2;
constexpr int kDeviceLost = 3;
constexpr int kOutOfMemory = 4;

constexpr unsigned kPatience = 1000;  // milliseconds that devices get to stop

const char* const kHelp =
    "gputextd owns the GPUs of this host and runs gputext's jobs on them. The gputext extension\n"
    "of PostgreSQL starts and stops it; there is no need to run it by hand.\n"
    "\n"
    "  --socket=PATH         listen there (required); a relative path may be shorter\n"
    "  --supervisor-fd=FD    end when the other end of this pipe is closed\n"
    "  --parent-pid=PID      be killed when the process that started this one, PID, dies\n"
    "  --log-fd=FD           write the log there, a line \"LEVEL message\" each, not to stderr\n"
    "  --memory-limit=BYTES  of each device; 0, the default, for all that is free\n"
    "  --resident-memory=BYTES\n"
    "                        of values that are kept between statements; 0, the default, for none\n"
    "  --threads=N           threads of the host for each device\n"
    "  --fake-devices=N      for tests: devices without a GPU\n"
    "  --allow-faults        for tests: clients may ask for faults\n"
    "  --version, --help\n"
    "\n"
    "Exit codes: 0 told to end, 1 could not start, 2 wrong usage, 3 a device was lost,\n"
    "4 out of memory.\n";

struct Options {
    std::string socket;
    int supervisor = -1;
    pid_t parent = 0;
    int log = STDERR_FILENO;
    std::uint64_t memory_limit = 0;
    std::uint64_t resident_memory = 0;
    unsigned threads = 0;
    unsigned fake_devices = 0;
    bool allow_faults = false;
};

/// One write a line, so that lines of several processes stay whole. A reader that does not keep up
/// loses lines, not this program its time.
class Log {
public:
    explicit Log(int descriptor) : descriptor_(descriptor) {
        if (descriptor != STDERR_FILENO)
            fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK);
    }

    void operator()(LogLevel level, const std::string& message) const {
        static constexpr const char* names[] = {"DEBUG1", "LOG", "WARNING"};
        std::string line = std::string(names[static_cast<int>(level)]) + ' ' + message;
        std::replace(line.begin(), line.end(), '\n', ' ');
        line.resize(std::min<std::size_t>(line.size(), PIPE_BUF - 1));
        line += '\n';
        [[maybe_unused]] const auto written = write(descriptor_, line.data(), line.size());
    }

private:
    int descriptor_;
};

template <class T>
bool parse_number(const char* text, T& value) {
    const char* const end = text + std::strlen(text);
    const auto [stopped, error] = std::from_chars(text, end, value);
    return error == std::errc() && stopped == end && text != end;
}

[[noreturn]] void refuse_usage(const std::string& message) {
    std::fprintf(stderr, "gputextd: %s\nTry gputextd --help.\n", message.c_str());
    std::exit(kWrongUsage);
}

Options parse_options(int count, char** arguments) {
    enum {
        socket = 1,
        supervisor,
        parent,
        log,
        memory,
        resident,
        threads,
        fakes,
        faults,
        version,
        help
    };
    const option known[] = {{"socket", required_argument, nullptr, socket},
                            {"supervisor-fd", required_argument, nullptr, supervisor},
                            {"parent-pid", required_argument, nullptr, parent},
                            {"log-fd", required_argument, nullptr, log},
                            {"memory-limit", required_argument, nullptr, memory},
                            {"resident-memory", required_argument, nullptr, resident},
                            {"threads", required_argument, nullptr, threads},
                            {"fake-devices", required_argument, nullptr, fakes},
                            {"allow-faults", no_argument, nullptr, faults},
                            {"version", no_argument, nullptr, version},
                            {"help", no_argument, nullptr, help},
                            {nullptr, 0, nullptr, 0}};
    Options options;
    int index = 0;
    const auto number = [&](auto& value) {
        if (!parse_number(optarg, value))
            refuse_usage(std::string("--") + known[index].name + " needs a number");
    };
    for (int which; (which = getopt_long(count, arguments, "", known, &index)) != -1;) {
        if (which == socket) options.socket = optarg;
        if (which == supervisor) number(options.supervisor);
        if (which == parent) number(options.parent);
        if (which == log) number(options.log);
        if (which == memory) number(options.memory_limit);
        if (which == resident) number(options.resident_memory);
        if (which == threads) number(options.threads);
        if (which == fakes) number(options.fake_devices);
        if (which == faults) options.allow_faults = true;
        if (which == version) {
            std::printf("gputextd %s, protocol %d\n", GPUTEXT_RELEASE, kProtocolVersion);
            std::exit(kEnded);
        }
        if (which == help) {
            std::fputs(kHelp, stdout);
            std::exit(kEnded);
        }
        if (which == '?') std::exit(kWrongUsage);
    }
    if (optind < count) refuse_usage(std::string("unexpected argument ") + arguments[optind]);
    if (options.socket.empty()) refuse_usage("--socket is missing");
    if (options.fake_devices > kMaxDevices) refuse_usage("too many fake devices");
    return options;
}

/// Dies with its parent by a signal that cannot wait, because nobody is left to wait for it. False
/// when the parent has died already.
bool die_with_parent(pid_t parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    return getppid() == parent;
}

/// A descriptor that is readable when the process was told to end. All threads that come later
/// have these signals blocked, and SIGPIPE too: a reader that went away is an error code.
int block_signals() {
    sigset_t ending;
    sigemptyset(&ending);
    sigaddset(&ending, SIGTERM);
    sigaddset(&ending, SIGINT);
    sigset_t blocked = ending;
    sigaddset(&blocked, SIGPIPE);
    sigaddset(&blocked, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &blocked, nullptr);
    return signalfd(-1, &ending, SFD_CLOEXEC | SFD_NONBLOCK);
}

/// A connection takes a descriptor, a waiting job as many more as its input has files or parts of
/// files, and so do values that are kept.
void raise_descriptor_limit() {
    rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

/// The fake ones that were asked for, or else the GPUs of the host.
void find_devices(const Options& options, DaemonOptions& daemon) {
    if (options.fake_devices > 0)
        NearDuplicateParts::least_of_signatures = NearDuplicateParts::least;
    for (unsigned i = 0; i < options.fake_devices; ++i)
        daemon.devices.push_back(std::make_unique<FakeDevice>(i));
    if (!daemon.devices.empty()) return;
#ifdef GPUTEXT_CUDA
    CudaDevices found = cuda_devices(daemon.resident_ranges, options.memory_limit);
    daemon.devices = std::move(found.devices);
    daemon.why_no_devices = std::move(found.why_none);
#else
    daemon.why_no_devices = "gputextd was built without support for NVIDIA GPUs";
#endif
}

DaemonOptions daemon_options(const Options& options, const Log& log) {
    DaemonOptions daemon;
    daemon.socket_path = options.socket;
    daemon.release = GPUTEXT_RELEASE;
    daemon.memory_limit = options.memory_limit;
    daemon.allow_faults = options.allow_faults;
    daemon.resident_memory = options.resident_memory;
    daemon.resident_ranges = std::make_shared<ResidentRanges>();
    daemon.log = log;
    find_devices(options, daemon);
    const auto devices = std::max<unsigned>(1, static_cast<unsigned>(daemon.devices.size()));
    daemon.host_threads =
        options.threads != 0 ? options.threads : std::max(1u, usable_processors() / devices);
    return daemon;
}

int exit_code(DaemonEnd end) {
    if (end == DaemonEnd::told) return kEnded;
    return end == DaemonEnd::device_lost ? kDeviceLost : kOutOfMemory;
}

int serve(const Options& options, const Log& log, int signals) {
    DaemonOptions daemon = daemon_options(options, log);
    const std::string devices = std::to_string(daemon.devices.size());
    const std::string why_none = daemon.why_no_devices;
    auto server = DaemonServer::start(std::move(daemon));
    if (!server.ok()) {
        log(LogLevel::warning, "gputextd could not start: " + server.status().message());
        return kCouldNotStart;
    }
    log(LogLevel::log, "gputextd is ready, number of devices: " + devices +
                           (why_none.empty() ? "" : " (" + why_none + ")"));
    std::vector<int> told_to_end{signals};
    if (options.supervisor >= 0) told_to_end.push_back(options.supervisor);
    const DaemonEnd end = (*server)->run(told_to_end);
    const int code = exit_code(end);
    log(code == kEnded ? LogLevel::log : LogLevel::warning,
        "gputextd ends, exit code " + std::to_string(code));
    if (!(*server)->stop_devices(kPatience)) {
        log(LogLevel::warning, "gputextd leaves a device that does not stop");
        _exit(code);
    }
    return code;
}

int run(int count, char** arguments) {
    const Options options = parse_options(count, arguments);
    if (options.parent != 0 && !die_with_parent(options.parent)) return kEnded;
    const int signals = block_signals();
    for (const int inherited : {options.supervisor, options.log})
        if (inherited > STDERR_FILENO) fcntl(inherited, F_SETFD, FD_CLOEXEC);
    raise_descriptor_limit();
    const Log log(options.log);
    try {
        return serve(options, log, signals);
    } catch (const std::exception& error) {
        log(LogLevel::warning, std::string("gputextd failed: ") + error.what());
        return kCouldNotStart;
    }
}

}  // namespace
}  // namespace gputext

int main(int count, char** arguments) {
    return gputext::run(count, arguments);
}
