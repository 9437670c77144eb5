// The job of docs/scheduled-jobs.md, started by pg_cron once a minute: its pairs and groups are
// right, a second run changes nothing, and one that is killed in the middle goes on where it was.

#include <cstdio>

#include "tests/live/private_server.hpp"

namespace gputext::live {
namespace {

/// 300 documents of about 90 characters, of which each has two near-duplicates or none, whose
/// number is an old one's or a new one's.
std::string documents(int from, int to) {
    return "INSERT INTO docs (id, trusted, body) SELECT i, i % 7 = 0, repeat(md5((CASE WHEN i % 3 "
           "= 0 "
           "THEN i ELSE i % 50 END)::text), 3) || i % 10 FROM generate_series(" +
           std::to_string(from) + ", " + std::to_string(to) + ") AS i";
}

/// What the job should have found, from the table alone.
const char* const kPairs = R"(
    SELECT a.id, b.id, edit_rate(a.body, b.body) FROM docs a JOIN docs b ON a.id < b.id
    WHERE edit_rate(a.body, b.body) <= 0.05 ORDER BY 1, 2)";
/// Where near-duplicates of near-duplicates are near-duplicates: the best one of each, and how
/// many.
const char* const kGroups = R"(
    SELECT a.id, (array_agg(b.id ORDER BY b.trusted DESC, length(b.body) DESC, b.id))[1], count(*)
    FROM docs a JOIN docs b ON edit_rate(a.body, b.body) <= 0.05 GROUP BY a.id ORDER BY 1)";
const char* const kFoundPairs = "SELECT id1, id2, edit_rate FROM doc_pairs ORDER BY 1, 2";
const char* const kFoundGroups = "SELECT id, group_id, group_size FROM doc_groups ORDER BY 1";
const char* const kRowVersions =
    "SELECT md5(string_agg(ctid || ' ' || xmin, ',' ORDER BY id)) FROM doc_groups";

class ScheduledJob : public testing::Test {
protected:
    void SetUp() override {
        try {
            server_ = std::make_unique<PrivateServer>(
                "shared_preload_libraries = 'pg_cron'\ncron.database_name = 'postgres'\n"
                "cron.use_background_workers = on\nmax_worker_processes = 20\n");
            server_->start();
        } catch (const std::runtime_error& error) {
            if (server_ == nullptr ||
                server_->log().find("could not access file \"pg_cron\"") == std::string::npos)
                throw;
            if (std::getenv("GPUTEXT_REQUIRE_CRON") != nullptr) throw;
            GTEST_SKIP() << "pg_cron is not installed for this PostgreSQL";
        }
        session_ = std::make_unique<Session>(server_->connection());
        session_->rows("CREATE EXTENSION pg_cron");
        session_->rows("CREATE EXTENSION gputext");
        session_->rows(marked_sql(fs::path(GPUTEXT_SOURCE) / "docs/scheduled-jobs.md", "job"));
    }

    std::string value(const std::string& sql) { return session_->value(sql); }
    void expect_all_found() {
        EXPECT_EQ(session_->table(kFoundPairs), session_->table(kPairs));
        EXPECT_EQ(session_->table(kFoundGroups), session_->table(kGroups));
        EXPECT_GT(std::stoi(value("SELECT count(*) FROM doc_groups WHERE id <> group_id")), 50);
    }

    std::unique_ptr<PrivateServer> server_;
    std::unique_ptr<Session> session_;
};

TEST_F(ScheduledJob, FindsAllResumesAndRunsTwiceWithoutAChange) {
    // Old documents, compared by hand; then new ones, whose job takes a while for each batch.
    session_->rows(documents(1, 150));
    session_->rows("CALL compare_new_docs()");
    expect_all_found();
    session_->rows(documents(151, 300));
    session_->rows(
        "CREATE FUNCTION take_a_while() RETURNS trigger LANGUAGE plpgsql AS "
        "'BEGIN PERFORM pg_sleep(0.5); RETURN NULL; END'");
    session_->rows(
        "CREATE TRIGGER take_a_while AFTER INSERT ON doc_groups "
        "FOR EACH STATEMENT EXECUTE FUNCTION take_a_while()");
    session_->rows("SELECT cron.schedule('compare', '* * * * *', 'CALL compare_new_docs(20)')");

    // It is killed when some batches, but not all, have been committed.
    const auto compared = [&] { return std::stoi(value("SELECT count(*) FROM doc_groups")); };
    ASSERT_TRUE(eventually([&] { return compared() > 150; }, 130s))
        << session_->table("SELECT * FROM cron.job_run_details") << server_->log();
    session_->rows(
        "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted");
    EXPECT_TRUE(eventually(
        [&] { return value("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'") == "0"; }));
    const int before = compared();
    EXPECT_GT(before, 150);
    EXPECT_LT(before, 300);
    EXPECT_EQ((before - 150) % 20, 0);

    // The next run, which does not wait for the next minute, goes on; what was committed before
    // stays.
    session_->rows("SELECT cron.unschedule('compare')");
    session_->rows("CALL compare_new_docs(20)");
    EXPECT_EQ(compared(), 300);
    expect_all_found();

    // Nothing is new to the run after it.
    const std::string versions = value(kRowVersions);
    session_->rows("CALL compare_new_docs()");
    EXPECT_EQ(value(kRowVersions), versions);

    // What is deleted or changed is forgotten, and what is changed is compared again.
    session_->rows("DELETE FROM docs WHERE id % 13 = 0");
    session_->rows("UPDATE docs SET body = repeat(md5('51'), 3) WHERE id % 17 = 0");
    session_->rows("CALL compare_new_docs()");
    expect_all_found();
}

/// While one runs, another one does nothing.
TEST_F(ScheduledJob, RunsOnceAtATime) {
    session_->rows(documents(1, 50));
    Session other(server_->connection());
    other.rows("SELECT pg_advisory_lock(hashtext('compare_new_docs'))");
    session_->rows("CALL compare_new_docs()");
    EXPECT_EQ(value("SELECT count(*) FROM doc_groups"), "0");
    other.rows("SELECT pg_advisory_unlock_all()");
    session_->rows("CALL compare_new_docs()");
    EXPECT_EQ(value("SELECT count(*) FROM doc_groups"), "50");
}

}  // namespace
}  // namespace gputext::live
