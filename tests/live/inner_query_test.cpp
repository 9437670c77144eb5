// The inner query: parallel workers, snapshots, rights, and what it may not do.

#include <cstdio>

#include "tests/live/live_test.hpp"

namespace gputext::live {
namespace {

class InnerQuery : public LiveTest {
protected:
    std::string groups(const std::string& query) {
        return "SELECT group_id, count(*) FROM near_duplicate_groups($$" + query +
               "$$, threshold => 0.001) GROUP BY 1 ORDER BY 1";
    }
};

// ---- Parallel plans ----

// Each document says which process made it, so the groups are the processes.
TEST_F(InnerQuery, RunsInParallelWorkers) {
    session().rows(
        "CREATE FUNCTION here(bigint) RETURNS text LANGUAGE plpgsql PARALLEL SAFE AS "
        "'BEGIN RETURN pg_backend_pid(); END'");
    session().rows("CREATE TABLE many AS SELECT i::bigint AS id FROM generate_series(1, 50000) i");
    session().rows("ALTER TABLE many SET (parallel_workers = 2)");
    session().rows("ANALYZE many");
    session().rows("SET parallel_setup_cost = 0");
    session().rows("SET parallel_tuple_cost = 0");
    session().rows("SET min_parallel_table_scan_size = 0");
    // Without the leader: every process that made a document is a worker then.
    session().rows("SET parallel_leader_participation = off");
    session().rows(
        "CREATE TABLE of_leader AS SELECT 0::bigint AS id, pg_backend_pid()::text AS pid");
    // The leader's own document is then near none that workers made, and near all that it makes.
    const std::string with_leader =
        groups("SELECT id, here(id) FROM many UNION ALL SELECT id, pid FROM of_leader");
    const pqxx::result beside = session().rows(with_leader);
    long rows = 0;
    bool leader_made_none = false;
    for (const auto& row : beside) {
        rows += row[1].as<long>();
        if (row[0].as<long>() == 0) leader_made_none = row[1].as<long>() == 1;
    }
    EXPECT_TRUE(leader_made_none);
    EXPECT_EQ(rows, 50001);
    EXPECT_GE(beside.size(), 2u);

    session().rows("SET max_parallel_workers_per_gather = 0");
    EXPECT_EQ(session().table(with_leader), "0|50001\n");
}

TEST_F(InnerQuery, WithWorkersGivesTheSameAnswer) {
    session().rows(
        "CREATE TABLE d AS SELECT i::bigint AS id, md5((i / 2)::text) AS body "
        "FROM generate_series(1, 20000) i");
    session().rows("ANALYZE d");
    session().rows("SET max_parallel_workers_per_gather = 0");
    const std::string pairs =
        "SELECT least(id1, id2), greatest(id1, id2), edit_rate FROM "
        "near_duplicates('SELECT id, body FROM d', threshold => 0.001) "
        "ORDER BY 1, 2";
    const std::string serial = session().table(pairs);
    session().rows("SET max_parallel_workers_per_gather = 2");
    session().rows("SET parallel_setup_cost = 0");
    session().rows("SET parallel_tuple_cost = 0");
    session().rows("SET min_parallel_table_scan_size = 0");
    EXPECT_TRUE(session().table(pairs) == serial);
}

// ---- Snapshots ----

TEST_F(InnerQuery, SeesWhatItsStatementSees) {
    session().rows("CREATE TABLE d (id bigint, body text)");
    const std::string count =
        "SELECT count(*) FROM near_duplicate_groups('SELECT id, body FROM d')";
    session().rows("BEGIN ISOLATION LEVEL REPEATABLE READ");
    EXPECT_EQ(session().value(count), "0");
    other().rows("INSERT INTO d VALUES (1, 'one')");
    EXPECT_EQ(session().value(count), "0") << "REPEATABLE READ saw a later commit";
    session().rows("INSERT INTO d VALUES (2, 'mine')");
    EXPECT_EQ(session().value(count), "1") << "rows of the same transaction are to be seen";
    session().rows("ROLLBACK");

    session().rows("BEGIN ISOLATION LEVEL READ COMMITTED");
    EXPECT_EQ(session().value(count), "1");
    other().rows("INSERT INTO d VALUES (3, 'three')");
    EXPECT_EQ(session().value(count), "2") << "READ COMMITTED did not see an earlier commit";
    session().rows("INSERT INTO d VALUES (4, 'mine')");
    EXPECT_EQ(session().value(count), "3");
    session().rows("COMMIT");
}

TEST_F(InnerQuery, DoesNotSeeRowsThatItsOwnStatementInserts) {
    session().rows("CREATE TABLE d (id bigint, body text)");
    session().rows("INSERT INTO d VALUES (1, 'one')");
    session().rows(
        "INSERT INTO d SELECT id + 1, 'new' FROM "
        "near_duplicate_groups('SELECT id, body FROM d')");
    EXPECT_EQ(session().value("SELECT count(*) FROM d"), "2");
}

// ---- Rights ----

TEST_F(InnerQuery, HasItsCallersRights) {
    session().rows("CREATE TABLE d (id bigint, body text, owner text)");
    const std::string alice = new_role("alice");
    const std::string bob = new_role("bob");
    const std::string eve = new_role("eve");
    session().rows("INSERT INTO d SELECT i, 'same', CASE WHEN i <= 2 THEN '" + alice + "' ELSE '" +
                   bob + "' END FROM generate_series(1, 5) i");
    session().rows("ALTER TABLE d ENABLE ROW LEVEL SECURITY");
    session().rows("CREATE POLICY own ON d USING (owner = current_user)");
    session().rows("GRANT SELECT ON d TO " + alice + ", " + bob);
    session().rows(
        "CREATE FUNCTION all_pairs() RETURNS bigint LANGUAGE sql SECURITY DEFINER AS "
        "'SELECT count(*) FROM near_duplicates(''SELECT id, body FROM " +
        schema() + ".d'')'");

    const std::string count = "SELECT count(*) FROM near_duplicates('SELECT id, body FROM d')";
    EXPECT_EQ(session().value(count), "10");
    {
        Session as_alice(alice);
        EXPECT_EQ(as_alice.value(count), "1");
        EXPECT_EQ(as_alice.value("SELECT all_pairs()"), "10");
        EXPECT_EQ(as_alice.value(count), "1");
    }
    {
        Session as_bob(bob);
        EXPECT_EQ(as_bob.value(count), "3");
    }
    {
        Session as_eve(eve);
        EXPECT_EQ(as_eve.sqlstate(count), "42501") << as_eve.message();
        EXPECT_EQ(as_eve.value("SELECT all_pairs()"), "10");
        EXPECT_EQ(as_eve.sqlstate(count), "42501") << as_eve.message();
    }
    // A role that changes within one session.
    session().rows("SET ROLE " + alice);
    EXPECT_EQ(session().value(count), "1");
    session().rows("RESET ROLE");
    EXPECT_EQ(session().value(count), "10");
}

// ---- What it may not do ----

struct Refused {
    const char* query;
    const char* sqlstate;
};

TEST_F(InnerQuery, MayNotWriteOrBeAnythingButOneQuery) {
    session().rows("CREATE TABLE d (id bigint, body text)");
    session().rows("INSERT INTO d VALUES (1, 'one')");
    const Refused all[] = {
        {"INSERT INTO d VALUES (2, 'two') RETURNING id, body", "0A000"},
        {"UPDATE d SET id = 3 RETURNING id, body", "0A000"},
        {"DELETE FROM d RETURNING id, body", "0A000"},
        {"WITH w AS (DELETE FROM d RETURNING id, body) SELECT * FROM w", "0A000"},
        {"SELECT id, body FROM d FOR UPDATE", "0A000"},
        {"SELECT id, body FROM d; SELECT id, body FROM d", "42601"},
        {"SELECT id, body FROM d; DELETE FROM d", "42601"},
        {"DELETE FROM d; SELECT id, body FROM d", "42601"},
        {"CREATE TABLE e (id bigint)", "0A000"},
        {"TRUNCATE d", "0A000"},
        {"VACUUM d", "0A000"},
        {"BEGIN", "0A000"},
        {"COMMIT", "0A000"},
        {"COPY d TO STDOUT", "0A000"},
        {"SET work_mem = '1MB'", "0A000"},
        {"SHOW work_mem", "0A000"},
        {"EXPLAIN ANALYZE DELETE FROM d", "0A000"},
        {"SELECT id, body INTO e FROM d", "0A000"},
        {"", "42601"},
        {"SELECT", "42804"},
        {"SELECT id, body FROM nowhere", "42P01"},
        {"SELECT id, body FROM d WHERE", "42601"},
    };
    for (const Refused& refused : all) {
        const std::string call =
            "SELECT * FROM near_duplicates($$" + std::string(refused.query) + "$$)";
        EXPECT_EQ(session().sqlstate(call), refused.sqlstate)
            << refused.query << ": " << session().message();
        expect_nothing_left(session().pid(), refused.query);
        // Again within a subtransaction, after which the transaction goes on.
        session().rows("BEGIN");
        session().rows("INSERT INTO d VALUES (10, 'kept')");
        session().rows("SAVEPOINT here");
        EXPECT_NE(session().sqlstate(call), "ok") << refused.query;
        session().rows("ROLLBACK TO here");
        EXPECT_EQ(session().table("SELECT * FROM d ORDER BY id"), "1|one\n10|kept\n");
        session().rows("ROLLBACK");
        session().rows("DO $do$BEGIN PERFORM * FROM near_duplicates($q$" +
                       std::string(refused.query) +
                       "$q$); EXCEPTION WHEN OTHERS THEN NULL; END$do$");
        expect_nothing_left(session().pid(), refused.query);
        EXPECT_EQ(session().table("SELECT * FROM d"), "1|one\n") << refused.query;
    }
}

// As in any SELECT of PostgreSQL's, what a volatile function does is its own affair: a statement
// that such a function runs is a new one, and the inner query's being read-only does not reach it.
// In a transaction that is read-only it is refused.
TEST_F(InnerQuery, AVolatileFunctionMayWriteAsInAnySelect) {
    session().rows("CREATE TABLE written (id bigint)");
    session().rows(
        "CREATE FUNCTION writer(bigint) RETURNS text LANGUAGE plpgsql VOLATILE AS "
        "'BEGIN INSERT INTO written VALUES ($1); RETURN ''x''; END'");
    const std::string call =
        "SELECT count(*) FROM near_duplicates('SELECT i::bigint, writer(i) FROM "
        "generate_series(1, 3) i')";
    EXPECT_EQ(session().sqlstate(call), "ok") << session().message();
    EXPECT_EQ(session().value("SELECT count(*) FROM written"), "3");
    session().rows("BEGIN READ ONLY");
    EXPECT_EQ(session().sqlstate(call), "25006");
    session().rows("ROLLBACK");
    EXPECT_EQ(session().value("SELECT count(*) FROM written"), "3");
}

TEST_F(InnerQuery, MayCallTheOperatorItself) {
    EXPECT_EQ(session().value("SELECT count(*) FROM near_duplicates($$SELECT id1, 'same' FROM "
                              "near_duplicates('SELECT i::bigint, ''x'' FROM "
                              "generate_series(1, 4) i')$$)"),
              "15");
    expect_nothing_left(session().pid(), "a nested call");
}

// ---- Sixteen sessions ----

TEST_F(InnerQuery, SixteenSessionsAtOnceGetTheirOwnAnswers) {
    constexpr int kSessions = 16;
    session().rows(
        "CREATE TABLE d AS SELECT i::bigint AS id, "
        "repeat(md5((i / 4)::text), 20) || md5(i::text) AS body "
        "FROM generate_series(1, 3200) i");
    const auto query = [](int k) {
        return "SELECT id1, id2, edit_rate FROM near_duplicates('SELECT id, body FROM d WHERE "
               "id % 16 <> " +
               std::to_string(k) + " AND id > " + std::to_string(100 * k) + "', mode => '" +
               (k % 2 == 0 ? "ctph" : "exact") + "', threshold => 0.1) ORDER BY 1, 2";
    };
    std::vector<std::string> alone(kSessions);
    const auto begin = Clock::now();
    for (int k = 0; k < kSessions; ++k) {
        alone[k] = session().table(query(k));
        ASSERT_GT(alone[k].size(), 1000u);
        for (int other = 0; other < k; ++other) ASSERT_NE(alone[k], alone[other]);
    }
    const auto middle = Clock::now();
    std::vector<std::unique_ptr<Session>> sessions;
    for (int k = 0; k < kSessions; ++k) {
        sessions.push_back(std::make_unique<Session>());
        sessions.back()->rows("SET search_path = " + schema() + ", public");
    }
    std::vector<std::thread> clients;
    std::vector<int> right(kSessions);
    for (int k = 0; k < kSessions; ++k)
        clients.emplace_back([&, k] {
            try {
                for (int round = 0; round < 2; ++round)
                    right[k] += sessions[k]->table(query(k)) == alone[k];
            } catch (const std::exception&) {
                right[k] = -1;
            }
        });
    for (std::thread& client : clients) client.join();
    for (int k = 0; k < kSessions; ++k) {
        EXPECT_EQ(right[k], 2) << "session " << k;
        expect_nothing_left(sessions[k]->pid(), "its statements");
    }
    std::printf(
        "             16 statements one after another: %.1f s; 32 in 16 sessions at once: "
        "%.1f s\n",
        Milliseconds(middle - begin).count() / 1000,
        Milliseconds(Clock::now() - middle).count() / 1000);
}

}  // namespace
}  // namespace gputext::live
