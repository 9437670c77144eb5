// tests/live/daemon_test.hpp - fixture of tests with jobs on devices, on a private server

#pragma once

#include "tests/live/private_server.hpp"

namespace gputext::live {

/// Two thousand documents, each there twice. Too small to be sent to a device by itself.
inline const std::string kJob =
    "SELECT count(*) FROM near_duplicates($$SELECT i::bigint, md5((i / 2)::text) "
    "FROM generate_series(2, 2001) i$$)";
inline const std::string kAnswer = "1000";

/// Ten megabytes: worth a device to a session that has one thread.
inline const std::string kLargeJob =
    "SELECT count(*) FROM near_duplicates($$SELECT i::bigint, repeat(md5((i / 2)::text), 320) "
    "FROM generate_series(2, 1001) i$$)";
inline const std::string kLargeAnswer = "500";

/// What a process holds that jobs could leave behind.
struct Traces {
    static Traces of_session(pid_t pid) {
        return {0, sockets_of(pid), threads_of(pid), files(pid)};
    }
    static Traces of_supervisor(pid_t pid) {
        return {descriptors_of(pid).size(), sockets_of(pid), threads_of(pid), files(pid)};
    }
    /// A GPU's driver has descriptors and threads of its own, not always as many.
    static Traces of_daemon(pid_t pid) {
        if (on_real_gpus()) return {0, daemon_sockets_of(pid), 0, files(pid)};
        return {descriptors_of(pid).size(), daemon_sockets_of(pid), threads_of(pid), files(pid)};
    }

    std::size_t descriptors;  // a session may open tables
    std::size_t sockets;
    std::size_t threads;
    int memory_files;

    bool operator==(const Traces&) const = default;

    static int files(pid_t pid) { return has_memory_file(pid) + has_mapped_memory_file(pid); }
};

inline void PrintTo(const Traces& traces, std::ostream* out) {
    *out << traces.descriptors << " descriptors, " << traces.sockets << " sockets, "
         << traces.threads << " threads, " << traces.memory_files << " memory files";
}

/// A server for all tests of a suite. Each has two sessions: one to run jobs, one that must not
/// notice.
class DaemonTest : public ::testing::Test {
protected:
    static void TearDownTestSuite() {
        server_.reset();
        idle_.reset();
    }

    void SetUp() override {
        try {
            if (server_ == nullptr) make_server();
            logged_ = server().log().size();
            if (!server().running()) server().start();
            connect();
            end_supervisor();
            expect_job_on_device();
            if (idle_ == nullptr) remember_idle();
        } catch (const std::exception& error) {
            FAIL() << error.what();
        }
    }

    void TearDown() override {
        if (HasFailure() && server_ != nullptr) std::puts(server().log().substr(logged_).c_str());
    }

    static bool has_server() { return server_ != nullptr; }
    static PrivateServer& server() { return *server_; }
    Session& session() { return *session_; }
    Session& other() { return *other_; }

    /// New sessions, as after a restart.
    void connect() {
        connect_session();
        other_ = std::make_unique<Session>(server().connection());
        started_ = other().value("SELECT pg_postmaster_start_time()");
    }
    void connect_session() {
        session_ = std::make_unique<Session>(server().connection());
        set("gputext.device = gpu");
    }
    void disconnect() {
        session_.reset();
        other_.reset();
    }

    void set(const std::string& assignment) { session().rows("SET " + assignment); }
    void inject(const std::string& fault) { set("gputext.inject_fault = '" + fault + "'"); }

    long counter(const std::string& column) {
        return std::stol(other().value("SELECT " + column + " FROM gputext_stat"));
    }
    long fallbacks(const std::string& reason) {
        return counter("coalesce((fallback_reasons->>'" + reason + "')::bigint, 0)");
    }

    /// Until a session's job is in that phase.
    bool reaches(int pid, const std::string& phase) {
        const std::string rows =
            "SELECT count(*) FROM gputext_activity WHERE pid = " + std::to_string(pid) +
            " AND phase = '" + phase + "'";
        return eventually([&] { return other().value(rows) == "1"; });
    }

    /// A job that a device works on for as long as a test may want.
    std::unique_ptr<Running> job_in_flight(const std::string& job = kJob) {
        inject("in_job:slow:100000");
        auto running = std::make_unique<Running>(session(), job);
        EXPECT_TRUE(reaches(session().pid(), "being slow"))
            << (running->done() ? running->wait() : "");
        return running;
    }

