// HNSW indexes that gputext builds for pgvector: the server is stopped at once or killed during and
// after a build, builds are cancelled at any time, the disk is full, a standby follows. What is
// there in the end is the same index as ever, or none; pgvector searches and changes it.
//
// Left out where there is no pgvector, or not the module of the tests.
//
// GPUTEXT_HNSW_ROUNDS says how often builds are killed and cancelled in each way.

#include <sys/mount.h>

#include <algorithm>
#include <set>

#include "tests/live/dice.hpp"
#include "tests/live/index_use.hpp"
#include "tests/live/private_server.hpp"
#include "tests/support/test_size.hpp"

namespace gputext::live {
namespace {

const std::string kBuild = "CREATE INDEX items_index ON items USING hnsw (v vector_l2_ops)";

const char* const kWalk =
    "CREATE FUNCTION hnsw_walk(index regclass, OUT dimensions integer, OUT m integer, "
    "OUT ef_construction integer, OUT pages bigint, OUT unused_pages bigint, OUT elements bigint, "
    "OUT deleted bigint, OUT without_rows bigint, OUT \"rows\" bigint, OUT highest_level integer, "
    "OUT links bigint[], OUT laid_out boolean, OUT unlinked bigint, OUT unreached bigint) "
    "LANGUAGE c STRICT AS '$libdir/gputext', 'gputext_hnsw_walk'";

/// A vector unchanged, after a millisecond.
const char* const kSlowly =
    "CREATE OR REPLACE FUNCTION slowly(v vector) RETURNS vector IMMUTABLE STRICT PARALLEL SAFE "
    "LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.001); RETURN v; END'";

constexpr const char* kDatabase = "hnsw";

/// By the device that computes the graph. On one, workers write pages before the links are known.
class HnswBuild : public ::testing::TestWithParam<const char*> {
protected:
    static void TearDownTestSuite() { server_.reset(); }

