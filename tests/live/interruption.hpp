// tests/live/interruption.hpp - how soon a statement ends that is interrupted

#pragma once

#include <algorithm>

#include "tests/live/server.hpp"

namespace gputext::live {

/// A pg_sleep of a session of its own. It ends at the same moment as a statement, for the same
/// reason, and so says what the machine takes for that, busy or not.
class Control {
public:
    /// Begins to sleep. With a timeout, which is that of a statement that begins now.
    explicit Control(const ConnectionString& where = {}, std::chrono::milliseconds timeout = 60s)
        : session_(with_timeout(where, timeout)), sleep_(*session_, "SELECT pg_sleep(600)") {}

    /// Has `from` evaluate an expression of SQL that interrupts the statement. Returns the
    /// milliseconds until its end, less those until the end of the pg_sleep.
    double interrupt(Session& from, Running& statement, const std::string& interruption) {
        const std::string pid = std::to_string(session_->pid());
        EXPECT_TRUE(eventually([&] { return is_active(from, session_->pid()); }));
        const auto begin = Clock::now();
        from.rows("SELECT pg_cancel_backend(" + pid + "), " + interruption);
        return after(begin, statement) - after(begin, sleep_);
    }
    double cancel(Session& from, Running& statement, int pid) {
        return interrupt(from, statement, "pg_cancel_backend(" + std::to_string(pid) + ")");
    }
    /// The same of a timeout, which both have.
    double time_out(Running& statement) {
        return after(statement.begin(), statement) - after(sleep_.begin(), sleep_);
    }

private:
    static std::unique_ptr<Session> with_timeout(const ConnectionString& where,
                                                 std::chrono::milliseconds timeout) {
        auto session = std::make_unique<Session>(where);
        session->rows("SET statement_timeout = " + std::to_string(timeout.count()));
        return session;
    }
    static double after(Clock::time_point begin, Running& statement) {
        return std::max(0.0, Milliseconds(statement.end() - begin).count());
    }

    std::unique_ptr<Session> session_;
    Running sleep_;
};

/// That so many milliseconds at most have been found, `late` being called again where they were
/// more: the machine may stall, and what is late by itself is late each time.
inline void expect_in_time(const std::function<double()>& late, double most = 200) {
    double least = late();
    for (int i = 1; i < 3 && least > most; ++i) least = std::min(least, late());
    EXPECT_LE(least, most) << "milliseconds after its interruption";
}

}  // namespace gputext::live
