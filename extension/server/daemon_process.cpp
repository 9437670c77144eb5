#include "extension/server/daemon_process.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <initializer_list>

#include "extension/server/shared_state.hpp"

namespace gputext {
namespace {

// Where the child finds its pipes.
constexpr int kLifelineInChild = 3;
constexpr int kLogInChild = 4;
constexpr int kFirstUnneeded = 5;

/// Between 0, as the server's processes have it, and 1000.
constexpr char kKillFirst[] = "500";

/// The program's command line, ready before the process is forked: a child of this process may do
/// little more than to execute another program.
struct CommandLine {
    char program[MAXPGPATH];
    char socket[64], parent[48], fakes[48], resident[48];
    char lifeline[32], log[32];
    char faults[32] = "--allow-faults";
    char* arguments[9];
    char failure[MAXPGPATH + 128];  // to log when it cannot be run
};

/// The directory that this library was loaded from has gputextd, too. A package with kernels for
/// GPUs puts a second program beside it, which is preferred. One that cannot be executed is not
/// passed over: its error says more.
void find_program(char (&program)[MAXPGPATH]) {
    char directory[MAXPGPATH];
    if (!find_module(directory))
        ereport(ERROR, (errmsg("could not find the directory of gputext's library")));
    get_parent_directory(directory);
    join_path_components(program, directory, "gputextd-cuda");
    if (access(program, F_OK) != 0) join_path_components(program, directory, "gputextd");
}

void fill(CommandLine& line, const DaemonSettings& settings) {
    find_program(line.program);
    snprintf(line.socket, sizeof line.socket, "--socket=%s", kDaemonSocket);
    snprintf(line.lifeline, sizeof line.lifeline, "--supervisor-fd=%d", kLifelineInChild);
    snprintf(line.log, sizeof line.log, "--log-fd=%d", kLogInChild);
    snprintf(line.parent, sizeof line.parent, "--parent-pid=%d", static_cast<int>(getpid()));
    snprintf(line.fakes, sizeof line.fakes, "--fake-devices=%d", settings.fake_devices);
    snprintf(line.resident, sizeof line.resident, "--resident-memory=%llu",
             static_cast<unsigned long long>(settings.resident_memory));
    int count = 0;
    for (char* argument :
         {line.program, line.socket, line.lifeline, line.log, line.parent, line.resident})
        line.arguments[count++] = argument;
    if (settings.fake_devices > 0) line.arguments[count++] = line.fakes;
    if (settings.allow_faults) line.arguments[count++] = line.faults;
    line.arguments[count] = nullptr;
    snprintf(line.failure, sizeof line.failure,
             "WARNING gputextd could not be run: is \"%s\" installed and executable?\n",
             line.program);
}

void make_pipe(int (&ends)[2]) {
    if (pipe2(ends, O_CLOEXEC) != 0)
        ereport(ERROR, (errcode_for_file_access(), errmsg("could not make a pipe: %m")));
}

void close_if_open(int& descriptor) {
    if (descriptor >= 0) close(descriptor);
    descriptor = -1;
}

// ---- In the child: nothing that is not safe in a signal handler ----

/// Sets all signals to the default action (all zeros), by the kernel's own call: glibc keeps two
/// signals to itself, which the server may have been started to ignore.
void reset_signals() {
    constexpr std::uint64_t by_default[8] = {};
    for (int number = 1; number < NSIG; ++number)
        syscall(SYS_rt_sigaction, number, by_default, nullptr, sizeof(std::uint64_t));
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
}

void be_killed_first() {
    const int file = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
    if (file < 0) return;
    [[maybe_unused]] const auto written = write(file, kKillFirst, sizeof kKillFirst - 1);
    close(file);
}

/// Also where the kernel is older than the call, or refuses it as some containers do.
void close_from(int first) {
    if (syscall(SYS_close_range, first, ~0u, 0) == 0) return;
    const long end = sysconf(_SC_OPEN_MAX);
    for (int descriptor = first; descriptor < end; ++descriptor) close(descriptor);
}

/// Both pipes at their places, which they may occupy crosswise before.
bool arrange_descriptors(int lifeline, int log) {
    const int nothing = open("/dev/null", O_RDWR);
    lifeline = fcntl(lifeline, F_DUPFD, kFirstUnneeded);
    log = fcntl(log, F_DUPFD, kFirstUnneeded);
    const bool arranged = dup2(nothing, STDIN_FILENO) >= 0 && dup2(nothing, STDOUT_FILENO) >= 0 &&
                          dup2(lifeline, kLifelineInChild) >= 0 && dup2(log, kLogInChild) >= 0;
    close_from(kFirstUnneeded);
    return arranged;
}

[[noreturn]] void become_daemon(const CommandLine& line, int lifeline, int log) {
    // The postmaster's signals go to whole groups of processes.
    setsid();
    be_killed_first();
    if (arrange_descriptors(lifeline, log)) {
        reset_signals();
        execv(line.program, line.arguments);
    }
    [[maybe_unused]] const auto written = write(kLogInChild, line.failure, strlen(line.failure));
    _exit(kCannotRun);
}

}  // namespace

FileIdentity daemon_program() {
    char program[MAXPGPATH];
    find_program(program);
    return access(program, X_OK) == 0 ? identity_of(program) : FileIdentity();
}

DaemonProcess start_daemon_process(const DaemonSettings& settings) {
    CommandLine line;
    fill(line, settings);
    int lifeline[2];
    int log[2];
    make_pipe(lifeline);
    make_pipe(log);
    // No handler of this process may run in the child.
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &before);
    const pid_t pid = fork();
    if (pid == 0) become_daemon(line, lifeline[0], log[1]);
    sigprocmask(SIG_SETMASK, &before, nullptr);
    close(lifeline[0]);
    close(log[1]);
    DaemonProcess process{pid, log[0], lifeline[1]};
    if (pid < 0) {
        forget(process);
        ereport(ERROR, (errmsg("could not start a process for gputextd: %m")));
    }
    fcntl(process.log, F_SETFL, O_NONBLOCK);
    return process;
}

