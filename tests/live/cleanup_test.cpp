// What a statement took is given back, however it ends: temporary files, descriptors, threads and
// memory. Rows that spill into a temporary file give the same answers.

#include "tests/live/live_test.hpp"

namespace gputext::live {
namespace {

const std::string kSmall =
    "near_duplicates('SELECT i::bigint, (i % 5)::text || repeat(''x'', 20) "
    "FROM generate_series(1, 200) i', threshold => 0.02)";

std::string failing(const std::string& condition) {
    return "SELECT count(*) FROM near_duplicates($$SELECT i::bigint, repeat('x', 100000), "
           "CASE WHEN " +
           condition + " THEN NULL::ctph END FROM generate_series(1, 200) i$$)";
}

class Cleanup : public LiveTest {};

TEST_F(Cleanup, NothingIsLeftAfterSuccess) {
    for (const char* limit : {"1GB", "1MB"}) {
        session().rows(std::string("SET gputext.host_memory_limit = '") + limit + "'");
        session().rows(failing("true"));
        expect_nothing_left(session().pid(), limit);
    }
}

TEST_F(Cleanup, NothingIsLeftAfterAnErrorInTheInnerQuery) {
    for (const char* limit : {"1GB", "1MB"}) {
        session().rows(std::string("SET gputext.host_memory_limit = '") + limit + "'");
        EXPECT_EQ(session().sqlstate(failing("1 / (150 - i) > 0")), "22012");
        expect_nothing_left(session().pid(), limit);
        EXPECT_EQ(session().value("SELECT 1"), "1");
    }
}

TEST_F(Cleanup, NothingIsLeftAfterAnErrorThatIsCaught) {
    session().rows("SET gputext.host_memory_limit = '1MB'");
    session().rows("BEGIN");
    session().rows("SAVEPOINT s");
    EXPECT_EQ(session().sqlstate(failing("1 / (150 - i) > 0")), "22012");
    session().rows("ROLLBACK TO s");
    expect_nothing_left(session().pid(), "a savepoint");
    session().rows(
        "DO $do$BEGIN PERFORM * FROM near_duplicates($$SELECT i::bigint, "
        "repeat('x', 100000 + 1 / (150 - i)) FROM generate_series(1, 200) i$$);"
        "EXCEPTION WHEN division_by_zero THEN NULL; END$do$");
    expect_nothing_left(session().pid(), "an exception block");
    EXPECT_EQ(session().value("SELECT count(*) FROM " + kSmall), "3900");
    session().rows("COMMIT");
}

TEST_F(Cleanup, NothingIsLeftAfterACancelThatIsCaught) {
    session().rows("BEGIN");
    Running statement(session(), "DO $do$BEGIN PERFORM * FROM " + kFarDocuments +
                                     "; EXCEPTION WHEN query_canceled THEN NULL; END$do$");
    ASSERT_TRUE(eventually([&] { return threads_of(session().pid()) > 1; }));
    other().rows("SELECT pg_cancel_backend(" + std::to_string(session().pid()) + ")");
    ASSERT_EQ(statement.wait(), "ok");
    expect_nothing_left(session().pid(), "a caught cancel");
    EXPECT_EQ(session().value("SELECT count(*) FROM " + kSmall), "3900");
    session().rows("COMMIT");
}

TEST_F(Cleanup, NothingIsLeftByACursorThatIsReadInPart) {
    session().rows("SET gputext.host_memory_limit = '1MB'");
    session().rows("BEGIN");
    session().rows(
        "DECLARE c CURSOR FOR SELECT * FROM near_duplicates($$SELECT i::bigint, "
        "repeat('x', 10000) FROM generate_series(1, 300) i$$)");
    EXPECT_EQ(session().rows("FETCH 10 FROM c").size(), 10u);
    // What the rows were computed from is gone already; the rows fit in memory.
    expect_nothing_left(session().pid(), "a FETCH");
    session().rows("CLOSE c");
    expect_nothing_left(session().pid(), "a CLOSE");
    EXPECT_EQ(session().value("SELECT 1"), "1");
    session().rows("COMMIT");
}

TEST_F(Cleanup, CallsOfOneTransactionDoNotPileUpFiles) {
    session().rows("SET gputext.host_memory_limit = '1MB'");
    const std::string role = new_role("spiller");
    session().rows("BEGIN");
    // What one call has spilled must be gone before the next one, or the limit is passed.
    session().rows("SET temp_file_limit = '5MB'");
    session().rows("SET LOCAL ROLE " + role);
    EXPECT_EQ(session().sqlstate("DO $do$BEGIN FOR n IN 1..10 LOOP PERFORM * FROM near_duplicates("
                                 "'SELECT i::bigint, repeat(md5(i::text), 1000) "
                                 "FROM generate_series(1, 100) i'); END LOOP; END$do$"),
              "ok")
        << session().message();
    session().rows("ROLLBACK");
}

TEST_F(Cleanup, MemoryIsGivenBackAfterCancelsAndErrors) {
    const auto cancel_one = [&] {
        Running statement(session(), "SELECT count(*) FROM " + kFarDocuments);
        ASSERT_TRUE(eventually([&] { return threads_of(session().pid()) > 1; }));
        std::this_thread::sleep_for(100ms);
        other().rows("SELECT pg_cancel_backend(" + std::to_string(session().pid()) + ")");
        ASSERT_EQ(statement.wait(), "57014");
        EXPECT_EQ(session().sqlstate(failing("1 / (150 - i) > 0")), "22012");
    };
    for (int i = 0; i < 2; ++i) cancel_one();
    const long before = resident_of(session().pid());
    for (int i = 0; i < 6; ++i) cancel_one();
    // The documents of one statement alone are 13 MB.
    EXPECT_LT(resident_of(session().pid()), before + 20000);
}

TEST_F(Cleanup, ManyCallsDoNotGrowTheProcess) {
    const std::string calls =
        "DO $do$BEGIN FOR n IN 1..200 LOOP PERFORM * FROM near_duplicates("
        "'SELECT i::bigint, repeat(md5(i::text), 100) "
        "FROM generate_series(1, 50) i'); END LOOP; END$do$";
    session().rows(calls);
    const std::size_t descriptors = count_entries(proc(session().pid()) / "fd");
    const long before = resident_of(session().pid());
    session().rows(calls);
    EXPECT_EQ(count_entries(proc(session().pid()) / "fd"), descriptors);
    EXPECT_LT(resident_of(session().pid()), before + 4000);
    expect_nothing_left(session().pid(), "400 calls");
}

// ---- Spilling ----

class Spill : public LiveTest {
protected:
    /// 30 MB in documents of many sizes, the empty one, near copies, and uuids as ids.
    void SetUp() override {
        LiveTest::SetUp();
        if (HasFatalFailure()) return;
        session().rows(
            "CREATE TABLE documents AS SELECT md5(i::text)::uuid AS id, i::bigint AS n, "
            "repeat(md5((i / 3)::text), i % 300) || i AS body "
            "FROM generate_series(0, 6000) i");
        session().rows(
            "INSERT INTO documents VALUES (md5('a')::uuid, -1, ''), "
            "(md5('b')::uuid, -2, '')");
    }

