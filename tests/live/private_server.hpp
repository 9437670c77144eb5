// tests/live/private_server.hpp - private servers that a test may kill, and their gputextd
//
// They run from the programs in GPUTEXT_PG_BIN. PostgreSQL refuses to run as root: then they run as
// the user that GPUTEXT_DATA_DIRECTORY belongs to. A server goes with the process that made it. All
// programs share what is installed there, so that none may change it.

#pragma once

#include <fcntl.h>
#include <grp.h>
#include <libpq-fe.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>

#include "tests/live/server.hpp"

namespace gputext::live {

namespace fs = std::filesystem;

inline std::string environment(const char* name) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0')
        throw std::runtime_error(std::string(name) +
                                 " is not set: scripts/check sets it, and so does "
                                 "eval \"$(scripts/cluster env)\"");
    return value;
}

/// Whether gputextd is to use the machine's GPUs, and not devices without one.
inline bool on_real_gpus() {
    return std::getenv("GPUTEXT_TEST_GPU") != nullptr;
}

inline std::string contents(const fs::path& file) {
    std::ostringstream text;
    text << std::ifstream(file).rdbuf();
    return text.str();
}

/// The blocks of SQL of a page of the documentation that follow this mark, an HTML comment.
inline std::string marked_sql(const fs::path& page, const std::string& mark) {
    std::istringstream lines(contents(page));
    std::string found;
    bool marked = false, within = false;
    for (std::string line; std::getline(lines, line);) {
        if (line == "<!-- " + mark + " -->")
            marked = true;
        else if (marked && line == "```sql")
            within = true;
        else if (within && line == "```")
            marked = within = false;
        else if (within)
            found += line + '\n';
    }
    return found;
}

// ---- Processes ----

/// The state of a process as /proc has it: R runs, S sleeps, Z is a corpse; X when there is none.
inline char state_of(pid_t pid) {
    const std::string stat = contents(proc(pid) / "stat");
    const std::size_t name_end = stat.rfind(')');
    return name_end == std::string::npos ? 'X' : stat[name_end + 2];
}

inline bool asleep(pid_t pid) {
    return state_of(pid) == 'S';
}

/// Neither gone nor a corpse. Takes away the corpse of a server's orphan, which comes to this
/// process.
inline bool alive(pid_t pid) {
    const char state = state_of(pid);
    if (state != 'Z' && state != 'X') return true;
    // While it is not waited for, the next server takes it for one that runs.
    waitpid(pid, nullptr, WNOHANG);
    return false;
}

/// Never to a whole group of processes, as numbers that are none would have it.
inline void send_signal(pid_t pid, int number) {
    if (pid <= 0) throw std::runtime_error("there is no such process");
    kill(pid, number);
}

inline pid_t parent_of(pid_t pid) {
    const std::string stat = contents(proc(pid) / "stat");
    const std::size_t name_end = stat.rfind(')');
    return name_end == std::string::npos ? 0 : std::atoi(stat.c_str() + name_end + 4);
}

/// Processes that work in this directory and for which the condition holds.
inline std::vector<pid_t> processes_in(const fs::path& directory,
                                       const std::function<bool(pid_t)>& condition) {
    std::vector<pid_t> found;
    std::error_code error;
    for (fs::directory_iterator it("/proc", error), end; !error && it != end; it.increment(error)) {
        const pid_t pid = std::atoi(it->path().filename().c_str());
        std::error_code gone;
        if (pid > 0 && fs::read_symlink(it->path() / "cwd", gone) == directory && alive(pid) &&
            condition(pid))
            found.push_back(pid);
    }
    return found;
}

/// What its descriptors lead to.
inline std::vector<std::string> descriptors_of(pid_t pid) {
    std::vector<std::string> found;
    std::error_code error;
    for (fs::directory_iterator it(proc(pid) / "fd", error), end; !error && it != end;
         it.increment(error)) {
        std::error_code gone;
        found.push_back(fs::read_symlink(it->path(), gone));
    }
    return found;
}