void ask_to_end(DaemonProcess& process) {
    close_if_open(process.lifeline);
}

void forget(DaemonProcess& process) {
    close_if_open(process.lifeline);
    close_if_open(process.log);
    process.pid = 0;
}

// ---- Its log ----

namespace {

struct Level {
    const char* prefix;
    int level;
};

constexpr Level kLevels[] = {{"DEBUG1 ", DEBUG1}, {"LOG ", LOG}, {"WARNING ", WARNING}};

}  // namespace

bool DaemonLog::forward(int descriptor) {
    for (;;) {
        const ssize_t count = read(descriptor, buffer_ + used_, sizeof buffer_ - 1 - used_);
        if (count == 0) return false;
        if (count < 0) return errno == EAGAIN || errno == EINTR;
        used_ += static_cast<std::size_t>(count);
        log_lines();
    }
}

void DaemonLog::log_lines() {
    std::size_t begin = 0;
    for (std::size_t at = 0; at < used_; ++at) {
        if (buffer_[at] != '\n') continue;
        buffer_[at] = '\0';
        log_line(buffer_ + begin);
        begin = at + 1;
    }
    used_ -= begin;
    memmove(buffer_, buffer_ + begin, used_);
    if (used_ < sizeof buffer_ - 1) return;
    buffer_[used_] = '\0';  // not a line of gputextd's
    log_line(buffer_);
    used_ = 0;
}

/// What has no level came from a library's own messages.
void DaemonLog::log_line(char* line) {
    int level = LOG;
    for (const Level& known : kLevels) {
        const std::size_t length = strlen(known.prefix);
        if (strncmp(line, known.prefix, length) != 0) continue;
        level = known.level;
        line += length;
        break;
    }
    for (char* c = line; *c != '\0'; ++c)
        if (*c < ' ' || *c > '~') *c = '?';  // whatever the server's encoding is
    if (level == WARNING) strlcpy(last_warning_, line, sizeof last_warning_);
    ereport(level, (errmsg_internal("%s", line)));
}

}  // namespace gputext
