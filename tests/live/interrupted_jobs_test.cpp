// A statement with a job on a device is cancelled, times out, is terminated, or loses its client:
// gputextd drops the job, and nothing is left in any process.

#include "tests/live/daemon_test.hpp"

namespace gputext::live {
namespace {

/// Where a job is when its statement ends.
struct Stage {
    const char* name;
    const char* fault;
    const char* phase;  // that gputext_activity shows then
};

void PrintTo(const Stage& stage, std::ostream* out) {
    *out << stage.name;
}

const Stage kStages[] = {
    {"Computing", "in_job:slow:100000", "being slow"},
    {"ReadingTheRequest", "before_job:slow:100000", "being slow"},
    {"Replying", "before_reply:slow:100000", "being slow"},
    {"Hanging", "in_job:hang", "hanging"},
};

class Interrupted : public DaemonTest, public ::testing::WithParamInterface<Stage> {
protected:
    void SetUp() override {
        DaemonTest::SetUp();
        if (!HasFailure()) inject(GetParam().fault);
    }
    bool reached() { return reaches(session().pid(), GetParam().phase); }
    std::string signal_session(const char* function) {
        return std::string("SELECT ") + function + "(" + std::to_string(session().pid()) + ")";
    }
    void replace_session() {
        const int ended = session().pid();
        EXPECT_TRUE(eventually([&] { return !alive(ended); }));
        connect_session();
    }
};

TEST_P(Interrupted, ByACancel) {
    const long cancelled = counter("cancelled");
    Running running(session(), kJob);
    ASSERT_TRUE(reached());
    other().rows(signal_session("pg_cancel_backend"));
    EXPECT_EQ(running.wait(), "57014");
    EXPECT_NE(session().message().find("user request"), std::string::npos) << session().message();
    EXPECT_EQ(counter("cancelled"), cancelled + 1);
    expect_recovered();
}

TEST_P(Interrupted, ByATimeout) {
    set("statement_timeout = '700ms'");  // to come there takes less, or the machine is busy
    Running running(session(), kJob);
    EXPECT_EQ(running.wait(), "57014");
    EXPECT_NE(session().message().find("statement timeout"), std::string::npos)
        << session().message();
    set("statement_timeout = '60s'");
    expect_recovered();
}

TEST_P(Interrupted, ByATermination) {
    Running running(session(), kJob);
    ASSERT_TRUE(reached());
    other().rows(signal_session("pg_terminate_backend"));
    const std::string state = running.wait();
    EXPECT_TRUE(state == "57P01" || state == "gone") << state;
    replace_session();
    expect_recovered();
}

TEST_P(Interrupted, ByItsClientsEnd) {
    PGconn* client = PQconnectdb(server().connection().text.c_str());
    ASSERT_EQ(PQstatus(client), CONNECTION_OK);
    const int pid = PQbackendPID(client);
    PQclear(PQexec(client, ("SET client_connection_check_interval = '50ms';"
                            "SET gputext.device = gpu;"
                            "SET gputext.inject_fault = '" +
                            std::string(GetParam().fault) + "'")
                               .c_str()));
    PQsendQuery(client, kJob.c_str());
    EXPECT_TRUE(reaches(pid, GetParam().phase));
    PQfinish(client);
    EXPECT_TRUE(eventually([&] { return !alive(pid); }));
    expect_recovered();
}

INSTANTIATE_TEST_SUITE_P(Stages, Interrupted, ::testing::ValuesIn(kStages),
                         [](const auto& tested) { return tested.param.name; });

class Waiting : public DaemonTest {
protected:
    static constexpr int kDevices = 2;
};

// With every device taken, a job waits; its cancel does not.
TEST_F(Waiting, ForADeviceCanBeCancelled) {
    if (on_real_gpus()) GTEST_SKIP() << "their number is not known";
    std::vector<std::unique_ptr<Session>> busy;
    std::vector<std::unique_ptr<Running>> running;
    for (int i = 0; i < kDevices; ++i) {
        busy.push_back(std::make_unique<Session>(server().connection()));
        busy.back()->rows("SET gputext.device = gpu");
        busy.back()->rows("SET gputext.inject_fault = 'in_job:slow:100000'");
        running.push_back(std::make_unique<Running>(*busy.back(), kJob));
        ASSERT_TRUE(reaches(busy.back()->pid(), "being slow"));
    }
    Running waiting(session(), kJob);
    ASSERT_TRUE(reaches(session().pid(), "waiting for a device"));
    other().rows("SELECT pg_cancel_backend(" + std::to_string(session().pid()) + ")");
    EXPECT_EQ(waiting.wait(), "57014");
    for (const auto& one : busy)
        other().rows("SELECT pg_cancel_backend(" + std::to_string(one->pid()) + ")");
    for (const auto& one : running) EXPECT_EQ(one->wait(), "57014");
    busy.clear();
    expect_recovered();
}

// Two devices share a k-means: one decides, and the other one does what it says. There may be one
// GPU, which would end the job before it is cancelled.
TEST_F(Waiting, ForDevicesThatShareAKMeansCanBeCancelled) {
    if (on_real_gpus()) GTEST_SKIP() << "about devices without a GPU";
    const long cancelled = counter("cancelled");
    inject("in_job:gather:2");
    Running running(session(),
                    "SELECT FROM k_means($$SELECT i, ARRAY[sin(i), cos(7 * i)]::real[] FROM "
                    "generate_series(1::bigint, 300000) AS i$$, 2000, iterations => 100)");
    EXPECT_TRUE(eventually([&] {
        return other().value(
                   "SELECT count(*) FROM gputext_activity WHERE phase IN ('choosing first "
                   "centroids', 'assigning items')") == "1";
    }));
    std::this_thread::sleep_for(300ms);
    EXPECT_FALSE(running.done());
    other().rows("SELECT pg_cancel_backend(" + std::to_string(session().pid()) + ")");
    EXPECT_EQ(running.wait(), "57014");
    EXPECT_EQ(counter("cancelled"), cancelled + 1);
    expect_recovered();
}

// A device that never comes back holds up no session that gives up on it.
TEST_F(Waiting, ForAStuckDeviceCanBeCancelled) {
    inject("in_job:stuck");
    Running running(session(), kJob);
    ASSERT_TRUE(reaches(session().pid(), "hanging"));
    other().rows("SELECT pg_cancel_backend(" + std::to_string(session().pid()) + ")");
    EXPECT_EQ(running.wait(), "57014");
    // It takes a new gputextd to have it back.
    send_signal(server().daemon(), SIGKILL);
    expect_recovered();
}

// gputextd stands still, as in a debugger: the supervisor finds out and starts another.
TEST_F(Waiting, ForAGputextdThatStandsStillEnds) {
    const pid_t still = server().daemon();
    inject("in_job:slow:100000");
    Running running(session(), kJob);
    ASSERT_TRUE(reaches(session().pid(), "being slow"));
    send_signal(still, SIGSTOP);
    EXPECT_EQ(running.wait(), "38000");
    EXPECT_NE(session().message().find("gputextd does not answer"), std::string::npos)
        << session().message();
    expect_recovered();
    EXPECT_FALSE(alive(still));
}

// Sessions connect by the socket's name: when that is gone, so is the way to gputextd.
TEST_F(Waiting, ForAGputextdThatNobodyCanReachEnds) {
    const pid_t unreachable = server().daemon();
    fs::remove(server().data() / "pgsql_tmp_gputext.sock");
    inject("");
    EXPECT_EQ(session().sqlstate(kJob), "ok") << session().message();
    EXPECT_FALSE(alive(unreachable));
    expect_recovered();
}

TEST_F(Waiting, ForAGputextdThatNobodyCanReachIsNotForAuto) {
    const long before = fallbacks("gputextd not ready");
    fs::remove(server().data() / "pgsql_tmp_gputext.sock");
    set("gputext.device = auto");
    set("gputext.cpu_threads = 1");
    EXPECT_EQ(session().value(kLargeJob), kLargeAnswer);
    EXPECT_EQ(fallbacks("gputextd not ready"), before + 1);
    expect_recovered();
}

}  // namespace
}  // namespace gputext::live