    void expect_job_on_device() {
        set("gputext.device = gpu");
        inject("");
        const long before = counter("gpu_jobs");
        EXPECT_EQ(session().value(kJob), kAnswer);
        EXPECT_EQ(counter("gpu_jobs"), before + 1);
    }

    /// The database has not restarted, and the session that did nothing is the same.
    void expect_others_untouched() {
        EXPECT_EQ(other().value("SELECT pg_backend_pid()"), std::to_string(other().pid()));
        EXPECT_EQ(other().value("SELECT pg_postmaster_start_time()"), started_);
    }

    void expect_nothing_left() {
        EXPECT_TRUE(eventually([&] {
            return other().value("SELECT count(*) FROM gputext_activity") == "0";
        })) << other().table("TABLE gputext_activity");
        EXPECT_EQ(server().supervisors().size(), 1u);
        EXPECT_EQ(server().daemons().size(), 1u);
        EXPECT_EQ(server().daemon_files(), 2u);
        EXPECT_EQ(count_entries(server().data() / "base/pgsql_tmp"), 0u);
        expect_idle(Traces::of_session, session().pid(), idle_->session, "the session");
        expect_idle(Traces::of_supervisor, server().supervisor(), idle_->supervisor,
                    "the supervisor");
        expect_idle(Traces::of_daemon, server().daemon(), idle_->daemon, "gputextd");
    }

    void expect_recovered() {
        expect_others_untouched();
        expect_job_on_device();
        expect_nothing_left();
    }

    /// The next one has forgotten how often gputextd has ended: else it would have to wait.
    void end_supervisor() {
        for (const pid_t supervisor : server().supervisors()) send_signal(supervisor, SIGTERM);
        ASSERT_TRUE(eventually([&] { return server().supervisors().empty(); }));
        EXPECT_EQ(server().daemons().size(), 0u);
        EXPECT_EQ(server().daemon_files(), 0u);
    }

private:
    struct Idle {
        Traces session, supervisor, daemon;
    };

    static void make_server() {
        auto server = std::make_unique<PrivateServer>();
        server->start();
        Session(server->connection()).rows("CREATE EXTENSION gputext");
        server_ = std::move(server);
    }

    void remember_idle() {
        // gputextd closes the job's connection, and its files, in its own time.
        const pid_t daemon = server().daemon();
        ASSERT_NE(daemon, 0);
        ASSERT_TRUE(eventually([&] {
            return daemon_sockets_of(daemon) == 1 && Traces::of_daemon(daemon).memory_files == 0;
        }));
        idle_ = std::make_unique<Idle>(Idle{settled(Traces::of_session, session().pid()),
                                            settled(Traces::of_supervisor, server().supervisor()),
                                            settled(Traces::of_daemon, daemon)});
        EXPECT_EQ(idle_->session.threads, 1u);
        EXPECT_EQ(idle_->supervisor.threads, 1u);
        for (const Traces& traces : {idle_->session, idle_->supervisor, idle_->daemon})
            EXPECT_EQ(traces.memory_files, 0);
    }

    /// What a process holds while it waits. The supervisor has one descriptor more in each wait
    /// than between two, and a busy machine can stop it there: so the same for 200 ms, asleep.
    static Traces settled(Traces (*traces_of)(pid_t), pid_t pid) {
        Traces traces = traces_of(pid);
        int same = 0;
        EXPECT_TRUE(eventually([&] {
            std::this_thread::sleep_for(10ms);
            const Traces now = traces_of(pid);
            same = now == traces && asleep(pid) ? same + 1 : 0;
            traces = now;
            return same == 20;
        })) << "process "
            << pid << " does not come to rest";
        return traces;
    }

    void expect_idle(Traces (*traces_of)(pid_t), pid_t pid, const Traces& idle,
                     const std::string& who) {
        EXPECT_TRUE(eventually([&] { return traces_of(pid) == idle; }))
            << who << " has " << ::testing::PrintToString(traces_of(pid)) << " instead of "
            << ::testing::PrintToString(idle) << "\n"
            << ::testing::PrintToString(descriptors_of(pid));
    }

    static inline std::unique_ptr<PrivateServer> server_;
    static inline std::unique_ptr<Idle> idle_;
    std::unique_ptr<Session> session_, other_;
    std::string started_;
    std::size_t logged_ = 0;  // before this test
};

}  // namespace gputext::live