    void SetUp() override {
        device_ = GetParam();
        try {
            if (server_ == nullptr) make_server();
            if (without_ != nullptr) GTEST_SKIP() << without_;
            if (!server().running()) server().start();
            Builder session;
            session.rows("DROP TABLE IF EXISTS items");
            session.rows("CREATE TABLE items AS TABLE pool");
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

    /// A session that leaves builds to gputext.
    struct Builder : Session {
        explicit Builder(const PrivateServer& to = server()) : Session(to.connection(kDatabase)) {
            rows("LOAD 'gputext'");
            rows("SET gputext.build_hnsw = on");
            rows(std::string("SET gputext.device = ") + device_);
        }
    };

    static std::string facts(Session& session, const std::string& index = "items_index") {
        return session.table("SELECT * FROM hnsw_walk('" + index + "')");
    }

    /// All but places in WAL and checksums, of an index that nobody has changed.
    static std::string bytes_of_index(Session& session) {
        return session.value(
            "SELECT md5(string_agg(substr(file, page * 8192 + 11, 8182), '' ORDER BY page)) FROM "
            "pg_read_binary_file(pg_relation_filepath('items_index')) AS file, "
            "generate_series(0, length(file) / 8192 - 1) AS page");
    }

    /// The index is there and the same as ever, and finds what is near.
    static void expect_whole(Session& session) {
        EXPECT_EQ(facts(session), facts_);
        session.rows("SET enable_seqscan = off");
        session.rows("SET hnsw.ef_search = 200");
        const double found =
            std::stod(session.value("SELECT avg((SELECT count(*) FROM (SELECT id FROM items ORDER "
                                    "BY v <-> q.v LIMIT 10) AS "
                                    "i WHERE i.id = ANY (q.nearest))) FROM queries AS q"));
        EXPECT_GT(found, 9.5);
        session.rows("RESET enable_seqscan");
    }

    /// pgvector inserts into the index and vacuums it.
    static void expect_goes_on(Session& session) {
        session.rows(
            "INSERT INTO items SELECT 10000 + id, v + random_vector(id) FROM pool "
            "WHERE id <= 100");
        session.rows("DELETE FROM items WHERE id % 7 = 0");
        session.rows("VACUUM items");
        EXPECT_EQ(session.value("SELECT \"rows\" - (SELECT count(*) FROM items) FROM "
                                "hnsw_walk('items_index')"),
                  "0");
        session.rows("INSERT INTO items SELECT 20000 + id, v FROM pool WHERE id <= 100");
        EXPECT_EQ(session.value("SELECT \"rows\" - (SELECT count(*) FROM items) FROM "
                                "hnsw_walk('items_index')"),
                  "0");
    }

    static bool has_index(Session& session) {
        return session.value("SELECT to_regclass('items_index') IS NOT NULL") == "t";
    }

    /// No index, or a whole one; then one that is built.
    static void expect_none_or_whole() {
        Builder session;
        if (has_index(session)) {
            expect_whole(session);
            session.rows("DROP INDEX items_index");
        }
        session.rows(kBuild);
        expect_whole(session);
        expect_no_crash(server().log());
    }

    static void stop(int signal) {
        server().signal_server(signal);
        ASSERT_TRUE(server().ended());
        server().start();
    }

    /// What a build takes here and now.
    static Clock::duration time_of_build() {
        Builder session;
        const auto begin = Clock::now();
        session.rows(kBuild);
        const auto end = Clock::now();
        session.rows("DROP INDEX items_index");
        return end - begin;
    }

    static std::size_t rounds_of_each() {
        return number_from("GPUTEXT_HNSW_ROUNDS", testing::rounds<std::size_t>(3, 20));
    }

    /// A time within a build.
    static void sleep_within(Clock::duration build, Dice& dice) {
        std::this_thread::sleep_for(build / 100 * static_cast<long>(dice.below(110)));
    }

private:
    static void make_server() {
        without_ = nullptr;
        auto server = std::make_unique<PrivateServer>(
            "wal_consistency_checking = 'all'\nfull_page_writes = on\nmax_wal_size = '1GB'\n"
            "wal_keep_size = '1GB'\nrestart_after_crash = on\nmax_standby_streaming_delay = -1\n"
            "min_parallel_table_scan_size = 0\n");
        server->start();
        {
            Session session(server->connection());
            if (session.value("SELECT count(*) FROM pg_available_extensions WHERE name = "
                              "'vector'") == "0") {
                without_ = "no pgvector";
                server_ = std::move(server);
                return;
            }
            session.rows(std::string("CREATE DATABASE ") + kDatabase);
        }
        Session session(server->connection(kDatabase));
        session.rows("CREATE EXTENSION gputext");
        session.rows("CREATE EXTENSION vector");
        if (session.sqlstate(kWalk) != "ok") without_ = "no module of the tests";
        session.rows("SELECT setseed(0.5)");
        session.rows(
            "CREATE FUNCTION random_vector(i integer) RETURNS vector LANGUAGE sql AS "
            "'SELECT array_agg(random() - 0.5)::vector FROM generate_series(1, 100) "
            "WHERE i IS NOT NULL'");
        // Some values come more than once.
        session.rows(
            "CREATE TABLE pool AS SELECT i AS id, random_vector(i)::vector(100) AS v, 0 AS seen "
            "FROM "
            "generate_series(1, 2900) AS i");
        session.rows("INSERT INTO pool SELECT id + 2900, v, 0 FROM pool WHERE id <= 100");
        session.rows(
            "CREATE TABLE queries AS SELECT q.v, (SELECT array_agg(n.id) FROM (SELECT id "
            "FROM pool ORDER BY v <-> q.v LIMIT 10) AS n) AS nearest FROM (SELECT "
            "random_vector(i) AS v FROM generate_series(1, 20) AS i) AS q");
        server_ = std::move(server);
        if (without_ != nullptr) return;
        Builder builder;
        builder.rows("CREATE TABLE items AS TABLE pool");
        builder.rows(kBuild);
        facts_ = facts(builder);
    }

    static inline std::unique_ptr<PrivateServer> server_;
    static inline const char* without_ = nullptr;
    static inline const char* device_ = nullptr;
    /// What a walk through the index says, which is the same after each build by gputext.
    static inline std::string facts_;
};

// Pages that were written before the links were known have what the links have changed.
TEST_P(HnswBuild, WritesPagesWhileADeviceFindsLinks) {
    Builder session;
    session.rows("SET gputext.inject_fault = 'in_job:slow:500'");
    session.rows("SET log_min_messages = debug1");
    session.rows(kBuild);
    session.rows("RESET log_min_messages");
    const std::string log = server().log(), before = "; before ";
    const std::size_t said = log.rfind(before);
    ASSERT_NE(said, std::string::npos);
    const int early = std::stoi(log.substr(said + before.size()));
    const int pages = std::stoi(session.value("SELECT pages FROM hnsw_walk('items_index')"));
    EXPECT_EQ(early, std::string(GetParam()) == "gpu" ? pages : 0);
    expect_whole(session);
    const std::string bytes = bytes_of_index(session);
    session.rows("SET gputext.device = cpu");
    session.rows("REINDEX INDEX items_index");
    EXPECT_EQ(bytes_of_index(session), bytes);
}

// After a checkpoint since they were written, they are logged as a whole: the machine may end while
// they are written again.
TEST_P(HnswBuild, IsThereAfterACheckpointBeforeLinksAndTornPages) {
    if (std::string(GetParam()) == "cpu") GTEST_SKIP() << "pages are written once";
    fs::path file = server().data();
    {
        Builder session, other;
        session.rows("SET gputext.inject_fault = 'in_job:slow:1000'");
        Running running(session, kBuild);
        std::this_thread::sleep_for(500ms);
        other.rows("CHECKPOINT");
        ASSERT_EQ(running.wait(), "ok");
        file /= session.value("SELECT pg_relation_filepath('items_index')");
    }
    server().signal_server(SIGQUIT);
    ASSERT_TRUE(server().ended());
    // The meta page has no links.
    const auto size = fs::file_size(file);
    fs::resize_file(file, 8192);
    fs::resize_file(file, size);
    server().start();
    Builder session;
    expect_whole(session);
    expect_goes_on(session);
    expect_no_crash(server().log());
}

// All of it comes from WAL, as where the machine ends before its file is on disk.
TEST_P(HnswBuild, IsThereAfterAnImmediateStop) {
    for (const char* how : {"", "CONCURRENTLY "}) {
        fs::path file = server().data();
        {
            Builder session;
            session.rows("DROP TABLE items");
            session.rows("CREATE TABLE items AS TABLE pool");
            session.rows("CHECKPOINT");
            session.rows(std::string("CREATE INDEX ") + how +
                         "items_index ON items USING hnsw (v vector_l2_ops)");
            file /= session.value("SELECT pg_relation_filepath('items_index')");
        }
        server().signal_server(SIGQUIT);
        ASSERT_TRUE(server().ended());
        fs::resize_file(file, 0);
        server().start();
        Builder session;
        expect_whole(session);
        expect_goes_on(session);
    }
    expect_no_crash(server().log());
}

// What is written before a checkpoint is not logged again after it.
TEST_P(HnswBuild, IsThereAfterCheckpointsBesideIt) {
    std::atomic<bool> done{false};
    std::thread checkpoints([&] {
        try {
            Session session(server().connection());
            while (!done) session.rows("CHECKPOINT");
        } catch (const std::exception& error) {
            ADD_FAILURE() << error.what();
        }
    });
    try {
        Builder session;
        session.rows(kBuild);
        for (std::size_t i = 0; i < rounds_of_each(); ++i)
            session.rows(i % 2 == 0 ? "REINDEX INDEX CONCURRENTLY items_index"
                                    : "REINDEX INDEX items_index");
    } catch (const std::exception& error) {
        ADD_FAILURE() << error.what();
    }
    done = true;
    checkpoints.join();
    stop(SIGKILL);
    Builder session;
    expect_whole(session);
    expect_goes_on(session);
    expect_no_crash(server().log());
}

// Others see an index that is built concurrently. What they have read of it, as pg_prewarm() does,
// is not what is there in the end.
TEST_P(HnswBuild, IsReadAnewByThoseWhoReadItMeanwhile) {
    Builder session;
    Session other(server().connection(kDatabase));
    session.rows("SET gputext.inject_fault = 'in_job:slow:500'");
    for (const auto& [statement, index] :
         {std::pair{"CREATE INDEX CONCURRENTLY items_index ON items USING hnsw (v vector_l2_ops)",
                    "items_index"},
          {"REINDEX INDEX CONCURRENTLY items_index", "items_index_ccnew"}}) {
        Running running(session, statement);
        const std::string has_pages =
            std::string("SELECT pg_relation_size(to_regclass('") + index + "')) > 0";
        EXPECT_TRUE(eventually([&] { return other.value(has_pages) == "t"; }));
        EXPECT_NE(other.sqlstate(std::string("SELECT hnsw_walk('") + index + "')"), "ok");
        ASSERT_EQ(running.wait(), "ok") << session.message();
        expect_whole(other);
    }
    expect_goes_on(other);
    expect_no_crash(server().log());
}

TEST_P(HnswBuild, LetsCheckpointsBeginWhileItsTransactionGoesOn) {
    Builder session;
    session.rows("BEGIN");
    session.rows(kBuild);
    EXPECT_EQ(Builder().sqlstate("CHECKPOINT"), "ok");
    session.rows("COMMIT");
}

TEST_P(HnswBuild, ThatIsKilledLeavesNoIndex) {
    Dice dice(testing::seed());
    const auto build = time_of_build();
    for (std::size_t i = 0; i < 2 * rounds_of_each() && !HasFailure(); ++i) {
        const bool whole_server = i % 2 == 0;
        {
            Builder session;
            session.rows("DROP INDEX IF EXISTS items_index");
            Running running(session, kBuild);
            sleep_within(build, dice);
            if (whole_server) {
                server().signal_server(SIGKILL);
            } else if (!running.done()) {
                Session other(server().connection());
                send_signal(session.pid(), SIGKILL);
                // Until the server has seen it, and ends all sessions
                EXPECT_NE(other.sqlstate("SELECT pg_sleep(30)"), "ok");
            }
        }
        if (whole_server) {
            ASSERT_TRUE(server().ended());
            server().start();
        }
        const std::string where = server().connection().text;
        ASSERT_TRUE(eventually([&] { return PQping(where.c_str()) == PQPING_OK; }));
        expect_none_or_whole();
    }
}

TEST_P(HnswBuild, ThatIsCancelledLeavesWhatWasThere) {
    Dice dice(testing::seed());
    const auto build = time_of_build();
    Builder session;
    Builder other;
    const std::string pid = std::to_string(session.pid());
    const std::string phase = "SELECT phase FROM pg_stat_progress_create_index WHERE pid = " + pid +
                              " UNION ALL SELECT ''";
    std::set<std::string> cancelled;
    for (std::size_t i = 0; i < 4 * rounds_of_each() && !HasFailure(); ++i) {
        // One way to build in three replaces an index.
        const bool anew = i % 3 == 2;
        session.rows("DROP INDEX IF EXISTS items_index");
        if (anew) session.rows(kBuild);
        Running running(session, anew ? "REINDEX INDEX items_index"
                                 : i % 3 == 1
                                     ? "CREATE INDEX CONCURRENTLY items_index ON items USING hnsw "
                                       "(v vector_l2_ops)"
                                     : kBuild);
        if (i % 2 == 0)
            sleep_within(build, dice);
        else  // a short phase
            eventually([&] {
                return running.done() ||
                       other.value(phase).find("writing pages") != std::string::npos;
            });
        const std::string in = other.value(phase);
        other.rows("SELECT pg_cancel_backend(" + pid + ")");
        if (running.wait() == "57014")
            cancelled.insert(in);
        else
            EXPECT_EQ(running.wait(), "ok") << session.message();
        EXPECT_EQ(threads_of(session.pid()), 1u);
        EXPECT_EQ(foreign_descriptors(session.pid()), std::vector<std::string>());
        const bool valid = session.value(
                               "SELECT bool_and(indisvalid) FROM pg_index WHERE indexrelid "
                               "= to_regclass('items_index')") == "t";
        if (running.wait() == "ok" || anew) {
            EXPECT_TRUE(valid);
        }
        if (valid) expect_whole(session);
    }
    session.rows("DROP INDEX IF EXISTS items_index");
    session.rows(kBuild);
    expect_whole(session);
    expect_goes_on(session);
    std::printf("cancelled in: %s\n", ::testing::PrintToString(cancelled).c_str());
    expect_no_crash(server().log());
}

// Updates of a column that is in no index leave rows where the index does not point to.
TEST_P(HnswBuild, HasWhatOthersChangeMeanwhile) {
    Builder().rows("CREATE SEQUENCE IF NOT EXISTS ids START 100000");
    std::atomic<bool> done{false};
    std::vector<std::thread> writers;
    for (int number = 0; number < 2; ++number)
        writers.emplace_back([&, number] {
            try {
                Builder session;
                Dice dice(testing::seed() + static_cast<std::uint64_t>(number));
                while (!done) {
                    const std::size_t one = 1 + dice.below(3000), two = 1 + dice.below(3000);
                    // In the same order in all sessions, so that none waits for one that waits
                    const std::string id = std::to_string(std::min(one, two)),
                                      other = std::to_string(std::max(one, two));
                    session.rows("BEGIN");
                    session.rows(
                        "INSERT INTO items SELECT nextval('ids'), v, 0 FROM pool WHERE id "
                        "= " +
                        id);
                    session.rows("UPDATE items SET seen = seen + 1 WHERE id = " + id);
                    session.rows("DELETE FROM items WHERE id = " + other + " AND id % 3 = 0");
                    session.rows("UPDATE items SET v = v + random_vector(id) WHERE id = " + other +
                                 " AND id % 3 = 1");
                    session.rows(dice.percent(80) ? "COMMIT" : "ROLLBACK");
                }
            } catch (const std::exception& error) {
                ADD_FAILURE() << error.what();
            }
        });
    try {
        Builder session;
        for (std::size_t i = 0; i < rounds_of_each(); ++i) {
            session.rows(
                "CREATE INDEX CONCURRENTLY items_index ON items USING hnsw (v "
                "vector_l2_ops)");
            session.rows("REINDEX INDEX CONCURRENTLY items_index");
            session.rows("REINDEX INDEX items_index");
            if (i + 1 < rounds_of_each()) session.rows("DROP INDEX items_index");
        }
    } catch (const std::exception& error) {
        ADD_FAILURE() << error.what();
    }
    done = true;
    for (std::thread& writer : writers) writer.join();
    Builder session;
    session.rows("VACUUM items");
    EXPECT_EQ(session.value("SELECT \"rows\" - (SELECT count(*) FROM items) FROM "
                            "hnsw_walk('items_index')"),
              "0");
    session.rows("SET enable_seqscan = off");
    session.rows("SET hnsw.ef_search = 400");
    // Nearly all rows are found by their own values.
    EXPECT_LT(std::stol(session.value(
                  "SELECT count(*) FROM (SELECT * FROM items ORDER BY id DESC LIMIT 300) AS q "
                  "WHERE NOT EXISTS (SELECT FROM (SELECT i.id FROM items AS i ORDER BY i.v <-> q.v "
                  "LIMIT 100) AS n WHERE n.id = q.id)")),
              4);
    expect_goes_on(session);
    expect_no_crash(server().log());
}

TEST_P(HnswBuild, IsOnAStandbyAndThereAfterItsPromotion) {
    const auto standby = PrivateServer::standby_of(server());
    standby->start();
    Builder writer, reader(*standby);
    const auto caught_up = [&] {
        const std::string written = writer.value("SELECT pg_current_wal_flush_lsn()");
        return eventually([&] {
            return reader.value("SELECT pg_last_wal_replay_lsn() >= '" + written + "'::pg_lsn") ==
                   "t";
        });
    };
    for (const std::string& statement :
         {kBuild, std::string("REINDEX INDEX CONCURRENTLY items_index")}) {
        writer.rows(statement);
        ASSERT_TRUE(caught_up());
        expect_whole(reader);
    }
    expect_goes_on(writer);
    ASSERT_TRUE(caught_up());
    EXPECT_EQ(facts(reader), facts(writer));
    ASSERT_TRUE(promote(reader));
    reader.rows("INSERT INTO items SELECT 30000 + id, v FROM pool WHERE id <= 100");
    reader.rows("REINDEX INDEX items_index");
    EXPECT_EQ(reader.value("SELECT \"rows\" - (SELECT count(*) FROM items) FROM "
                           "hnsw_walk('items_index')"),
              "0");
    expect_no_crash(server().log());
    expect_no_crash(standby->log());
}

TEST_P(HnswBuild, OfAnUnloggedTableHasTheSameBytesAndIsEmptyAfterACrash) {
    {
        Builder session;
        session.rows("CHECKPOINT");
        session.rows("DROP TABLE items");
        session.rows("CREATE UNLOGGED TABLE items AS TABLE pool");
        session.rows("ALTER TABLE items SET (parallel_workers = 2)");
        // So that each worker has read some rows before another one is done
        session.rows(kSlowly);
        std::set<std::string> files, of_slow;
        for (const int processes : {1, 2, 3}) {
            session.rows("SET max_parallel_maintenance_workers = " + std::to_string(processes - 1));
            session.rows("SET gputext.cpu_threads = " + std::to_string(processes));
            session.rows("DROP INDEX IF EXISTS items_index, slow_index");
            session.rows(kBuild);
            session.rows(
                "CREATE INDEX slow_index ON items USING hnsw ((slowly(v)::vector(100)) "
                "vector_l2_ops) WHERE id <= 1000");
            expect_whole(session);
            session.rows("CHECKPOINT");
            // These pages have no LSN, which would differ.
            for (auto& [index, all] : {std::pair{"items_index", &files}, {"slow_index", &of_slow}})
                all->insert(session.value(std::string("SELECT md5(pg_read_binary_file("
                                                      "pg_relation_filepath('") +
                                          index + "')))"));
        }
        EXPECT_EQ(files.size(), 1u);
        EXPECT_EQ(of_slow.size(), 1u);
        session.rows("DROP INDEX slow_index");
    }
    stop(SIGKILL);
    Builder session;
    EXPECT_EQ(session.value("SELECT pages FROM hnsw_walk('items_index')"), "2");
    session.rows("INSERT INTO items TABLE pool");
    expect_goes_on(session);
    expect_no_crash(server().log());
}

// Workers that may not open the session's files leave its rows and pages to it.
TEST_P(HnswBuild, IsWholeWhereWorkersMayNotOpenItsFiles) {
    const std::string build =
        "CREATE INDEX slow_index ON items USING hnsw ((slowly(v)::vector(100)) vector_l2_ops)";
    Builder session;
    session.rows(
        "CREATE OR REPLACE FUNCTION hide_files() RETURNS void LANGUAGE c AS '$libdir/gputext', "
        "'gputext_hide_files'");
    session.rows(kSlowly);
    session.rows("ALTER TABLE items SET (parallel_workers = 2)");
    session.rows("SET max_parallel_maintenance_workers = 2");
    session.rows("SET log_min_messages = debug1");
    const auto expect_workers = [&](std::size_t logged) {
        const std::string log = server().log().substr(logged);
        EXPECT_NE(log.find("building index \"slow_index\" with 2 of 2"), std::string::npos);
        EXPECT_NE(log.find("writing pages in 2 of 2"), std::string::npos);
    };
    std::string expected;
    for (const bool hidden : {false, true}) {
        if (hidden) session.rows("SELECT hide_files()");
        const std::size_t logged = server().log().size();
        session.rows(build);
        expect_workers(logged);
        EXPECT_EQ(session.value("SELECT \"rows\" FROM hnsw_walk('slow_index')"), "3000");
        const std::string found = facts(session, "slow_index");
        if (!hidden) expected = found;
        EXPECT_EQ(found, expected);
        session.rows("DROP INDEX slow_index");
    }
    expect_no_crash(server().log());
}

/// A small file system; only root may make one.
class SmallDisk {
public:
    SmallDisk(const fs::path& place, const fs::path& like) : place_(place) {
        fs::create_directory(place);
        mounted_ = mount("none", place.c_str(), "tmpfs", 0, "size=512k") == 0;
        struct stat found;
        if (stat(like.c_str(), &found) != 0 ||
            chown(place.c_str(), found.st_uid, found.st_gid) != 0)
            throw std::runtime_error("cannot give " + place.string() + " to the server's user");
    }
    ~SmallDisk() {
        if (mounted_) umount2(place_.c_str(), MNT_DETACH);
    }
    SmallDisk(const SmallDisk&) = delete;

    bool mounted() const { return mounted_; }

private:
    fs::path place_;
    bool mounted_;
};

TEST_P(HnswBuild, ThatFindsTheDiskFullLeavesNoIndex) {
    const fs::path place = server().root() / "small";
    const SmallDisk disk(place, server().data());
    if (!disk.mounted()) GTEST_SKIP() << "no right to mount a file system";
    Builder session;
    session.rows("CREATE TABLESPACE small LOCATION '" + place.string() + "'");
    const std::string into_it = "full_index ON items USING hnsw (v vector_l2_ops) TABLESPACE small";
    EXPECT_EQ(session.sqlstate("CREATE INDEX CONCURRENTLY " + into_it), "53100")
        << session.message();
    session.rows("DROP INDEX full_index");
    session.rows("BEGIN");
    session.rows("SAVEPOINT before");
    EXPECT_EQ(session.sqlstate("CREATE INDEX " + into_it), "53100") << session.message();
    session.rows("ROLLBACK TO before");
    EXPECT_EQ(Builder().sqlstate("CHECKPOINT"), "ok");
    session.rows("COMMIT");
    session.rows(
        "CREATE INDEX part_index ON items USING hnsw (v vector_l2_ops) TABLESPACE small "
        "WHERE id <= 500");
    EXPECT_EQ(session.value("SELECT \"rows\" FROM hnsw_walk('part_index')"), "500");
    session.rows("DROP INDEX part_index");
    session.rows(kBuild);
    expect_whole(session);
    session.rows("CHECKPOINT");  // after which the files are gone
    session.rows("DROP TABLESPACE small");
    expect_no_crash(server().log());
}

// With the least WAL, what such a transaction writes is not logged but written at its end. Last, as
// the server stays so.
TEST_P(HnswBuild, OfATransactionThatWroteNoWalIsThereAfterAnImmediateStop) {
    server().configure("wal_level = minimal\nmax_wal_senders = 0\n");
    stop(SIGINT);
    // The file is synchronized, or logged after all.
    for (const char* threshold : {"16kB", "1GB"}) {
        {
            Builder session;
            session.rows(std::string("SET wal_skip_threshold = '") + threshold + "'");
            session.rows("BEGIN");
            session.rows("DROP TABLE items");
            session.rows("CREATE TABLE items AS TABLE pool");
            const std::string before = session.value("SELECT pg_current_wal_insert_lsn()");
            session.rows(kBuild);
            EXPECT_LT(std::stol(session.value("SELECT pg_current_wal_insert_lsn() - '" + before +
                                              "'::pg_lsn")),
                      std::stol(session.value("SELECT pg_relation_size('items_index')")));
            session.rows("COMMIT");
        }
        stop(SIGQUIT);
        Builder session;
        expect_whole(session);
        expect_goes_on(session);
    }
    expect_no_crash(server().log());
}

INSTANTIATE_TEST_SUITE_P(Devices, HnswBuild, ::testing::Values("cpu", "gpu"),
                         [](const auto& each) { return std::string(each.param); });

}  // namespace
}  // namespace gputext::live
