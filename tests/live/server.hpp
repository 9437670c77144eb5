// tests/live/server.hpp - sessions of a running server, seen as a client and through /proc
//
// The environment leads to the server (live_test.hpp). Whoever runs the tests must be able to read
// /proc/PID/fd of its processes: be root or the server's user.

#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <pqxx/pqxx>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace gputext::live {

using Clock = std::chrono::steady_clock;
using Milliseconds = std::chrono::duration<double, std::milli>;
using namespace std::chrono_literals;

/// As libpq reads it; what it leaves out, the environment says.
struct ConnectionString {
    std::string text;
};

/// A session. One statement at a time, each in a transaction of its own unless BEGIN is run.
class Session {
public:
    /// Connects as `role`, or as PGUSER says.
    explicit Session(const std::string& role = "")
        : Session(ConnectionString{role.empty() ? "" : "user=" + role}) {}

    explicit Session(const ConnectionString& where) : connection_(where.text), quiet_(connection_) {
        pid_ = connection_.backendpid();
        rows("SET gputext.device = cpu");  // what is looked at in /proc is the session's own
        rows("SET gputext.cpu_threads = 2");
        rows("SET client_min_messages = warning");
        rows("SET statement_timeout = '60s'");  // where a cancel is lost, the test goes on
    }

    int pid() const { return pid_; }

    pqxx::result rows(const std::string& sql) {
        return pqxx::nontransaction(connection_).exec(sql);
    }

    /// The first column of the first row.
    std::string value(const std::string& sql) {
        const pqxx::result result = rows(sql);
        if (result.empty()) throw std::runtime_error("no row: " + sql);
        return result[0][0].is_null() ? "NULL" : result[0][0].c_str();
    }

    /// All rows, one a line, columns between "|".
    std::string table(const std::string& sql) {
        std::string text;
        for (const auto& row : rows(sql)) {
            const char* separator = "";
            for (const auto& field : row) {
                text += separator + std::string(field.c_str());
                separator = "|";
            }
            text += '\n';
        }
        return text;
    }

    /// The SQLSTATE of the statement's error; "ok" if it has none, "gone" if the session ended.
    std::string sqlstate(const std::string& sql) {
        message_.clear();
        try {
            rows(sql);
            return "ok";
        } catch (const pqxx::insufficient_privilege& error) {
            message_ = error.what();
            return "42501";  // which libpqxx 6 forgets here
        } catch (const pqxx::sql_error& error) {
            message_ = error.what();
            return std::string(error.sqlstate());
        } catch (const pqxx::broken_connection& error) {
            message_ = error.what();
            return "gone";
        }
    }
    /// Message of the error of the last sqlstate().
    const std::string& message() const { return message_; }

private:
    pqxx::connection connection_;
    pqxx::quiet_errorhandler quiet_;
    int pid_ = 0;
    std::string message_;
};

/// A statement running in a session meanwhile. A Session here is one or has a sqlstate(), too.
class Running {
public:
    template <class AnySession>
    Running(AnySession& session, const std::string& sql)
        : begin_(Clock::now()), thread_([this, &session, sql] {
              try {
                  state_ = session.sqlstate(sql);
              } catch (const std::exception& error) {
                  state_ = error.what();
              }
              end_ = Clock::now();
              done_ = true;
          }) {}
    ~Running() { wait(); }

    bool done() const { return done_; }
    /// The SQLSTATE, or "ok" or "gone", after its end.
    const std::string& wait() {
        if (thread_.joinable()) thread_.join();
        return state_;
    }
    Clock::time_point begin() const { return begin_; }
    Clock::time_point end() {
        wait();
        return end_;
    }

private:
    Clock::time_point begin_, end_;
    std::string state_;
    std::atomic<bool> done_{false};
    std::thread thread_;
};

/// Polls; false when it never came true.
inline bool eventually(const std::function<bool()>& condition, Clock::duration most = 30s) {
    const auto end = Clock::now() + most;
    while (!condition()) {
        if (Clock::now() > end) return false;
        std::this_thread::sleep_for(500us);
    }
    return true;
}

/// Promotes the session's standby. A statement that waits for it would have a snapshot, for which
/// what is still to be replayed may wait in turn, until the statement is cancelled.
inline bool promote(Session& session) {
    session.rows("SELECT pg_promote(false)");
    return eventually([&] { return session.value("SELECT pg_is_in_recovery()") == "f"; }, 60s);
}

/// Whether a session runs a statement. A cancel that comes before finds nothing to cancel.
inline bool is_active(Session& other, int pid) {
    return other.value("SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND pid = " +
                       std::to_string(pid)) == "1";
}

// ---- What the system says about a session's process ----

inline std::filesystem::path proc(int pid) {
    return "/proc/" + std::to_string(pid);
}

inline std::size_t count_entries(const std::filesystem::path& directory) {
    std::error_code error;
    std::size_t count = 0;
    // Entries come and go while they are counted.
    for (std::filesystem::directory_iterator it(directory, error), end; !error && it != end;
         it.increment(error))
        ++count;
    return count;
}

inline std::size_t threads_of(int pid) {
    return count_entries(proc(pid) / "task");
}

/// What the descriptors that are not PostgreSQL's own lead to.
inline std::vector<std::string> foreign_descriptors(int pid) {
    std::vector<std::string> found;
    std::error_code error;
    std::filesystem::directory_iterator it(proc(pid) / "fd", error);
    if (error)
        throw std::runtime_error(
            "cannot read /proc/PID/fd of the server's processes: run this "
            "test as root or as the server's user");
    for (const std::filesystem::directory_iterator end; !error && it != end; it.increment(error)) {
        std::error_code gone;
        const std::string target = std::filesystem::read_symlink(it->path(), gone);
        if (target.find("memfd:") != std::string::npos ||
            target.find("[eventfd]") != std::string::npos ||
            target.find("pgsql_tmp") != std::string::npos)
            found.push_back(target);
    }
    return found;
}

inline bool has_memory_file(int pid) {
    for (const std::string& target : foreign_descriptors(pid))
        if (target.find("memfd:gputext") != std::string::npos) return true;
    return false;
}

/// Kilobytes of memory that the process holds.
inline long resident_of(int pid) {
    std::ifstream status(proc(pid) / "status");
    for (std::string line; std::getline(status, line);)
        if (line.rfind("VmRSS:", 0) == 0) return std::stol(line.substr(6));
    return 0;
}

inline std::filesystem::path data_directory() {
    const char* directory = std::getenv("GPUTEXT_DATA_DIRECTORY");
    return directory == nullptr ? "" : directory;
}

/// Names of temporary files, of all sessions or of one.
inline std::vector<std::string> temporary_files(int pid = 0) {
    const std::string wanted = pid == 0 ? "pgsql_tmp" : "pgsql_tmp" + std::to_string(pid) + ".";
    std::vector<std::string> found;
    std::error_code error;
    for (std::filesystem::directory_iterator it(data_directory() / "base/pgsql_tmp", error), end;
         !error && it != end; it.increment(error))
        if (it->path().filename().string().rfind(wanted, 0) == 0)
            found.push_back(it->path().filename());
    return found;
}

/// A session with nothing left over from what it ran: threads, descriptors, temporary files.
inline void expect_nothing_left(int pid, const std::string& after) {
    EXPECT_EQ(threads_of(pid), 1u) << "after " << after;
    EXPECT_EQ(foreign_descriptors(pid), std::vector<std::string>()) << "after " << after;
    EXPECT_EQ(temporary_files(pid), std::vector<std::string>()) << "after " << after;
}

}  // namespace gputext::live
