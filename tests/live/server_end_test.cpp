// The server ends, in every way it can, with a job in flight: gputextd and its socket go with it,
// and the next server has its own. Also the ends after which PostgreSQL starts all its processes
// anew: those of a process of its own by a signal.

#include "tests/live/daemon_test.hpp"

namespace gputext::live {
namespace {

class ServerEnd : public DaemonTest {
protected:
    /// By the server, without a word or with an error of this state; or by gputextd, which may be
    /// killed a moment before the session is, which then says so.
    void expect_ended(Running& running, const std::string& sqlstate) {
        const std::string state = running.wait();
        EXPECT_TRUE(state == sqlstate || state == "38000" || state == "gone") << state;
    }

    void expect_all_gone() {
        EXPECT_TRUE(server().ended()) << ::testing::PrintToString(server().processes());
        EXPECT_EQ(server().daemon_files(), 0u);
        EXPECT_EQ(count_entries(server().data() / "base/pgsql_tmp"), 0u);
    }

    void expect_next_server_works() {
        disconnect();
        server().start();
        connect();
        expect_recovered();
    }

    /// The processes but for the postmaster have been replaced.
    void expect_others_replaced(pid_t daemon) {
        disconnect();
        EXPECT_TRUE(eventually([&] { return !alive(daemon); }));
        const std::string where = server().connection().text;
        ASSERT_TRUE(eventually([&] { return PQping(where.c_str()) == PQPING_OK; }));
        connect();
        expect_recovered();
    }
};

TEST_F(ServerEnd, FastShutdown) {
    const auto running = job_in_flight();
    server().signal_server(SIGINT);
    const std::string state = running->wait();
    EXPECT_TRUE(state == "57P01" || state == "gone") << state;
    expect_all_gone();
    EXPECT_NE(server().log().find("database system is shut down"), std::string::npos);
    expect_next_server_works();
}

TEST_F(ServerEnd, ImmediateShutdown) {
    const auto running = job_in_flight();
    server().signal_server(SIGQUIT);
    expect_ended(*running, "57P02");
    expect_all_gone();
    expect_next_server_works();
}

TEST_F(ServerEnd, SmartShutdownWaitsForTheJob) {
    inject("in_job:slow:1500");
    Running running(session(), kJob);
    ASSERT_TRUE(reaches(session().pid(), "being slow"));
    server().signal_server(SIGTERM);
    EXPECT_EQ(running.wait(), "ok") << session().message();
    EXPECT_TRUE(server().running());
    disconnect();
    expect_all_gone();
    expect_next_server_works();
}

TEST_F(ServerEnd, PostmasterIsKilled) {
    const auto running = job_in_flight();
    server().signal_server(SIGKILL);
    expect_ended(*running, "57P01");
    expect_all_gone();
    expect_next_server_works();
}

TEST_F(ServerEnd, ShutdownDoesNotWaitForAGputextdThatStandsStill) {
    const auto running = job_in_flight();
    send_signal(server().daemon(), SIGSTOP);
    server().signal_server(SIGINT);
    running->wait();
    expect_all_gone();
    expect_next_server_works();
}

// ---- PostgreSQL starts anew ----

// It ends all sessions when one of its processes is killed, whatever that was doing.
TEST_F(ServerEnd, BackendIsKilled) {
    const pid_t daemon = server().daemon();
    const auto running = job_in_flight();
    send_signal(session().pid(), SIGKILL);
    EXPECT_EQ(running->wait(), "gone");
    expect_others_replaced(daemon);
}

TEST_F(ServerEnd, SupervisorIsKilled) {
    const pid_t daemon = server().daemon();
    const auto running = job_in_flight();
    send_signal(server().supervisor(), SIGKILL);
    expect_ended(*running, "57P02");
    expect_others_replaced(daemon);
}

// ---- The supervisor alone ----

TEST_F(ServerEnd, SupervisorIsToldToEnd) {
    const pid_t daemon = server().daemon();
    const pid_t supervisor = server().supervisor();
    inject("in_job:slow:1000");
    Running running(session(), kJob);
    ASSERT_TRUE(reaches(session().pid(), "being slow"));
    send_signal(supervisor, SIGTERM);
    EXPECT_EQ(running.wait(), "ok") << session().message();
    EXPECT_FALSE(alive(supervisor));
    EXPECT_FALSE(alive(daemon));
    expect_recovered();
}

// ---- The supervisor from the server's start ----

TEST_F(ServerEnd, PreloadedSupervisorComesWithTheServer) {
    disconnect();
    server().signal_server(SIGINT);
    expect_all_gone();
    server().configure("shared_preload_libraries = 'gputext'\n");
    server().start();
    EXPECT_TRUE(eventually([&] { return server().daemon() != 0; }));
    connect();
    expect_recovered();

    // Once PostgreSQL has started anew, the next job brings it back.
    const pid_t daemon = server().daemon();
    send_signal(session().pid(), SIGKILL);
    expect_others_replaced(daemon);

    disconnect();
    server().signal_server(SIGINT);
    expect_all_gone();
    server().configure("shared_preload_libraries = ''\n");
    expect_next_server_works();
}

}  // namespace
}  // namespace gputext::live
