// How many threads statements compute on: each of them, and all sessions together, however they
// end.

#include <sched.h>

#include <numeric>

#include "tests/live/live_test.hpp"

namespace gputext::live {
namespace {

const std::string kLong = "SELECT count(*) FROM " + kFarDocuments;
const std::string kShort =
    "SELECT count(*) FROM near_duplicates($$SELECT i::bigint, md5((i / 2)::text) "
    "FROM generate_series(2, 2001) i$$)";
const std::string kShortAnswer = "1000";

constexpr std::size_t kHelpers = 10;
// A session's process has its own thread and the one that computes.
constexpr std::size_t kOwn = 2;

std::size_t processors_of(int pid) {
    cpu_set_t processors;
    if (sched_getaffinity(pid, sizeof processors, &processors) != 0)
        throw std::runtime_error("there is no such process");
    return static_cast<std::size_t>(CPU_COUNT(&processors));
}

class Threads : public LiveTest {
protected:
    void TearDown() override {
        if (changed_) {
            other().rows("ALTER SYSTEM RESET gputext.max_helper_threads");
            other().rows("SELECT pg_reload_conf()");
        }
        LiveTest::TearDown();
    }

    void set_helpers(std::size_t most) {
        changed_ = true;
        other().rows("SELECT edit_distance('a', 'b')");  // knows the settings from here on
        other().rows("ALTER SYSTEM SET gputext.max_helper_threads = " + std::to_string(most));
        other().rows("SELECT pg_reload_conf()");
        ASSERT_TRUE(eventually([&] {
            return other().value("SHOW gputext.max_helper_threads") == std::to_string(most);
        }));
    }

    std::unique_ptr<Session> greedy_session() {
        auto session = std::make_unique<Session>();
        session->rows("SET gputext.max_cpu_threads = 1024");
        session->rows("SET gputext.cpu_threads = 1024");
        return session;
    }

    void cancel(Session& session, Running& running) {
        other().rows("SELECT pg_cancel_backend(" + std::to_string(session.pid()) + ")");
        EXPECT_EQ(running.wait(), "57014") << session.message();
    }