inline std::size_t sockets_of(pid_t pid) {
    const auto all = descriptors_of(pid);
    return static_cast<std::size_t>(std::count_if(
        all.begin(), all.end(), [](const auto& name) { return name.rfind("socket:", 0) == 0; }));
}

/// Number of gputextd's sockets: the one it listens on, and its ends of connections. A driver has
/// others.
inline std::size_t daemon_sockets_of(pid_t pid) {
    std::istringstream lines(contents("/proc/net/unix"));
    std::vector<std::string> named;
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line);
        std::string number, count, protocol, flags, type, state, inode, path;
        words >> number >> count >> protocol >> flags >> type >> state >> inode >> path;
        if (path == "pgsql_tmp_gputext.sock") named.push_back("socket:[" + inode + "]");
    }
    const auto all = descriptors_of(pid);
    return static_cast<std::size_t>(std::count_if(all.begin(), all.end(), [&](const auto& name) {
        return std::find(named.begin(), named.end(), name) != named.end();
    }));
}

inline bool has_mapped_memory_file(pid_t pid) {
    return contents(proc(pid) / "maps").find("memfd:gputext") != std::string::npos;
}

// ---- The server ----

class PrivateServer {
public:
    /// A new database cluster. Lines of configuration may follow; not started yet.
    explicit PrivateServer(const std::string& configuration = "") : PrivateServer(Empty()) {
        run({bin() / "initdb", "-D", data(), "-U", "gputext", "-E", "UTF8", "--locale=C.UTF-8",
             "--auth-local=trust", "--auth-host=reject", "--no-sync"});
        configure(
            "listen_addresses = ''\nfsync = off\nautovacuum = off\nmax_connections = 120\n"
            "shared_buffers = 32MB\nlog_line_prefix = '%m [%p] '\nlog_checkpoints = off\n"
            "gputext.allow_faults = on\n");
        if (!on_real_gpus()) configure("gputext.fake_devices = 2\n");
        configure_socket();
        configure(configuration);
    }

    /// A standby of a server that runs, made by pg_basebackup, whose words are in log().
    static std::unique_ptr<PrivateServer> standby_of(const PrivateServer& primary) {
        std::unique_ptr<PrivateServer> standby(new PrivateServer(Empty()));
        standby->run({bin() / "pg_basebackup", "-D", standby->data(), "-d",
                      primary.connection().text, "-R", "--checkpoint=fast", "--no-sync"});
        standby->configure_socket();
        return standby;
    }

    ~PrivateServer() {
        if (pid_ > 0) {
            signal_server(SIGQUIT);
            if (!ended()) signal_server(SIGKILL);
            eventually([&] { return processes().empty(); });
        }
        std::error_code error;
        fs::remove_all(root_, error);
    }
    PrivateServer(const PrivateServer&) = delete;

    const fs::path& root() const { return root_; }
    fs::path data() const { return root_ / "data"; }
    ConnectionString connection(const std::string& database = "postgres") const {
        return {"host=" + root_.string() + " port=5432 user=gputext dbname=" + database};
    }
    /// All that the server and the programs before it have said.
    std::string log() const { return contents(root_ / "log"); }

    void configure(const std::string& lines) {
        std::ofstream(data() / "postgresql.conf", std::ios::app) << lines;
    }

    /// Returns when it takes connections.
    void start() {
        pid_ = spawn({program(), "-D", data()}, SIGQUIT);
        const std::string where = connection().text;
        const bool answers =
            eventually([&] { return !alive(pid_) || PQping(where.c_str()) == PQPING_OK; }, 60s);
        if (!answers || !alive(pid_)) throw std::runtime_error("no server: " + log());
    }
    bool running() const { return pid_ > 0 && alive(pid_); }
    pid_t postmaster() const { return pid_; }

    void signal_server(int number) const { send_signal(pid_, number); }
    /// Waits for it, and for all its processes.
    bool ended() const {
        return eventually([&] { return !alive(pid_) && processes().empty(); });
    }

    // ---- Its processes, by what they are called ----