    std::string answer(const char* limit, const std::string& call) {
        session().rows(std::string("SET gputext.host_memory_limit = '") + limit + "'");
        return session().table("SELECT * FROM " + call + " ORDER BY 1, 2, 3");
    }

    long temporary_bytes() {
        return std::stol(
            other().value("SELECT temp_bytes FROM pg_stat_database "
                          "WHERE datname = current_database()"));
    }
};

TEST_F(Spill, GivesTheSameAnswerAndUsesAFile) {
    const std::string calls[] = {
        "near_duplicates('SELECT n, body FROM documents')",
        "near_duplicates('SELECT n, body FROM documents', mode => 'exact', threshold => 0.1)",
        "near_duplicates('SELECT id, body FROM documents', NULL::uuid)",
        "near_duplicates('SELECT body, body FROM documents', NULL::text)",
        "near_duplicate_groups('SELECT n, body::bytea FROM documents')"};
    for (const std::string& call : calls) {
        const std::string in_memory = answer("1GB", call);
        ASSERT_GT(in_memory.size(), 1000u) << call;
        const long before = temporary_bytes();
        EXPECT_TRUE(answer("1MB", call) == in_memory) << call;
        expect_nothing_left(session().pid(), call);
        session().rows("SELECT pg_stat_force_next_flush()");
        EXPECT_TRUE(eventually([&] { return temporary_bytes() > before + 20000000; })) << call;
    }
}

TEST_F(Spill, InMemoryNeedsNoFile) {
    session().rows("SET gputext.host_memory_limit = '1GB'");
    session().rows("SET work_mem = '100MB'");
    session().rows("SELECT pg_stat_force_next_flush()");
    const long before = temporary_bytes();
    session().rows("SELECT count(*) FROM near_duplicates('SELECT n, body FROM documents')");
    session().rows("SELECT pg_stat_force_next_flush()");
    EXPECT_EQ(temporary_bytes(), before);
}

TEST_F(Spill, TempFileLimitEndsIt) {
    const std::string role = new_role("spiller");
    session().rows("GRANT SELECT ON documents TO " + role);
    session().rows("ALTER ROLE " + role + " SET temp_file_limit = '10MB'");
    Session ordinary(role);
    ordinary.rows("SET gputext.host_memory_limit = '1MB'");
    const std::string statement =
        "SELECT count(*) FROM near_duplicates('SELECT n, body FROM documents')";
    EXPECT_EQ(ordinary.sqlstate(statement), "53400") << ordinary.message();
    expect_nothing_left(ordinary.pid(), "temp_file_limit");
    ordinary.rows("SET gputext.host_memory_limit = '1GB'");
    EXPECT_EQ(ordinary.sqlstate(statement), "ok") << ordinary.message();
}

}  // namespace
}  // namespace gputext::live