    /// It gets all threads that there are for all sessions, so no other session has any.
    void expect_all_helpers_for_one(const std::string& after) {
        const auto session = greedy_session();
        Running running(*session, kLong);
        std::size_t most = 0;
        EXPECT_TRUE(eventually([&] {
            most = std::max(most, threads_of(session->pid()));
            return most == kOwn + kHelpers;
        })) << after
            << ": " << most << " threads";
        cancel(*session, running);
    }

private:
    bool changed_ = false;
};

TEST_F(Threads, OfAStatementAreAtMostTheProcessors) {
    const std::size_t processors = processors_of(session().pid());
    session().rows("SET gputext.cpu_threads = 1024");
    Running running(session(), kLong);
    ASSERT_TRUE(eventually([&] { return threads_of(session().pid()) > 1; }));
    for (int look = 0; look < 1000; ++look) ASSERT_LE(threads_of(session().pid()), 1 + processors);
    ASSERT_FALSE(running.done()) << session().message();
    cancel(session(), running);
}

TEST_F(Threads, OfAStatementAreAtMostWhatASuperuserSays) {
    const std::string role = new_role("user");
    Session user(role);
    user.rows("SELECT edit_distance('a', 'b')");
    EXPECT_EQ(user.sqlstate("SET gputext.max_cpu_threads = 64"), "42501");
    EXPECT_EQ(user.sqlstate("SET gputext.max_helper_threads = 64"), "55P02");
    // Also where the session does not know the setting yet.
    Session early(role);
    early.sqlstate("SET gputext.max_cpu_threads = 64");
    early.rows("SELECT edit_distance('a', 'b')");
    EXPECT_EQ(early.value("SHOW gputext.max_cpu_threads"), "0");

    set_helpers(100);
    session().rows("SET gputext.max_cpu_threads = 7");
    session().rows("SET gputext.cpu_threads = 1024");
    Running running(session(), kLong);
    std::size_t most = 0;
    for (int look = 0; look < 1000 || (most < 8 && !running.done()); ++look)
        most = std::max(most, threads_of(session().pid()));
    EXPECT_EQ(most, 1 + 7u);
    cancel(session(), running);
}

TEST_F(Threads, OfAllSessionsHaveAMaximum) {
    set_helpers(kHelpers);
    std::vector<std::unique_ptr<Session>> sessions;
    for (int i = 0; i < 4; ++i) sessions.push_back(greedy_session());
    const auto threads_of_all = [&] {
        return std::accumulate(
            sessions.begin(), sessions.end(), std::size_t{0},
            [](std::size_t sum, const auto& session) { return sum + threads_of(session->pid()); });
    };
    {
        std::vector<std::unique_ptr<Running>> running;
        for (const auto& session : sessions)
            running.push_back(std::make_unique<Running>(*session, kLong));
        // All of them compute, with helpers or without.
        ASSERT_TRUE(eventually([&] {
            EXPECT_LE(threads_of_all(), sessions.size() * kOwn + kHelpers);
            return std::all_of(sessions.begin(), sessions.end(), [](const auto& session) {
                return threads_of(session->pid()) >= kOwn;
            });
        }));
        for (int look = 0; look < 1000; ++look)
            ASSERT_LE(threads_of_all(), sessions.size() * kOwn + kHelpers);
        // New sessions and answers are there still.
        Session late;
        late.rows("SET gputext.cpu_threads = 1024");
        EXPECT_EQ(late.value(kShort), kShortAnswer);
        for (std::size_t i = 0; i < sessions.size(); ++i) cancel(*sessions[i], *running[i]);
    }
    expect_all_helpers_for_one("after cancels");

    Running terminated(*sessions[0], kLong);
    ASSERT_TRUE(eventually([&] { return threads_of(sessions[0]->pid()) >= kOwn + kHelpers; }));
    other().rows("SELECT pg_terminate_backend(" + std::to_string(sessions[0]->pid()) + ")");
    const std::string state = terminated.wait();
    EXPECT_TRUE(state == "57P01" || state == "gone") << state;
    expect_all_helpers_for_one("after a termination");

    {
        Running cancelled(*sessions[2],
                          "DO $do$BEGIN PERFORM * FROM " + kFarDocuments +
                              "; PERFORM pg_sleep(600); "
                              "EXCEPTION WHEN query_canceled THEN "
                              "PERFORM set_config('gputext_test.caught', 'yes', false); "
                              "END$do$");
        ASSERT_TRUE(eventually([&] { return threads_of(sessions[2]->pid()) >= kOwn + kHelpers; }));
        other().rows("SELECT pg_cancel_backend(" + std::to_string(sessions[2]->pid()) + ")");
        EXPECT_EQ(cancelled.wait(), "ok");
        EXPECT_EQ(sessions[2]->value("SHOW gputext_test.caught"), "yes");
    }
    expect_all_helpers_for_one("after a cancel that was caught");
}

TEST_F(Threads, OfAStatementCanBeItsOwnAlone) {
    set_helpers(0);
    const auto session = greedy_session();
    {
        Running running(*session, kLong);
        ASSERT_TRUE(eventually([&] { return threads_of(session->pid()) > 1; }));
        for (int look = 0; look < 1000; ++look) ASSERT_LE(threads_of(session->pid()), kOwn);
        cancel(*session, running);
    }
    EXPECT_EQ(session->value(kShort), kShortAnswer);
}

TEST_F(Threads, OfAStatementMayBecomeMoreMeanwhile) {
    set_helpers(kHelpers);
    const auto greedy = greedy_session(), reader = greedy_session();
    other().rows("CREATE EXTENSION pg_trgm");
    {
        Running holding(*greedy, kLong);
        ASSERT_TRUE(eventually([&] { return threads_of(greedy->pid()) >= kOwn + kHelpers; }));
        // Threads read these rows twice, and the session asks pg_trgm for some of them in between.
        Running reading(*reader,
                        "SELECT count(*) FROM gpu_knn($$SELECT 1, 'a'$$, "
                        "$$SELECT i, CASE WHEN i % 8 = 0 THEN repeat(md5(i::text) || 'ä', 50) "
                        "ELSE md5(i::text) END FROM generate_series(1, 66000) i$$, k => 1, "
                        "metric => 'trigram')");
        EXPECT_TRUE(eventually([&] {
            return other().value("SELECT count(*) FROM gputext_activity WHERE done > 0 AND "
                                 "phase = 'reading rows' AND total = 66000 AND pid = " +
                                 std::to_string(reader->pid())) == "1";
        })) << other().table("TABLE gputext_activity");
        cancel(*greedy, holding);
        EXPECT_EQ(reading.wait(), "ok") << reader->message();
    }
    other().rows("DROP EXTENSION pg_trgm");
}

}  // namespace
}  // namespace gputext::live
