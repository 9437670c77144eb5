// Indexes are built while sessions change the table, by several processes, in the transaction of
// the table, and on temporary tables; builds are cancelled. The index that is there in the end
// finds what the table has.
//
// Tables of many pages and of several models need their size; it is the searches of them that take
// time, most of it without the index. The quick check has fewer of these, as other tests search
// small tables in all ways.

#include <set>

#include "tests/live/index_use.hpp"
#include "tests/live/live_test.hpp"
#include "tests/live/plain_session.hpp"
#include "tests/support/test_size.hpp"

namespace gputext::live {
namespace {

constexpr std::size_t kPool = 400, kRows = 800;

/// A document unchanged, after 2 ms.
const char* const kSlowly =
    "CREATE FUNCTION slowly(text) RETURNS text IMMUTABLE STRICT PARALLEL SAFE LANGUAGE plpgsql AS "
    "$$ BEGIN PERFORM pg_sleep(0.002); RETURN $1; END $$";

class IndexBuild : public LiveTest {
protected:
    void SetUp() override {
        LiveTest::SetUp();
        if (HasFatalFailure()) return;
        create_pool(session(), kPool);
        session().rows("CREATE TABLE docs (id integer, part integer, body text, seen integer)");
    }

    void fill() {
        session().rows(
            "INSERT INTO docs SELECT i, i % 3, body, 0 FROM pool, "
            "generate_series(id, 799, 400) AS i");
        session().rows("ANALYZE docs");
    }

    /// Other tables docs and pool, of documents of several kinds.
    void fill_with_kinds() {
        session().rows("DROP TABLE docs, pool");
        create_kinds(session());
        create_pool_of_kinds(session(), kPool);
    }

    void expect_index_finds_all_of_some(std::size_t searches = testing::rounds(2, 5),
                                        std::size_t documents = 8) {
        Dice dice(testing::seed());
        std::size_t found = 0;
        for (std::size_t i = 0; i < searches; ++i)
            found += expect_index_finds_all(session(), dice, kPool, {}, documents);
        EXPECT_GT(found, 0u);
        expect_sound(session());
    }

