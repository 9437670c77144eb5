// The file of the library is replaced while sessions that have loaded it go on, as by an upgrade.
// From then on they start no parallel workers, which would load the other library. Here that one is
// a file that nothing can load.
//
// The library lies in a folder of the test's own, as other programs use the one that is installed.

#include <algorithm>
#include <regex>

#include "tests/live/private_server.hpp"

namespace gputext::live {
namespace {

class ReplacedLibrary : public ::testing::Test {
protected:
    static void TearDownTestSuite() { server_.reset(); }

    void SetUp() override {
        try {
            if (server_ == nullptr) make_server();
            put([](const fs::path& file) { fs::copy_file(installed_, file); });
        } catch (const std::exception& error) {
            FAIL() << error.what();
        }
    }
    void TearDown() override {
        if (!HasFailure()) return;
        if (server_ != nullptr) std::puts(server().log().c_str());
        server_.reset();  // the next test has another one
    }

    static PrivateServer& server() { return *server_; }
    static bool has_pgvector() { return has_pgvector_; }

    /// A session that has loaded the library, and is given workers.
    struct Worker : Session {
        Worker() : Session(server().connection()) {
            rows("LOAD 'gputext'");
            rows("SET gputext.read_workers = 2");
            rows("SET max_parallel_maintenance_workers = 2");
            rows("SET log_min_messages = debug1");
        }
    };

    static void replace() {
        put([](const fs::path& file) { std::ofstream(file) << "another library\n"; });
    }

    /// The most workers that the log tells of by this message from here on; 0 without one.
    static int workers_since(std::size_t logged, const std::string& message) {
        const std::string log = server().log().substr(logged);
        const std::regex expression(message + " (\\d+) of \\d+ parallel workers");
        int most = 0;
        for (std::sregex_iterator it(log.begin(), log.end(), expression), end; it != end; ++it)
            most = std::max(most, std::stoi((*it)[1]));
        return most;
    }

    /// The statement has the same answer with workers, and, when the library has been replaced,
    /// without. `again` undoes what it does.
    static void expect_no_workers_then(Session& session, const std::string& statement,
                                       const std::string& message, const std::string& again = "") {
        std::size_t logged = server().log().size();
        const std::string answer = session.table(statement);
        EXPECT_GE(workers_since(logged, message), 1);
        if (!again.empty()) session.rows(again);
        replace();
        logged = server().log().size();
        ASSERT_EQ(session.sqlstate(statement), "ok") << session.message();
        EXPECT_EQ(workers_since(logged, message), 0);
        if (!again.empty()) session.rows(again);
        EXPECT_EQ(session.table(statement), answer);
        if (!again.empty()) session.rows(again);
    }

private:
    static fs::path folder() { return server().root() / "lib"; }

    /// What make(FILE) makes, in place of the library.
    template <class Make>
    static void put(const Make& make) {
        const fs::path made = folder() / "gputext.so.new";
        make(made);
        fs::permissions(made, static_cast<fs::perms>(0755));
        fs::rename(made, folder() / "gputext.so");
    }

    static void make_server() {
        server_ = std::make_unique<PrivateServer>("min_parallel_table_scan_size = 0\n");
        server().configure("dynamic_library_path = '" + folder().string() + ":$libdir'\n");
        fs::create_directory(folder());
        fs::permissions(folder(), static_cast<fs::perms>(0755));
        server().start();
        {
            Session session(server().connection());
            installed_ = session.value(
                "SELECT setting || '/gputext.so' FROM pg_config WHERE name = 'PKGLIBDIR'");
        }
        put([](const fs::path& file) { fs::copy_file(installed_, file); });
        Session session(server().connection());
        session.rows("CREATE EXTENSION gputext");
        session.rows("UPDATE pg_proc SET probin = 'gputext' WHERE probin = '$libdir/gputext'");
        session.rows(
            "CREATE TABLE texts AS SELECT i AS id, repeat(format('to be %s or not %s that ', i, "
            "i % 17), 4000) AS body FROM generate_series(1::bigint, 102) AS i");
        session.rows(
            "CREATE TABLE many AS SELECT i AS id, ARRAY[i % 101, i % 103, i % 107]::real[] AS v, "
            "repeat('x', 200) AS rest FROM generate_series(1::bigint, 100000) AS i");
        session.rows("ANALYZE");
        has_pgvector_ = session.value(
                            "SELECT count(*) FROM pg_available_extensions WHERE name = "
                            "'vector'") == "1";
        if (!has_pgvector_) return;
        session.rows("CREATE EXTENSION vector");
        session.rows(
            "CREATE TABLE items AS SELECT i AS id, (SELECT array_agg(sin(i * j)) FROM "
            "generate_series(1, 100) AS j)::vector(100) AS v FROM generate_series(1, 3000) AS i");
        session.rows("ALTER TABLE items SET (parallel_workers = 2)");
    }

