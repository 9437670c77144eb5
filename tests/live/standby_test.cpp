// A hot standby has a gputextd of its own; a base backup leaves that of the primary out.

#include "tests/live/daemon_test.hpp"

namespace gputext::live {
namespace {

class Standby : public DaemonTest {
protected:
    void SetUp() override {
        DaemonTest::SetUp();
        if (HasFailure()) return;
        standby_ = PrivateServer::standby_of(server());
        standby_->start();
    }

    PrivateServer& standby() { return *standby_; }

    /// A job of a session that has just come.
    void expect_job_on_standby() {
        Session session(standby().connection());
        session.rows("SET gputext.device = gpu");
        const std::string jobs = "SELECT gpu_jobs FROM gputext_stat";
        const long before = std::stol(session.value(jobs));
        EXPECT_EQ(session.value(kJob), kAnswer);
        EXPECT_EQ(std::stol(session.value(jobs)), before + 1);
        EXPECT_EQ(threads_of(session.pid()), 1u);
        EXPECT_EQ(foreign_descriptors(session.pid()), std::vector<std::string>());
    }

    /// Until it has all that the primary has written.
    bool caught_up() {
        Session primary(server().connection()), session(standby().connection());
        const std::string written = primary.value("SELECT pg_current_wal_flush_lsn()");
        return eventually([&] {
            return session.value("SELECT pg_last_wal_replay_lsn() >= '" + written + "'::pg_lsn") ==
                   "t";
        });
    }

private:
    std::unique_ptr<PrivateServer> standby_;
};

TEST_F(Standby, IsMadeWithoutAWordAboutTheSocket) {
    EXPECT_EQ(standby().log().find("WARNING"), std::string::npos) << standby().log();
    EXPECT_EQ(standby().log().find("pgsql_tmp"), std::string::npos) << standby().log();
    EXPECT_EQ(standby().daemon_files(), 0u);
}

TEST_F(Standby, RunsJobsOnAGputextdOfItsOwn) {
    Session session(standby().connection());
    ASSERT_EQ(session.value("SELECT pg_is_in_recovery()"), "t");
    EXPECT_EQ(session.value("SELECT count(device) > 0 FROM gputext_devices()"), "t");
    expect_job_on_standby();
    EXPECT_NE(standby().daemon(), 0);
    EXPECT_NE(standby().daemon(), server().daemon());
    expect_recovered();
}

TEST_F(Standby, SurvivesItsGputextd) {
    expect_job_on_standby();
    Session session(standby().connection());
    session.rows("SET gputext.device = gpu");
    session.rows("SET gputext.inject_fault = 'in_job:crash'");
    EXPECT_EQ(session.sqlstate(kJob), "38000");
    expect_job_on_standby();
    EXPECT_EQ(session.value("SELECT pg_backend_pid()"), std::to_string(session.pid()));
}

TEST_F(Standby, GivesTheSameCodesForTheSameWords) {
    Session primary(server().connection());
    primary.rows(
        "CREATE TABLE words AS SELECT i::bigint AS id, md5(i::text) || repeat('x', i % 40) AS word "
        "FROM generate_series(1, 20000) i");
    primary.rows(
        "CREATE TABLE dictionary AS SELECT trie_agg(word) AS words FROM words WHERE id % 3 <> 0");
    ASSERT_TRUE(caught_up());
    Session session(standby().connection());
    ASSERT_EQ(session.value("SELECT pg_is_in_recovery()"), "t");
    const std::string codes =
        "SELECT md5(string_agg(id || ' ' || coalesce(code::text, '-'), ',' ORDER BY id)) "
        "FROM dictionary, ";
    const std::string encoded = codes + "trie_encode(words, 'TABLE words')";
    const std::string looked_up =
        codes + "LATERAL (SELECT id, trie_lookup(words, word) AS code FROM words AS w) AS c";
    const std::string expected = primary.value(looked_up);
    EXPECT_EQ(session.value(looked_up), expected);
    for (const char* device : {"cpu", "gpu"}) {
        session.rows(std::string("SET gputext.device = ") + device);
        EXPECT_EQ(session.value(encoded), expected) << device;
        EXPECT_EQ(session.value("SELECT t.words::bytea = d.words::bytea FROM dictionary AS d, "
                                "(SELECT trie_agg(word) AS words FROM words WHERE id % 3 <> 0) t"),
                  "t")
            << device;
    }
    EXPECT_EQ(session.value("SELECT count(*) FROM dictionary, words AS w "
                            "WHERE trie_decode(words, trie_lookup(words, word)) = word"),
              "13334");
    // With a job that ends gputextd in between
    session.rows("SET gputext.inject_fault = 'in_job:crash'");
    EXPECT_EQ(session.sqlstate(encoded), "38000");
    session.rows("SET gputext.inject_fault = ''");
    EXPECT_EQ(session.value(encoded), expected);
    primary.rows("DROP TABLE words, dictionary");
}

TEST_F(Standby, KeepsItsGputextdWhenItIsPromoted) {
    expect_job_on_standby();
    const pid_t daemon = standby().daemon();
    Session session(standby().connection());
    EXPECT_TRUE(promote(session));
    EXPECT_EQ(session.value("SELECT pg_is_in_recovery()"), "f");
    expect_job_on_standby();
    EXPECT_EQ(standby().daemon(), daemon);
    standby().signal_server(SIGINT);
    EXPECT_TRUE(standby().ended());
    EXPECT_EQ(standby().daemon_files(), 0u);
}

}  // namespace
}  // namespace gputext::live