    /// Where the session is in CREATE INDEX, as others see it.
    std::string progress(int pid, const std::string& column) {
        const pqxx::result found =
            other().rows("SELECT " + column +
                         " FROM pg_stat_progress_create_index WHERE pid = " + std::to_string(pid));
        return found.empty() || found[0][0].is_null() ? "" : found[0][0].c_str();
    }
};

TEST_F(IndexBuild, ConcurrentlyFindsWhatOthersHaveChangedMeanwhile) {
    const std::string path = "SET search_path = " + schema() + ", public";
    std::atomic<bool> stop{false};
    std::vector<std::thread> threads;
    for (std::size_t number = 0; number < 2; ++number)
        threads.emplace_back([&, number] {
            try {
                Session own;
                own.rows(path);
                Dice dice(testing::seed() + number);
                RandomChanges changes(own, dice, kPool, kRows / 2, "body", number, 2);
                while (!stop) dice.percent(40) ? changes.transaction() : changes.change();
            } catch (const std::exception& error) {
                ADD_FAILURE() << error.what();
            }
        });
    try {
        Dice dice(testing::seed());
        for (int round = 0; round < testing::rounds(2, 3) && !HasFailure(); ++round) {
            session().rows("SET max_parallel_maintenance_workers = " + std::to_string(round % 3));
            session().rows("SET min_parallel_table_scan_size = 0");
            session().rows("CREATE INDEX CONCURRENTLY docs_index ON docs USING gputext (body)");
            expect_index_finds_all(session(), dice, kPool);
            session().rows("REINDEX INDEX CONCURRENTLY docs_index");
            expect_index_finds_all(session(), dice, kPool);
            session().rows("VACUUM docs");
            expect_index_finds_all(session(), dice, kPool);
            if (round % 4 == 0) expect_sound(session());
            // Of the table, PostgreSQL 18.6 also makes the index of its TOAST table anew, and other
            // sessions then find "no valid index" there, or miss chunks, without gputext, too.
            session().rows(session().value("SHOW server_version_num") < "180000"
                               ? "REINDEX TABLE CONCURRENTLY docs"
                               : "REINDEX INDEX CONCURRENTLY docs_index");
            for (int i = 0; i < 3; ++i) expect_index_finds_all(session(), dice, kPool);
            session().rows("DROP INDEX CONCURRENTLY docs_index");
        }
        session().rows("CREATE INDEX CONCURRENTLY docs_index ON docs USING gputext (body)");
    } catch (const std::exception& error) {
        ADD_FAILURE() << error.what();
    }
    stop = true;
    for (std::thread& thread : threads) thread.join();
    expect_index_finds_all_of_some();
}

TEST_F(IndexBuild, ByAnyNumberOfProcessesFindsTheSame) {
    fill();
    // ANALYZE would write its own estimate of the number of rows.
    session().rows("ALTER TABLE docs SET (autovacuum_enabled = off)");
    session().rows(kSlowly);
    session().rows("SET min_parallel_table_scan_size = 0");
    session().rows("SET maintenance_work_mem = '256MB'");
    for (const int workers : {0, 1, 2}) {
        session().rows("ALTER TABLE docs SET (parallel_workers = " + std::to_string(workers) + ")");
        session().rows("SET max_parallel_maintenance_workers = " + std::to_string(workers));
        for (const char* how : {"", "CONCURRENTLY "}) {
            const int pid = session().pid();
            Running build(session(), std::string("CREATE INDEX ") + how +
                                         "docs_index ON docs USING gputext (slowly(body))");
            std::size_t most = 0;
            std::set<std::string> phases;
            long done = 0;
            while (!build.done()) {
                most = std::max<std::size_t>(
                    most, std::stoul(other().value(
                              "SELECT count(*) FROM pg_stat_activity WHERE backend_type = "
                              "'parallel worker' AND leader_pid = " +
                              std::to_string(pid))));
                phases.insert(progress(pid, "phase"));
                const std::string tuples = progress(pid, "tuples_done");
                if (!tuples.empty()) done = std::max(done, std::stol(tuples));
                std::this_thread::sleep_for(1ms);
            }
            ASSERT_EQ(build.wait(), "ok") << session().message();
            EXPECT_EQ(most, static_cast<std::size_t>(workers)) << how;
            EXPECT_GT(done, 0);
            EXPECT_TRUE(phases.contains("building index: reading table and sketching documents"))
                << ::testing::PrintToString(phases);
            for (const std::string& phase : phases)
                if (phase.rfind("building index: ", 0) == 0) {
                    EXPECT_TRUE(phase == "building index: initializing" ||
                                phase == "building index: sampling documents" ||
                                phase == "building index: reading table and sketching documents" ||
                                phase == "building index: writing directory")
                        << phase;
                }
            EXPECT_EQ(
                session().value("SELECT reltuples FROM pg_class WHERE oid = 'docs'::regclass"),
                session().value("SELECT count(*) FROM docs"))
                << how;
            session().rows("DROP INDEX docs_index");
            session().rows(std::string("CREATE INDEX ") + how +
                           "docs_index ON docs USING gputext (body)");
            expect_index_finds_all_of_some();
            EXPECT_EQ(session().value("SELECT reltuples FROM pg_class WHERE relname = "
                                      "'docs_index' AND relnamespace = '" +
                                      schema() + "'::regnamespace"),
                      session().value("SELECT count(body) FROM docs"));
            session().rows("DROP INDEX docs_index");
        }
    }
}

// The number of pages of a group is passed: by inserts, and by builds in several processes and in
// one, which writes its own part in the same way. The quick check leaves the last one out.
TEST_F(IndexBuild, HasSeveralDirectories) {
    const auto text = [](const std::string& i) {
        return "md5((" + i + " / 3)::text) || " + i + " % 3 || repeat('x', " + i + " / 3 % 40)";
    };
    session().rows("UPDATE pool SET body = " + text("(id * 300)"));
    session().rows("SET min_parallel_table_scan_size = 0");
    session().rows("SET maintenance_work_mem = '256MB'");
    const std::string rows =
        "INSERT INTO docs SELECT i, i % 3, " + text("i") + ", 0 FROM generate_series(0, ";
    const std::string create =
        "CREATE INDEX docs_index ON docs USING gputext (body) WITH (bins = 1024)";
    const std::size_t documents = testing::rounds(5, 8);
    std::vector<int> several = {-1, 2};
    if (testing::tests_are_long()) several.push_back(0);
    for (const int workers : several) {
        session().rows("TRUNCATE docs");
        if (workers < 0) {
            // Fifteen sketches a page, 4076 pages behind each directory
            session().rows(create);
            session().rows(rows + "64999) AS i");
        } else {
            session().rows("DROP INDEX docs_index");
            // Models that are learned from these documents have half as many bins.
            session().rows(rows + "124999) AS i");
            session().rows("SET max_parallel_maintenance_workers = " + std::to_string(workers));
            session().rows(create);
        }
        EXPECT_GT(std::stol(session().value("SELECT pg_relation_size('docs_index') / 8192")), 4100);
        expect_index_finds_all_of_some(testing::rounds(2, 3), documents);
        session().rows("DELETE FROM docs WHERE id % 5 > 1 OR id BETWEEN 15000 AND 30000");
        vacuum("docs");
        expect_index_finds_all_of_some(2, documents);
        const std::string size = session().value("SELECT pg_relation_size('docs_index')");
        session().rows("INSERT INTO docs SELECT i, 0, " + text("i") +
                       ", 1 FROM generate_series(15000, 30000) AS i");
        EXPECT_EQ(session().value("SELECT pg_relation_size('docs_index')"), size);
        expect_index_finds_all_of_some(2, documents);
    }
}

TEST_F(IndexBuild, HasSeveralModels) {
    fill_with_kinds();
    const auto expect_some = [&] {
        expect_index_finds_all_of_some(testing::rounds(2, 5), testing::rounds(4, 8));
    };
    session().rows("SET min_parallel_table_scan_size = 0");
    session().rows("SET maintenance_work_mem = '256MB'");
    std::vector<int> several = {2};
    if (testing::tests_are_long()) several.push_back(0);
    for (const int workers : several) {
        session().rows("SET max_parallel_maintenance_workers = " + std::to_string(workers));
        session().rows("CREATE INDEX docs_index ON docs USING gputext (body)");
        EXPECT_GT(models_of(session()), 1);
        expect_some();
        // More of each kind, and of kinds that the models were not learned from
        session().rows("INSERT INTO docs SELECT i, 0, " + kind_of_document("(i * 7)") +
                       ", 1 FROM generate_series(1, 3000) AS i");
        session().rows(
            "INSERT INTO docs SELECT i, 0, repeat(chr(900 + i % 90), i % 50), 1 "
            "FROM generate_series(1, 3000) AS i");
        expect_some();
        session().rows("DELETE FROM docs WHERE id % 3 = 1 OR id BETWEEN 5000 AND 30000");
        vacuum("docs");
        expect_some();
        const std::string size = session().value("SELECT pg_relation_size('docs_index')");
        session().rows("INSERT INTO docs SELECT i, 0, " + kind_of_document("i") +
                       ", 1 FROM generate_series(5000, 30000) AS i");
        EXPECT_EQ(session().value("SELECT pg_relation_size('docs_index')"), size);
        expect_some();
        session().rows("REINDEX INDEX docs_index");
        EXPECT_GT(models_of(session()), 1);
        expect_some();
        session().rows("DROP INDEX docs_index");
    }
}

// A session that knows an index with several models goes on when others have made it anew.
TEST_F(IndexBuild, HasOtherModelsWhereItIsMadeAnewFromOtherDocuments) {
    fill_with_kinds();
    session().rows("CREATE INDEX docs_index ON docs USING gputext (body)");
    const int several = models_of(session());
    EXPECT_GT(several, 1);
    expect_index_finds_all_of_some();
    session().rows("BEGIN");
    session().rows("DELETE FROM docs WHERE id > 1000");
    session().rows("REINDEX INDEX docs_index");
    Dice dice(testing::seed());
    EXPECT_GT(expect_index_finds_all(session(), dice, kPool, {}, 300, false), 0u);
    session().rows("ROLLBACK");
    expect_index_finds_all_of_some();
    EXPECT_EQ(models_of(session()), several);
    other().rows("DELETE FROM docs WHERE id > 20000");
    other().rows("REINDEX INDEX docs_index");
    EXPECT_EQ(models_of(session()), 1);
    for (int i = 0; i < 3; ++i) expect_index_finds_all(session(), dice, kPool, {}, 100);
    expect_sound(session());
    other().rows("TRUNCATE docs");
    expect_index_finds_all(session(), dice, kPool);
    session().rows("INSERT INTO docs SELECT id, 0, body, 0 FROM pool, generate_series(1, 3)");
    expect_index_finds_all_of_some();
}

TEST_F(IndexBuild, CancelledLeavesNothingBehind) {
    fill();
    session().rows(kSlowly);
    session().rows("INSERT INTO docs SELECT d.* FROM docs d, generate_series(1, 4)");
    PlainSession builder;
    builder.run("SET search_path = " + schema() + ", public");
    builder.run("SET client_min_messages = warning");
    builder.run("SET min_parallel_table_scan_size = 0");
    builder.run("SET maintenance_work_mem = '256MB'");
    Dice dice(testing::seed());
    int cancelled = 0;
    for (int i = 0; i < 12; ++i) {
        const bool concurrently = i % 3 == 2;
        builder.run("SET max_parallel_maintenance_workers = " + std::to_string(i % 2 * 2));
        Running build(builder, std::string("CREATE INDEX ") +
                                   (concurrently ? "CONCURRENTLY docs_index" : "docs_index") +
                                   " ON docs USING gputext (" +
                                   (i % 4 < 2 ? "slowly(body)" : "body") + ")");
        EXPECT_TRUE(eventually([&] { return build.done() || is_active(other(), builder.pid()); }));
        std::this_thread::sleep_for(std::chrono::milliseconds(dice.below(100)));
        other().rows("SELECT pg_cancel_backend(" + std::to_string(builder.pid()) + ")");
        const std::string state = build.wait();
        EXPECT_TRUE(state == "57014" || state == "ok") << state << builder.message();
        cancelled += state == "57014";
        const std::string there = other().value("SELECT to_regclass('docs_index')");
        EXPECT_TRUE(there == "NULL" || state == "ok" || concurrently) << there;
        builder.run("DROP INDEX IF EXISTS docs_index");
        EXPECT_EQ(threads_of(builder.pid()), 1u);
    }
    EXPECT_GT(cancelled, 3);
    session().rows("CREATE INDEX docs_index ON docs USING gputext (body)");
    expect_index_finds_all_of_some(3);
}

// ---- Other indexes of the same name to a session that knows the first one ----

TEST_F(IndexBuild, IsForgottenWhereTheIndexHasOtherPages) {
    session().rows("CREATE INDEX docs_index ON docs USING gputext (body)");
    Dice dice(testing::seed());
    RandomChanges changes(session(), dice, kPool, kRows);
    const auto change = [&] {
        for (int i = 0; i < 15; ++i) changes.change();
        expect_index_finds_all(session(), dice, kPool);
    };
    change();
    for (const char* statement :
         {"REINDEX INDEX docs_index", "VACUUM FULL docs", "TRUNCATE docs",
          "ALTER INDEX docs_index SET (bins = 64)", "REINDEX INDEX docs_index",
          "ALTER INDEX docs_index SET (bins = 1024)", "TRUNCATE docs",
          "ALTER TABLE docs ALTER part TYPE bigint", "ALTER TABLE docs SET UNLOGGED",
          "ALTER TABLE docs SET LOGGED"}) {
        SCOPED_TRACE(statement);
        for (const char* end : {"ROLLBACK", "COMMIT"}) {
            if (std::string(statement).rfind("VACUUM", 0) == 0) {
                session().rows(statement);
                change();
                continue;
            }
            session().rows("BEGIN");
            session().rows(statement);
            for (int i = 0; i < 5; ++i) changes.change();
            expect_index_finds_all(session(), dice, kPool, {}, 8, false);
            session().rows(end);
            change();
        }
        expect_sound(session());
    }
}

TEST_F(IndexBuild, OfATemporaryTable) {
    for (const char* at_end : {"PRESERVE ROWS", "DELETE ROWS"}) {
        session().rows(
            "CREATE TEMPORARY TABLE docs (id integer, part integer, body text, seen integer) "
            "ON COMMIT " +
            std::string(at_end));
        session().rows("CREATE INDEX docs_index ON docs USING gputext (body)");
        Dice dice(testing::seed());
        RandomChanges changes(session(), dice, kPool, kRows);
        for (int i = 0; i < 10; ++i) {
            session().rows("BEGIN");
            for (int j = 0; j < 10; ++j) changes.change();
            EXPECT_GT(expect_index_finds_all(session(), dice, kPool, {}, 20, false), 0u);
            session().rows(i % 2 == 0 ? "COMMIT" : "ROLLBACK");
            expect_index_finds_all(session(), dice, kPool);
            session().rows("VACUUM docs");
        }
        expect_sound(session());
        session().rows("TRUNCATE docs");
        EXPECT_EQ(expect_index_finds_all(session(), dice, kPool), 0u);
        expect_sound(session());
        session().rows("DROP TABLE pg_temp.docs");
    }
}

}  // namespace
}  // namespace gputext::live