    std::vector<pid_t> processes() const {
        return processes_in(data(), [](pid_t) { return true; });
    }
    std::vector<pid_t> daemons() const {
        return processes_in(data(), [](pid_t pid) {
            const std::string name = contents(proc(pid) / "comm");
            return name == "gputextd\n" || name == "gputextd-cuda\n";
        });
    }
    std::vector<pid_t> supervisors() const {
        return processes_in(data(), [this](pid_t pid) {
            return parent_of(pid) == pid_ &&
                   contents(proc(pid) / "cmdline").find("gputext supervisor") != std::string::npos;
        });
    }
    /// The only one, or 0.
    pid_t daemon() const { return only(daemons()); }
    pid_t supervisor() const { return only(supervisors()); }

    /// gputextd's files in the data directory.
    std::size_t daemon_files() const {
        std::size_t count = 0;
        for (const char* name : {"pgsql_tmp_gputext.sock", "pgsql_tmp_gputext.sock.lock"})
            count += fs::exists(fs::symlink_status(data() / name));
        return count;
    }

private:
    struct Empty {};
    struct User {
        uid_t uid;
        gid_t gid;
    };

    explicit PrivateServer(Empty) : user_(server_user()) {
        prctl(PR_SET_CHILD_SUBREAPER, 1);
        std::string name = fs::temp_directory_path() / "gputext-live-XXXXXX";
        if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary directory");
        root_ = fs::canonical(name);
        if (chown(root_.c_str(), user_.uid, user_.gid) != 0)
            throw std::runtime_error("cannot give " + name + " to the server's user");
    }

    static fs::path bin() { return environment("GPUTEXT_PG_BIN"); }
    /// Path of the program that starts a server: that of postgres, or GPUTEXT_SERVER_WRAPPER, whose
    /// program finds the path of postgres in GPUTEXT_POSTGRES.
    static std::string program() {
        const std::string postgres = bin() / "postgres";
        setenv("GPUTEXT_POSTGRES", postgres.c_str(), 1);
        const char* const wrapper = std::getenv("GPUTEXT_SERVER_WRAPPER");
        return wrapper == nullptr ? postgres : wrapper;
    }

    static User server_user() {
        if (geteuid() != 0) return {geteuid(), getegid()};
        struct stat found;
        if (stat(environment("GPUTEXT_DATA_DIRECTORY").c_str(), &found) != 0 || found.st_uid == 0)
            throw std::runtime_error("GPUTEXT_DATA_DIRECTORY belongs to no user for servers");
        return {found.st_uid, found.st_gid};
    }

    void configure_socket() {
        configure("port = 5432\nunix_socket_directories = '" + root_.string() + "'\n");
    }

    static pid_t only(const std::vector<pid_t>& pids) { return pids.size() == 1 ? pids[0] : 0; }

    /// As the server's user, its words appended to the log. It gets the signal when this thread's
    /// process dies; 0: none.
    pid_t spawn(const std::vector<std::string>& command, int with_parent) const {
        std::vector<char*> arguments;
        for (const std::string& argument : command)
            arguments.push_back(const_cast<char*>(argument.c_str()));
        arguments.push_back(nullptr);
        const std::string log = root_ / "log";
        const pid_t pid = fork();
        if (pid != 0) return pid;
        const bool is_user = geteuid() != 0 || (setgroups(1, &user_.gid) == 0 &&
                                                setgid(user_.gid) == 0 && setuid(user_.uid) == 0);
        const int words = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
        if (!is_user || words < 0 || chdir("/") != 0) _exit(1);
        dup2(open("/dev/null", O_RDONLY), STDIN_FILENO);
        dup2(words, STDOUT_FILENO);
        dup2(words, STDERR_FILENO);
        for (int descriptor = 3; descriptor < 256; ++descriptor) close(descriptor);
        setsid();
        prctl(PR_SET_PDEATHSIG, with_parent);
        execv(arguments[0], arguments.data());
        _exit(127);
    }

    void run(const std::vector<std::string>& command) const {
        int status = 0;
        const pid_t pid = spawn(command, 0);
        if (waitpid(pid, &status, 0) != pid || status != 0)
            throw std::runtime_error(command[0] + " failed: " + log());
    }

    User user_;
    fs::path root_;
    pid_t pid_ = 0;
};

}  // namespace gputext::live