    static inline std::unique_ptr<PrivateServer> server_;
    static inline fs::path installed_;
    static inline bool has_pgvector_ = false;
};

TEST_F(ReplacedLibrary, LetsTextsBeReadWithoutWorkers) {
    Worker session;
    expect_no_workers_then(session, "SELECT * FROM tfidf('TABLE texts') ORDER BY 1, 2",
                           "reading rows in");
}

TEST_F(ReplacedLibrary, LetsRowsBeReadWithoutBundles) {
    Worker session;
    expect_no_workers_then(
        session,
        "SELECT query_id, distance FROM gpu_knn('SELECT id, v FROM many WHERE id <= 20', 'SELECT "
        "id, v FROM many', k => 3) ORDER BY 1, 2",
        "bundled rows in");
}

class ReplacedLibraryAndPlans : public ReplacedLibrary {
protected:
    void SetUp() override {
        ReplacedLibrary::SetUp();
        if (HasFatalFailure()) return;
        session_ = std::make_unique<Worker>();
        session().rows("SET gputext.plan_nearest = force");
        session().rows("PREPARE nearest AS " + nearest());
        EXPECT_NE(explained().find("Workers Launched: 2"), std::string::npos) << explained();
    }
    void TearDown() override {
        session_.reset();
        ReplacedLibrary::TearDown();
    }

    Session& session() { return *session_; }
    static std::string nearest() {
        return "SELECT q.id, n.distance FROM (SELECT id, v FROM many WHERE id <= 20) AS q, LATERAL "
               "(SELECT v <-> q.v AS distance FROM many ORDER BY v <-> q.v LIMIT 3) AS n "
               "ORDER BY 1, 2";
    }
    std::string explained() { return session().table("EXPLAIN (ANALYZE) EXECUTE nearest"); }

private:
    std::unique_ptr<Worker> session_;
};

TEST_F(ReplacedLibraryAndPlans, LetThoseThatAreOlderReadWithoutBundles) {
    const std::string answer = session().table("EXECUTE nearest");
    replace();
    EXPECT_EQ(session().table("EXECUTE nearest"), answer);
    EXPECT_EQ(explained().find("Workers Launched"), std::string::npos) << explained();
}

TEST_F(ReplacedLibraryAndPlans, LetThoseThatHaveBegunReadWithoutBundles) {
    const std::string answer = session().table("EXECUTE nearest");
    session().rows("BEGIN");
    session().rows("DECLARE nearest CURSOR FOR " + nearest());
    replace();
    EXPECT_EQ(session().table("FETCH ALL FROM nearest"), answer);
    session().rows("COMMIT");
}

TEST_F(ReplacedLibrary, LetsAnIndexBeBuiltWithoutWorkers) {
    Worker session;
    session.rows("ALTER TABLE texts SET (parallel_workers = 2)");
    expect_no_workers_then(session, "CREATE INDEX texts_index ON texts USING gputext (body)",
                           "building index \"texts_index\" with", "DROP INDEX texts_index");
}

/// Debian 12 has no package of pgvector; the other releases that scripts/check-all tests have one.
class ReplacedLibraryAndPgvector : public ReplacedLibrary {
protected:
    void SetUp() override {
        ReplacedLibrary::SetUp();
        if (!has_pgvector()) GTEST_SKIP() << "without pgvector";
    }
};

TEST_F(ReplacedLibraryAndPgvector, LetsAnIndexBeBuiltWithoutWorkers) {
    Worker session;
    session.rows("SET gputext.build_hnsw = on");
    expect_no_workers_then(session,
                           "CREATE INDEX items_index ON items USING hnsw (v vector_l2_ops)",
                           "building index \"items_index\" with", "DROP INDEX items_index");
}

// Workers have read the table, and others would write pages in the end.
TEST_F(ReplacedLibraryAndPgvector, LetsPagesOfAnIndexBeWrittenWithoutWorkers) {
    const std::string build =
        "CREATE INDEX items_index ON items USING hnsw ((slowly(v)::vector(100)) vector_l2_ops)";
    Worker session;
    Session other(server().connection());
    session.rows("SET gputext.build_hnsw = on");
    session.rows(
        "CREATE FUNCTION slowly(v vector) RETURNS vector IMMUTABLE STRICT PARALLEL SAFE LANGUAGE "
        "plpgsql AS 'BEGIN PERFORM pg_sleep(0.001); RETURN v; END'");
    std::size_t logged = server().log().size();
    session.rows(build);
    EXPECT_EQ(workers_since(logged, "building index \"items_index\" with"), 2);
    EXPECT_GE(workers_since(logged, "writing pages in"), 1);
    const std::string size = session.value("SELECT pg_relation_size('items_index')");
    session.rows("DROP INDEX items_index");

    logged = server().log().size();
    Running running(session, build);
    // Both have loaded the library.
    EXPECT_TRUE(eventually([&] {
        return running.done() ||
               other.value(
                   "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'parallel "
                   "worker' AND wait_event = 'PgSleep' AND leader_pid = " +
                   std::to_string(session.pid())) == "2";
    }));
    replace();
    ASSERT_EQ(running.wait(), "ok") << session.message();
    EXPECT_EQ(workers_since(logged, "building index \"items_index\" with"), 2);
    EXPECT_EQ(workers_since(logged, "writing pages in"), 0);
    EXPECT_EQ(session.value("SELECT pg_relation_size('items_index')"), size);
    session.rows("DROP INDEX items_index");
}

}  // namespace
}  // namespace gputext::live
