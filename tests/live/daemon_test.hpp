// tests/live/daemon_test.hpp - jobs on devices, on a server of the test's own

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
    explicit Traces(pid_t pid)
        : descriptors(descriptors_of(pid).size()),
          sockets(sockets_of(pid)),
          threads(threads_of(pid)),
          memory_files(has_memory_file(pid) + has_mapped_memory_file(pid)) {}

    std::size_t descriptors;
    std::size_t sockets;
    std::size_t threads;
    int memory_files;

    bool operator==(const Traces&) const = default;
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
        expect_idle(session().pid(), idle_->session, "the session");
        expect_idle(server().supervisor(), idle_->supervisor, "the supervisor");
        expect_idle(server().daemon(), idle_->daemon, "gputextd");
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
        // gputextd closes the job's connection in its own time.
        const pid_t daemon = server().daemon();
        ASSERT_NE(daemon, 0);
        ASSERT_TRUE(eventually([&] { return sockets_of(daemon) <= 1; }));
        idle_ = std::make_unique<Idle>(
            Idle{Traces(session().pid()), Traces(server().supervisor()), Traces(daemon)});
        EXPECT_EQ(idle_->session.threads, 1u);
        EXPECT_EQ(idle_->supervisor.threads, 1u);
        for (const Traces& traces : {idle_->session, idle_->supervisor, idle_->daemon})
            EXPECT_EQ(traces.memory_files, 0);
    }

    /// A session may open tables, but else has what it had; the others have exactly that.
    void expect_idle(pid_t pid, const Traces& idle, const std::string& who) {
        const auto seen = [&] {
            Traces traces(pid);
            if (pid == session().pid()) traces.descriptors = idle.descriptors;
            return traces;
        };
        EXPECT_TRUE(eventually([&] { return seen() == idle; }, 5s))
            << who << " has " << ::testing::PrintToString(seen()) << " instead of "
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
