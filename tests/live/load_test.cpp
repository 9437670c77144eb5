// Many sessions at once, and how soon a cancel arrives during a job on a device.

#include <algorithm>
#include <cstdio>

#include "tests/live/daemon_test.hpp"
#include "tests/live/plain_session.hpp"

namespace gputext::live {
namespace {

constexpr int kSessions = 100;
constexpr double kMost = 200;  // milliseconds

class Load : public DaemonTest {
protected:
    /// A job of each of them at the same time.
    void expect_all_answered() {
        const long before = counter("gpu_jobs");
        std::vector<std::unique_ptr<Session>> sessions;
        for (int i = 0; i < kSessions; ++i) {
            sessions.push_back(std::make_unique<Session>(server().connection()));
            sessions.back()->rows("SET gputext.device = gpu");
        }
        std::vector<std::string> answers(kSessions);
        std::vector<std::thread> threads;
        for (int i = 0; i < kSessions; ++i)
            threads.emplace_back([&, i] {
                try {
                    answers[i] = sessions[i]->value(job(i));
                } catch (const std::exception& error) {
                    answers[i] = error.what();
                }
            });
        watch_daemons(before);
        for (std::thread& thread : threads) thread.join();
        for (int i = 0; i < kSessions; ++i) EXPECT_EQ(answers[i], std::to_string(200 + i));
        EXPECT_EQ(counter("gpu_jobs"), before + kSessions);
    }

private:
    /// Another one for each, with an answer of its own.
    static std::string job(int number) {
        return "SELECT count(*) FROM near_duplicates($$SELECT i::bigint, md5((i / 2)::text) "
               "FROM generate_series(2, " +
               std::to_string(401 + 2 * number) + ") i$$)";
    }

    /// One process at most has the devices, as long as jobs are running.
    void watch_daemons(long before) {
        EXPECT_TRUE(eventually(
            [&] {
                const std::size_t daemons = server().daemons().size();
                EXPECT_LE(daemons, 1u);
                EXPECT_LE(server().supervisors().size(), 1u);
                return daemons > 1 || counter("gpu_jobs") >= before + kSessions;
            },
            60s));
    }
};

TEST_F(Load, OfAHundredSessions) {
    expect_all_answered();
    expect_recovered();
}

// All of them want a supervisor, and one gets there.
TEST_F(Load, OfAHundredSessionsWithoutASupervisor) {
    end_supervisor();
    expect_all_answered();
    expect_recovered();
}

// ---- Cancel ----

class Latency : public DaemonTest {
protected:
    /// Cancels both in the same moment, and waits for both errors.
    void cancel_one(PlainSession& plain, Session& control, int number) {
        Running sleep(control, "SELECT pg_sleep(600)");
        Running statement(plain, statement_);
        ASSERT_TRUE(eventually([&] { return statement.done() || is_on_device(plain.pid()); }));
        std::this_thread::sleep_for(std::chrono::microseconds(number % 20 * 5000));
        const auto begin = Clock::now();
        other().rows("SELECT pg_cancel_backend(" + std::to_string(plain.pid()) +
                     "), pg_cancel_backend(" + std::to_string(control.pid()) + ")");
        ASSERT_EQ(statement.wait(), "57014") << plain.message();
        ASSERT_EQ(sleep.wait(), "57014");
        latencies_.push_back(Milliseconds(plain.arrived() - begin).count());
        controls_.push_back(Milliseconds(sleep.end() - begin).count());
    }

    bool is_on_device(int pid) {
        return other().value(
                   "SELECT count(*) FROM gputext_activity WHERE device IS NOT NULL AND "
                   "pid = " +
                   std::to_string(pid)) == "1";
    }

    /// Documents that are the same one turned round, so that every pair has to be verified: twice
    /// as many as long as that takes a device less than a second.
    void find_long_statement() {
        for (long documents = 1000;; documents *= 2) {
            statement_ =
                "SELECT count(*) FROM near_duplicates($$SELECT i::bigint, substr(text, i) || "
                "left(text, i - 1) FROM generate_series(1, " +
                std::to_string(documents) +
                ") i, (SELECT string_agg(md5(n::text), '') FROM generate_series(1, 320) n) t(text)"
                "$$, mode => 'exact')";
            set("statement_timeout = '60s'");
            Running running(session(), statement_);
            ASSERT_TRUE(
                eventually([&] { return running.done() || is_on_device(session().pid()); }));
            std::this_thread::sleep_for(1s);
            if (running.done()) continue;
            other().rows("SELECT pg_cancel_backend(" + std::to_string(session().pid()) + ")");
            ASSERT_EQ(running.wait(), "57014");
            return;
        }
    }

    static double percentile(std::vector<double> values, int percent) {
        std::sort(values.begin(), values.end());
        return values[(values.size() - 1) * static_cast<std::size_t>(percent) / 100];
    }

    std::vector<double> latencies_, controls_;

private:
    std::string statement_;
};

// What the machine takes to end a pg_sleep that is cancelled at the same moment is its own.
TEST_F(Latency, OfACancel) {
    const char* wanted = std::getenv("GPUTEXT_CANCEL_TRIES");
    const int tries = wanted == nullptr ? 40 : std::atoi(wanted);
    find_long_statement();
    PlainSession plain(server().connection());
    plain.run("SET gputext.device = gpu");
    Session control(server().connection());
    for (int i = 0; i < tries && !HasFatalFailure(); ++i) cancel_one(plain, control, i);
    ASSERT_EQ(latencies_.size(), static_cast<std::size_t>(tries));
    std::printf(
        "             %d cancels: median %.1f ms, 99th percentile %.1f ms, slowest %.1f ms; "
        "of pg_sleep: 99th percentile %.1f ms\n",
        tries, percentile(latencies_, 50), percentile(latencies_, 99), percentile(latencies_, 100),
        percentile(controls_, 99));
    EXPECT_LT(percentile(latencies_, 99), kMost + percentile(controls_, 99));
    expect_recovered();
}

}  // namespace
}  // namespace gputext::live
