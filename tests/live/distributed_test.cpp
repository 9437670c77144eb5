// The functions _distributed on a table whose partitions lie on three other servers and here: the
// same rows as on one server, and what they say and leave when a server fails, refuses or is
// stopped, or the call is cancelled.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <functional>
#include <thread>

#include "tests/live/dice.hpp"
#include "tests/live/interruption.hpp"
#include "tests/live/private_server.hpp"
#include "tests/support/random_strings.hpp"

namespace gputext::live {
namespace {

constexpr int kServers = 3;

/// What a hand-written statement would need to be quoted for.
const std::string kName = "Server \"of\" it's %s\\";

std::string doubled(const std::string& text, char quote) {
    std::string answer(1, quote);
    for (const char c : text) answer += std::string(c == quote ? 2 : 1, c);
    return answer + quote;
}
std::string literal(const std::string& text) {
    return doubled(text, '\'');
}
std::string server_name(int i) {
    return kName + std::to_string(i);
}
std::string server(int i) {
    return doubled(server_name(i), '"');
}

/// Servers of their own, the same for all tests.
class Distributed : public ::testing::Test {
protected:
    static void SetUpTestSuite() {
        here_ = std::make_unique<PrivateServer>();
        here_->start();
        Session session(here_->connection());
        session.rows("CREATE EXTENSION gputext");
        session.rows("CREATE EXTENSION postgres_fdw");
        for (int i = 0; i < kServers; ++i) {
            there_[i] = std::make_unique<PrivateServer>();
            there_[i]->start();
            Session other(there_[i]->connection());
            // The extension may lie elsewhere, and a table and a column have other names there.
            if (i == 1) other.rows("CREATE SCHEMA \"ex %s t\"");
            other.rows(std::string("CREATE EXTENSION gputext") +
                       (i == 1 ? " SCHEMA \"ex %s t\"" : ""));
            other.rows(
                "CREATE TABLE \"the 'items'\" (id bigint, embedding real[], lang text, \"au thor\" "
                "text, uid uuid)");
            other.rows("CREATE TABLE docs (id bigint, body text)");
            other.rows("CREATE TABLE long_docs (id bigint, body text)");
            map_server(session, i);
        }
        create_items(session);
        create_documents(session);
    }

    static void TearDownTestSuite() {
        here_.reset();
        for (auto& server : there_) server.reset();
    }

    static void map_server(Session& session, int i) {
        session.rows(
            "CREATE SERVER " + server(i) + " FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host " +
            literal(there_[i]->root()) + ", port '5432', dbname 'postgres', fetch_size '1000')");
        session.rows("CREATE USER MAPPING FOR gputext SERVER " + server(i) +
                     " OPTIONS (user 'gputext')");
    }

    /// Rows with ties, without vectors, without directions and without keys. Two partitions lie on
    /// one server.
    static void create_items(Session& session) {
        session.rows(
            "CREATE TABLE items (id bigint, embedding real[], lang text, author text, uid uuid) "
            "PARTITION BY RANGE (id)");
        const auto foreign = [&](const std::string& name, int i, int from,
                                 const std::string& table) {
            session.rows("CREATE FOREIGN TABLE " + name + " PARTITION OF items FOR VALUES FROM (" +
                         std::to_string(from) + ") TO (" + std::to_string(from + 200) +
                         ") SERVER " + server(i) + " OPTIONS (table_name " + literal(table) + ")");
            session.rows("ALTER FOREIGN TABLE " + name +
                         " ALTER author OPTIONS (column_name 'au thor')");
        };
        for (int i = 0; i < kServers; ++i)
            foreign("items" + std::to_string(i), i, 200 * i, "the 'items'");
        Session(there_[2]->connection()).rows("CREATE TABLE more (LIKE \"the 'items'\")");
        foreign("more", 2, 600, "more");
        session.rows("CREATE TABLE local_items PARTITION OF items FOR VALUES FROM (800) TO (1001)");
        session.rows("SELECT setseed(0." + std::to_string(testing::seed()) + ")");
        session.rows(
            "CREATE TABLE one AS SELECT i::bigint AS id, ARRAY(SELECT (floor(random() * 7 + 0 * i) "
            "- 3) / "
            "CASE WHEN random() < 0.5 THEN 1 ELSE 3 END FROM generate_series(1, 4))::real[] AS "
            "embedding, "
            "'l' || floor(random() * 3) AS lang, 'a''\\\"' || floor(random() * 9) AS author, "
            "md5(i::text)::uuid AS uid FROM generate_series(1, 1000) i");
        session.rows("UPDATE one SET embedding = NULL WHERE id % 100 = 7");
        session.rows("UPDATE one SET embedding = '{0,0,0,0}' WHERE id % 100 = 8");
        session.rows("UPDATE one SET lang = NULL WHERE id % 50 = 3");
        session.rows("INSERT INTO items SELECT * FROM one");
        session.rows(
            "CREATE TABLE queries AS SELECT id + 20 AS id, embedding, lang, author, uid FROM one "
            "ORDER BY random() LIMIT 150");
    }

    /// Once by a hash of the ids, once by their lengths.
    static void create_documents(Session& session) {
        session.rows("CREATE TABLE docs (id bigint, body text) PARTITION BY HASH (id)");
        session.rows(
            "CREATE TABLE long_docs (id bigint, body text) PARTITION BY RANGE (length(body))");
        const int ends[] = {0, 60, 100, 140, 100000};
        for (int i = 0; i <= kServers; ++i) {
            const std::string number = std::to_string(i);
            const std::string by_hash =
                " PARTITION OF docs FOR VALUES WITH (MODULUS 4, REMAINDER " + number + ")";
            const std::string by_length = " PARTITION OF long_docs FOR VALUES FROM (" +
                                          std::to_string(ends[i]) + ") TO (" +
                                          std::to_string(ends[i + 1]) + ")";
            const bool is_foreign = i < kServers;
            const std::string create = is_foreign ? "CREATE FOREIGN TABLE " : "CREATE TABLE ";
            const auto where = [&](const char* table) {
                return is_foreign ? " SERVER " + server(i) + " OPTIONS (table_name '" + table + "')"
                                  : std::string();
            };
            session.rows(create + "docs" + number + by_hash + where("docs"));
            session.rows(create + "long_docs" + number + by_length + where("long_docs"));
        }
        session.rows(
            "CREATE TABLE one_docs AS SELECT i::bigint AS id, overlay(left(repeat(md5((i % "
            "60)::text), 7), "
            "20 + (i % 60) * 3) PLACING left(md5(random()::text), (random() * 6)::int) FROM "
            "(random() * 20)::int + 1 FOR (random() * 8)::int) AS body FROM generate_series(1, "
            "600) i");
        session.rows(
            "INSERT INTO one_docs VALUES (601, NULL), (602, ''), (603, 'ä€😀ä€😀ä€😀ä€😀ä€😀x'), "
            "(604, 'ä€😀ä€😀ä€😀ä€😀ä€😀'), (605, 'ä€😀ä€😀ä€😀ä€😀ä€😀'), (606, 'ä€😀ä€😀ä€😀ä€😀ä€😀'), (607, "
            "'')");
        session.rows("INSERT INTO docs SELECT * FROM one_docs");
        session.rows("INSERT INTO long_docs SELECT * FROM one_docs WHERE body IS NOT NULL");
    }

    void SetUp() override {
        session_ = std::make_unique<Session>(here_->connection());
        session().rows("SET search_path = public");
    }
    void TearDown() override { session_.reset(); }
    Session& session() { return *session_; }

    /// The same rows in the same order, and some.
    void expect_same(const std::string& distributed, const std::string& on_one_server,
                     const std::string& order = "") {
        const std::string wanted = session().table("SELECT * FROM " + on_one_server + order);
        EXPECT_TRUE(session().table("SELECT * FROM " + distributed + order) == wanted)
            << distributed;
        EXPECT_TRUE(wanted != "") << on_one_server;
    }

    /// Statements of others that run at that server.
    static std::size_t running(int i) {
        return std::stoul(
            Session(there_[i]->connection())
                .value("SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND "
                       "backend_type = 'client backend' AND pid <> pg_backend_pid()"));
    }
    /// Of calls, which are named so. Those of postgres_fdw stay.
    static std::size_t sessions(int i) {
        return std::stoul(Session(there_[i]->connection())
                              .value("SELECT count(*) FROM pg_stat_activity WHERE "
                                     "application_name = 'gputext'"));
    }
    static bool all_run() {
        for (int i = 0; i < kServers; ++i)
            if (running(i) == 0) return false;
        return true;
    }
    static bool nothing_runs() {
        for (int i = 0; i < kServers; ++i)
            if (there_[i]->running() && sessions(i) > 0) return false;
        return true;
    }

    /// It ends within a second after a cancel, while it waits for a server, and after a timeout.
    void expect_to_end(const std::string& call) {
        SCOPED_TRACE(call);
        const std::string waits =
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Extension' AND pid = " +
            std::to_string(session().pid());
        Session other(here_->connection());
        expect_in_time(
            [&] {
                Control control(here_->connection());
                Running statement(session(), "SELECT * FROM " + call);
                EXPECT_TRUE(eventually([&] { return other.value(waits) == "1"; }));
                const double late = control.cancel(other, statement, session().pid());
                EXPECT_EQ(statement.wait(), "57014") << session().message();
                return late;
            },
            kMost);
        session().rows("SET statement_timeout = '500ms'");
        expect_in_time(
            [&] {
                Control control(here_->connection(), 500ms);
                Running statement(session(), "SELECT * FROM " + call);
                EXPECT_EQ(statement.wait(), "57014") << session().message();
                return control.time_out(statement);
            },
            kMost);
        session().rows("RESET statement_timeout");
    }

    /// A call that fails; "gone" is of the class of errors of connections, which libpqxx takes for
    /// its own's. The message names the server.
    void expect_error(const std::string& call, const std::string& state, int named,
                      const std::string& words) {
        EXPECT_EQ(session().sqlstate("SELECT * FROM " + call), state) << session().message();
        EXPECT_NE(session().message().find("server \"" + server_name(named) + "\": "),
                  std::string::npos)
            << session().message();
        EXPECT_NE(session().message().find(words), std::string::npos) << session().message();
        EXPECT_TRUE(eventually(nothing_runs));
    }

    static constexpr double kMost = 1000;  // milliseconds from a cancel to its error

    static inline const std::string kKnn =
        "gpu_knn_distributed('SELECT id, embedding FROM queries', 'items', 'id', 'embedding', 3)";
    static inline const std::string kDuplicates =
        "near_duplicates_distributed('docs', 'id', 'body')";
    /// Runs for minutes at each server.
    static inline const std::string kLong =
        "gpu_knn_distributed('SELECT id, embedding FROM queries', 'items', 'id', 'embedding', 3, "
        "condition => 'items.id < 800 AND pg_sleep(0.5) IS NOT NULL')";

    static std::unique_ptr<PrivateServer> here_, there_[kServers];
    std::unique_ptr<Session> session_;
};
std::unique_ptr<PrivateServer> Distributed::here_, Distributed::there_[kServers];

TEST_F(Distributed, NearestNeighborsAreThoseOfOneServer) {
    Dice dice(testing::seed());
    for (int round = 0; round < 60; ++round) {
        const std::string metric =
            dice.of<std::string>({"cosine", "euclidean", "inner_product", "manhattan"});
        const bool by_key = dice.percent(40), excluded = dice.percent(30),
                   within = dice.percent(30), self = dice.percent(40),
                   has_condition = dice.percent(40), typed = dice.percent(30);
        const std::string id = typed ? "uid" : dice.percent(20) ? "id % 7" : "id";
        const std::string item_id = typed ? "uid" : "id";
        const std::string keys = std::string(by_key ? ", lang" : "") + (excluded ? ", author" : "");
        const std::string order =
            dice.of<std::string>({"", " ORDER BY id DESC", " WHERE id > 400", " WHERE false"});
        const std::string queries =
            literal("SELECT " + id + ", embedding" + keys + " FROM queries" + order);
        const std::string condition = "lower(lang) <> 'l1' OR id % 3 = 0";
        const std::string amount =
            within ? dice.of<std::string>({"radius => 0.1::float8 / 3", "radius => 1.5"})
                   : "k => " + std::to_string(1 + dice.below(9));
        const std::string options = ", " + amount + ", metric => '" + metric +
                                    "', exclude_self => " + (self ? "true" : "false");
        const std::string type = typed ? ", id_type => NULL::uuid" : "";
        const std::string function = within ? "gpu_knn_within" : "gpu_knn";
        const std::string one = function + "(" + queries + ", " +
                                literal("SELECT " + item_id + ", embedding" + keys + " FROM one" +
                                        (has_condition ? " WHERE " + condition : "")) +
                                type + options + (excluded ? ", exclude_key => true" : "") + ")";
        const std::string many =
            function + "_distributed(" + queries + ", 'items', id => '" + item_id +
            "', value => 'embedding'" + type + options + (by_key ? ", key => 'lang'" : "") +
            (excluded ? ", exclude_key => 'author'" : "") +
            (has_condition ? ", condition => " + literal(condition + " -- ") : "") +
            (dice.percent(30) ? ", statement_bytes => " + std::to_string(1 + dice.below(3000))
                              : "") +
            ")";
        const std::string wanted = session().table("SELECT * FROM " + one);
        EXPECT_EQ(session().table("SELECT * FROM " + many), wanted) << many;
        if (HasFailure()) return;
    }
}

TEST_F(Distributed, SettingsOfTheSessionDoNotChangeNumbers) {
    session().rows("SET extra_float_digits = -10");
    session().rows("SET DateStyle = 'German, DMY'");
    session().rows(
        "CREATE TEMP TABLE a AS SELECT * FROM gpu_knn('SELECT id, embedding FROM queries', "
        "'SELECT id, embedding FROM one', 9)");
    session().rows(
        "CREATE TEMP TABLE b AS SELECT * FROM gpu_knn_distributed('SELECT id, embedding FROM "
        "queries', "
        "'items', 'id', 'embedding', 9)");
    EXPECT_EQ(session().value("SELECT count(*) FROM (TABLE a EXCEPT TABLE b) d"), "0");
    EXPECT_EQ(session().value("SELECT count(*) FROM (TABLE b EXCEPT TABLE a) d"), "0");
    EXPECT_NE(session().value("SELECT count(*) FROM a"), "0");
    EXPECT_EQ(session().value("SHOW extra_float_digits"), "-10");
}

TEST_F(Distributed, OneTableHereAndOneThereAreTablesToo) {
    expect_same(
        "gpu_knn_distributed('SELECT id, embedding FROM queries', 'one', 'id', 'embedding', 3)",
        "gpu_knn('SELECT id, embedding FROM queries', 'SELECT id, embedding FROM one', 3)");
    expect_same(
        "gpu_knn_distributed('SELECT id, embedding FROM queries', 'more', 'id', 'embedding', 3)",
        "gpu_knn('SELECT id, embedding FROM queries', 'SELECT id, embedding FROM one WHERE id "
        "BETWEEN 600 AND 799', 3)");
}

TEST_F(Distributed, NearestTextsAreThoseOfOneServer) {
    session().rows(
        "CREATE TABLE one_texts AS SELECT i::bigint AS id, (SELECT string_agg('word' || "
        "floor(random() * random() * 60)::int, ' ') FROM generate_series(1, 5 + i % 20)) AS body "
        "FROM generate_series(10001, 10400) i");
    session().rows("INSERT INTO docs SELECT * FROM one_texts");
    for (const std::string options :
         {"k => 5", "k => 3, exclude_self => true", "k => 400, min_document_frequency => 3",
          "radius => 0.7", "k => 5, config => 'simple'", "k => 9, metric => 'bm25'",
          "radius => -4, metric => 'bm25', min_document_frequency => 2"}) {
        const std::string function = options[0] == 'k' ? "gpu_knn" : "gpu_knn_within";
        for (const std::string queries :
             {"SELECT id, body FROM one_texts",
              "SELECT id, to_tsvector(body) FROM one_texts ORDER BY body"}) {
            expect_same(function + "_distributed('" + queries +
                            "', 'docs', id => 'id', value => 'body', "
                            "condition => 'id > 10000', " +
                            options + ")",
                        function + "('" + queries + "', 'SELECT id, body FROM one_texts', " +
                            options + ")");
        }
    }
    const std::string bm25 = "k => 7, metric => 'bm25', k1 => 2, b => 0.4";
    expect_same("gpu_knn_distributed('SELECT id, body FROM one_texts', 'docs', 'id', 'body', "
                "condition => 'id > 10000', " + bm25 + ")",
                "gpu_knn('SELECT id, body FROM one_texts', 'SELECT id, body FROM one_texts', "
                "exclude_key => false, " + bm25 + ")");
    session().rows("DELETE FROM docs WHERE id > 10000");
    session().rows("DROP TABLE one_texts");
}

TEST_F(Distributed, WeightsOfTermsAreComparedToo) {
    for (int i = 0; i < kServers; ++i) {
        Session(there_[i]->connection())
            .rows("CREATE TABLE terms (id bigint, terms integer[], weights real[])");
        if (i == 0)
            session().rows(
                "CREATE TABLE terms (id bigint, terms integer[], weights real[]) PARTITION BY HASH "
                "(id)");
        session().rows("CREATE FOREIGN TABLE terms" + std::to_string(i) +
                       " PARTITION OF terms FOR VALUES WITH (MODULUS " + std::to_string(kServers) +
                       ", REMAINDER " + std::to_string(i) + ") SERVER " + server(i) +
                       " OPTIONS (table_name 'terms')");
    }
    session().rows(
        "CREATE TABLE one_terms AS SELECT i::bigint AS id, ARRAY[i % 7, 10 + i % 5] AS terms, "
        "ARRAY[random(), 1]::real[] AS weights FROM generate_series(1, 200) i");
    session().rows("INSERT INTO terms SELECT * FROM one_terms");
    expect_same(
        "gpu_knn_distributed('TABLE one_terms', 'terms', 'id', 'terms', 4, weights => 'weights')",
        "gpu_knn('TABLE one_terms', 'TABLE one_terms', 4)");
}

TEST_F(Distributed, NearDuplicatesAndGroupsAreThoseOfOneServer) {
    for (const std::string table : {"docs", "long_docs"}) {
        for (const std::string options :
             {"threshold => 0.0", "threshold => 0.05", "threshold => 0.1, mode => 'exact'",
              "threshold => 0.2, mode => 'ctph'", "threshold => 0.4",
              "mode => 'ctph', max_length => 8"}) {
            expect_same(
                "near_duplicates_distributed('" + table + "', 'id', 'body', " + options + ")",
                "near_duplicates('SELECT id, body FROM one_docs', " + options + ")");
        }
        expect_same(
            "near_duplicates_distributed('" + table + "', 'id', 'body', condition => 'id % 3 > 0')",
            "near_duplicates('SELECT id, body FROM one_docs WHERE id % 3 > 0')");
        expect_same("near_duplicates_distributed('" + table +
                        "', id => 'body', body => 'body', id_type => NULL::text, condition => "
                        "'body IS NOT NULL')",
                    "near_duplicates('SELECT body, body FROM one_docs WHERE body IS NOT NULL', "
                    "id_type => NULL::text)",
                    " ORDER BY 1, 2, 3");
        expect_same(
            "groups_of($$SELECT * FROM near_duplicates_distributed('" + table +
                "', 'id', 'body', threshold => 0.1)$$)",
            "groups_of($$SELECT * FROM near_duplicates('SELECT id, body FROM one_docs', 0.1)$$)");
    }
}

TEST_F(Distributed, ACancelEndsTheStatementsThere) {
    for (const std::string& call :
         std::vector<std::string>{kLong,
                                  "near_duplicates_distributed('docs', 'id', 'body', condition => "
                                  "'pg_sleep(0.5) IS NOT NULL')"}) {
        Session other(here_->connection());
        expect_in_time(
            [&] {
                Control control(here_->connection());
                Running statement(session(), "SELECT * FROM " + call);
                EXPECT_TRUE(eventually([&] { return call == kLong ? all_run() : running(0) > 0; }))
                    << statement.wait() << session().message();
                const double late = control.cancel(other, statement, session().pid());
                EXPECT_EQ(statement.wait(), "57014");
                EXPECT_TRUE(eventually(nothing_runs));
                return late;
            },
            kMost);
    }
    expect_same(kKnn,
                "gpu_knn('SELECT id, embedding FROM queries', 'SELECT id, embedding FROM one', 3)");
}

TEST_F(Distributed, AStatementTimeoutAndTheEndOfTheSessionEndThemToo) {
    session().rows("SET statement_timeout = '1s'");
    EXPECT_EQ(session().sqlstate("SELECT * FROM " + kLong), "57014");
    EXPECT_TRUE(eventually(nothing_runs));
    session().rows("SET statement_timeout = '60s'");
    Running statement(session(), "SELECT * FROM " + kLong);
    ASSERT_TRUE(eventually(all_run)) << statement.wait() << session().message();
    Session(here_->connection())
        .rows("SELECT pg_terminate_backend(" + std::to_string(session().pid()) + ")");
    statement.wait();
    // The servers look for their clients once a second.
    EXPECT_TRUE(eventually(nothing_runs));
}

TEST_F(Distributed, AServerThatIsStoppedInTheMiddleIsNamed) {
    Running statement(session(), "SELECT * FROM " + kLong);
    ASSERT_TRUE(eventually(all_run)) << statement.wait() << session().message();
    there_[1]->signal_server(SIGQUIT);
    EXPECT_NE(statement.wait(), "ok");
    EXPECT_NE(session().message().find("server \"" + server_name(1) + "\": "), std::string::npos)
        << session().message();
    EXPECT_TRUE(eventually([] { return sessions(0) == 0 && sessions(2) == 0; }));
    ASSERT_TRUE(there_[1]->ended());
    for (const std::string& call : {kKnn, kDuplicates})
        expect_error(call, "gone", 1, "could not establish connection");
    there_[1]->start();
    expect_same(kKnn,
                "gpu_knn('SELECT id, embedding FROM queries', 'SELECT id, embedding FROM one', 3)");
}

TEST_F(Distributed, APartitionMovesToAnotherServerInTheMiddleOfACall) {
    // By pg_dump of the shard, whose index goes along.
    {
        Session from(there_[2]->connection());
        from.rows("CREATE TABLE moved AS TABLE more");
        from.rows("CREATE INDEX ON moved USING gputext (\"au thor\")");
    }
    const std::string file =
        fs::temp_directory_path() / ("gputext-shard-" + std::to_string(getpid()));
    const auto run = [&](const std::string& name, int i, const std::string& arguments) {
        const std::string command = environment("GPUTEXT_PG_BIN") + "/" + name + " -h " +
                                    there_[i]->root().string() + " -p 5432 -U gputext " + arguments;
        EXPECT_EQ(std::system(command.c_str()), 0) << command;
    };
    run("pg_dump", 2, "-Fc -t moved -f " + file + " postgres");
    run("pg_restore", 0, "-e -d postgres " + file);
    fs::remove(file);
    EXPECT_EQ(Session(there_[0]->connection()).value("SELECT count(*) FROM moved"), "200");

    const std::string call =
        "gpu_knn_distributed('SELECT id, embedding FROM queries', 'items', 'id', 'embedding', 3";
    const std::string wanted = session().table("SELECT * FROM " + call + ")");
    std::string answer;
    std::thread statement([&] {
        answer = session().table("SELECT * FROM " + call +
                                 ", condition => 'pg_sleep(0.004) IS NOT NULL')");
    });
    EXPECT_TRUE(eventually(all_run));
    Session mover(here_->connection());
    mover.rows("BEGIN");
    mover.rows("ALTER TABLE items DETACH PARTITION more");
    mover.rows(
        "CREATE FOREIGN TABLE moved PARTITION OF items FOR VALUES FROM (600) TO (800) SERVER " +
        server(0) + " OPTIONS (table_name 'moved')");
    mover.rows("ALTER FOREIGN TABLE moved ALTER author OPTIONS (column_name 'au thor')");
    mover.rows("COMMIT");  // the call, which has locked the partitions, has ended
    statement.join();
    EXPECT_TRUE(answer == wanted);
    EXPECT_TRUE(session().table("SELECT * FROM " + call + ")") == wanted);
    for (const char* change : {"DELETE FROM more", "DROP TABLE moved"})
        Session(there_[2]->connection()).rows(change);
    EXPECT_TRUE(session().table("SELECT * FROM " + call + ")") == wanted);
}

TEST_F(Distributed, ErrorsOfAServerNameIt) {
    // In the middle of the statement there
    expect_error(
        "gpu_knn_distributed('SELECT id, embedding FROM queries', 'items', 'id', 'embedding', 3, "
        "condition => "
        "'id <> 250 OR 1 / (id - 250) > 0')",
        "22012", 1, "division by zero");
    const std::string id = session().value("SELECT min(id) FROM docs1");
    expect_error("near_duplicates_distributed('docs', 'id', 'body', condition => 'id <> " + id +
                     " OR 1 / (id - " + id + ") > 0')",
                 "22012", 1, "division by zero");
    // User mappings
    session().rows("ALTER USER MAPPING FOR gputext SERVER " + server(2) +
                   " OPTIONS (SET user 'nobody else')");
    for (const std::string& call : {kKnn, kDuplicates})
        expect_error(call, "gone", 2, "could not establish connection");
    Session(there_[2]->connection()).rows("CREATE ROLE reader LOGIN");
    session().rows("ALTER USER MAPPING FOR gputext SERVER " + server(2) +
                   " OPTIONS (SET user 'reader')");
    for (const std::string& call : {kKnn, kDuplicates})
        expect_error(call, "42501", 2, "permission denied for table");
    session().rows("DROP USER MAPPING FOR gputext SERVER " + server(2));
    expect_error(kKnn, "42704", 2, "user mapping not found");
    session().rows("CREATE USER MAPPING FOR gputext SERVER " + server(2) +
                   " OPTIONS (user 'gputext')");
    // The extension there
    const auto change = [](const char* statement) {
        Session(there_[2]->connection()).rows(statement);
    };
    change("UPDATE pg_extension SET extversion = '0.1.0' WHERE extname = 'gputext'");
    expect_error(kKnn, "55000", 2, "is of version 0.1.0");
    change("DROP EXTENSION gputext");
    for (const std::string& call : {kKnn, kDuplicates})
        expect_error(call, "55000", 2, "no extension gputext");
    change("CREATE EXTENSION gputext");
    expect_same(kKnn,
                "gpu_knn('SELECT id, embedding FROM queries', 'SELECT id, embedding FROM one', 3)");
}

TEST_F(Distributed, ErrorsOfEveryClassEndTheConnections) {
    // Some are none of PL/pgSQL's OTHERS.
    const auto create = [](Session& session, const std::string& body) {
        session.rows("CREATE FUNCTION fails(bigint, text) RETURNS boolean LANGUAGE plpgsql AS $$ " +
                     body + " $$");
    };
    create(session(), "BEGIN RETURN true; END");
    for (int i = 0; i < kServers; ++i) {
        Session other(there_[i]->connection());
        create(other, i == 1 ? "BEGIN RAISE EXCEPTION 'as asked' USING ERRCODE = $2; END"
                             : "BEGIN RETURN true; END");
    }
    for (const std::string state :
         {"P0004", "57014", "P0001", "22012", "53200", "58030", "XX000", "0A000", "P0000"}) {
        const std::string condition = "condition => 'fails(id, ''" + state + "'')')";
        for (const std::string& call :
             {"gpu_knn_distributed('SELECT id, embedding FROM queries', 'items', 'id', "
              "'embedding', 3, " +
                  condition,
              "near_duplicates_distributed('docs', 'id', 'body', " + condition})
            expect_error(call, state, 1, "as asked");
        EXPECT_TRUE(eventually(nothing_runs)) << state;
    }
}

TEST_F(Distributed, NamesMayHaveAnyCharacters) {
    const auto create = [](Session& session, const std::string& table) {
        session.rows("CREATE SCHEMA \"s%I '\\\"");
        session.rows("CREATE TYPE \"s%I '\\\".\"e%s'n\\um\" AS ENUM ('a%L', 'b''\\', 'c')");
        session.rows("CREATE TABLE \"s%I '\\\"." + table +
                     " (\"i%s\" bigint, \"k'%L\\\" \"s%I '\\\".\"e%s'n\\um\", v real[], \"b%\" "
                     "text)");
    };
    const std::string here = "\"s%I '\\\".\"here%L\"";
    create(session(), "\"one'%s\"");
    session().rows("CREATE TABLE " + here +
                   " (LIKE \"s%I '\\\".\"one'%s\") PARTITION BY HASH (\"i%s\")");
    for (int i = 0; i < kServers; ++i) {
        Session other(there_[i]->connection());
        create(other, "\"there%1$s'\\\"");
        session().rows("CREATE FOREIGN TABLE \"part%s" + std::to_string(i) + "\" PARTITION OF " +
                       here + " FOR VALUES WITH (MODULUS 4, REMAINDER " + std::to_string(i) +
                       ") SERVER " + server(i) +
                       " OPTIONS (schema_name 's%I ''\\', table_name 'there%1$s''\\')");
    }
    session().rows("CREATE TABLE \"part%s\" PARTITION OF " + here +
                   " FOR VALUES WITH (MODULUS 4, REMAINDER 3)");
    session().rows(
        "INSERT INTO \"s%I '\\\".\"one'%s\" SELECT i, (enum_range(NULL::\"s%I "
        "'\\\".\"e%s'n\\um\"))[1 + i % 3], ARRAY[i % 7, 1], 'a text with %s and some ' || i % 5 "
        "FROM generate_series(1, 50) AS i");
    session().rows("INSERT INTO " + here + " SELECT * FROM \"s%I '\\\".\"one'%s\"");
    session().rows("SET search_path = \"s%I '\\\", public");
    const std::string one = "\"one'%s\"", items = "$$\"here%L\"$$";
    expect_same("gpu_knn_distributed($$SELECT \"i%s\", v, \"k'%L\\\" FROM " + one + "$$, " + items +
                    ", 'i%s', 'v', 3, key => $$k'%L\\$$)",
                "gpu_knn($$SELECT \"i%s\", v, \"k'%L\\\" FROM " + one +
                    "$$, $$SELECT \"i%s\", v, \"k'%L\\\" FROM " + one + "$$, 3)");
    expect_same("gpu_knn_distributed($$SELECT \"k'%L\\\", \"b%\" FROM " + one + "$$, " + items +
                    ", $$k'%L\\$$, 'b%', NULL::\"e%s'n\\um\", 2, exclude_self => true)",
                "gpu_knn($$SELECT \"k'%L\\\", \"b%\" FROM " + one +
                    "$$, $$SELECT \"k'%L\\\", \"b%\" FROM " + one +
                    "$$, NULL::\"e%s'n\\um\", 2, exclude_self => true)");
    expect_same(
        "near_duplicates_distributed(" + items +
            ", $$k'%L\\$$, 'b%', NULL::\"e%s'n\\um\", threshold => 0.1, condition => $$\"b%\" "
            "LIKE '%' -- %s$$)",
        "near_duplicates($$SELECT \"k'%L\\\", \"b%\" FROM " + one + "$$, NULL::\"e%s'n\\um\", 0.1)",
        " ORDER BY 1, 2, 3");
}

TEST_F(Distributed, WhatItDoesNotTakeIsRefused) {
    const auto refused = [&](const std::string& call, const std::string& state) {
        EXPECT_EQ(session().sqlstate("SELECT * FROM " + call), state)
            << call << session().message();
    };
    refused("gpu_knn_distributed('SELECT id, embedding FROM queries', 'items', 'id', 'nothing', 3)",
            "42703");
    refused(
        "gpu_knn_distributed('SELECT id, embedding, 1 FROM queries', 'items', 'id', 'embedding', "
        "3)",
        "42804");
    refused("gpu_knn_distributed('DELETE FROM queries', 'items', 'id', 'embedding', 3)", "0A000");
    refused(
        "gpu_knn_distributed('SELECT id, embedding FROM queries', 'items', 'id', 'embedding', "
        "NULL)",
        "22004");
    refused(
        "gpu_knn_distributed('SELECT id, embedding FROM queries', 'items', 'id', 'embedding', 3, "
        "metric => NULL)",
        "22004");
    refused("near_duplicates_distributed('docs', 'id', 'body', threshold => 0.5)", "22023");
    refused("near_duplicates_distributed('docs', 'id', NULL)", "22004");
    session().rows("CREATE VIEW item_view AS SELECT * FROM one");
    refused(
        "gpu_knn_distributed('SELECT id, embedding FROM queries', 'item_view', 'id', 'embedding', "
        "3)",
        "42809");
    session().rows("CREATE ROLE stranger");
    session().rows("GRANT SELECT ON queries TO stranger");
    session().rows("SET ROLE stranger");
    refused(kKnn, "42501");
    session().rows("RESET ROLE");
    session().rows("GRANT SELECT ON items TO stranger");
    session().rows("ALTER TABLE items ENABLE ROW LEVEL SECURITY");
    session().rows("SET ROLE stranger");
    refused(kKnn, "0A000");
    session().rows("RESET ROLE");
    session().rows("ALTER TABLE items DISABLE ROW LEVEL SECURITY");
    // The mappings of others do not help, nor does one for a server that the caller may not use.
    session().rows("SET ROLE stranger");
    refused(kKnn, "42704");
    session().rows("RESET ROLE");
    session().rows("CREATE USER MAPPING FOR stranger SERVER " + server(0) +
                   " OPTIONS (user 'gputext')");
    session().rows("SET ROLE stranger");
    refused(kKnn, "42501");
    session().rows("RESET ROLE");
    // Nor one without a password that the server asks for.
    session().rows("GRANT USAGE ON FOREIGN SERVER " + server(0) + " TO stranger");
    session().rows("SET ROLE stranger");
    refused(kKnn, "2F003");
    session().rows("RESET ROLE");
    // Nor one with a password, where the server does not ask for it.
    session().rows("ALTER USER MAPPING FOR stranger SERVER " + server(0) +
                   " OPTIONS (ADD password 'secret')");
    session().rows("GRANT SELECT ON items0 TO stranger");
    session().rows("SET ROLE stranger");
    refused(
        "gpu_knn_distributed('SELECT id, embedding FROM queries', 'items0', 'id', 'embedding', 3)",
        "2F003");
    // Calls of others are none of his.
    session().rows("RESET ROLE");
    session().rows("BEGIN");
    const std::string number = session().value("SELECT gputext_connect('test', ARRAY[" +
                                               literal(server_name(0)) + "]::name[])");
    session().rows("SET ROLE stranger");
    refused("gputext_answers(" + number + ") AS t (server integer, a text)", "gone");
}

TEST_F(Distributed, ACallIsNotEndedByFunctionsOfTheValuesThatItReads) {
    session().rows(
        "CREATE FUNCTION ends_call(text) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN PERFORM "
        "gputext_disconnect(current_setting('test.call')::integer); RETURN true; END $$");
    session().rows("CREATE DOMAIN ending AS text CHECK (ends_call(VALUE))");
    session().rows("BEGIN");
    session().rows("SELECT set_config('test.call', gputext_connect('test', ARRAY[" +
                   literal(server_name(0)) + "]::name[])::text, true)");
    const std::string number = session().value("SELECT current_setting('test.call')");
    session().rows("SELECT gputext_send(" + number + ", '{SELECT 1}')");
    EXPECT_EQ(session().sqlstate("SELECT * FROM gputext_answers(" + number +
                                 ") AS t (server integer, a ending)"),
              "55006")
        << session().message();
    session().rows("ROLLBACK");
    EXPECT_TRUE(eventually(nothing_runs));
}

/// Listens, and does what it is told with whoever comes.
class Peer {
public:
    explicit Peer(std::function<void(int)> answer = nullptr) : answer_(std::move(answer)) {
        sockaddr_in address = {};
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t size = sizeof address;
        if (bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
            listen(listener_, 16) != 0 ||
            getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0)
            throw std::runtime_error("no socket to listen on");
        port_ = ntohs(address.sin_port);
        if (answer_)
            thread_ = std::thread([this] {
                for (int peer; (peer = accept(listener_, nullptr, nullptr)) >= 0;) {
                    answer_(peer);
                    peers_.push_back(peer);
                }
            });
    }
    ~Peer() {
        shutdown(listener_, SHUT_RDWR);
        if (thread_.joinable()) thread_.join();
        close(listener_);
        for (const int peer : peers_) close(peer);
    }
    std::string port() const { return std::to_string(port_); }

private:
    const int listener_ = socket(AF_INET, SOCK_STREAM, 0);
    std::function<void(int)> answer_;
    int port_ = 0;
    std::vector<int> peers_;
    std::thread thread_;
};

TEST_F(Distributed, AServerThatStandsStillIsNotWaitedFor) {
    for (const std::string& call : {kKnn, kDuplicates}) {
        there_[1]->signal_server(SIGSTOP);
        expect_to_end(call);
        there_[1]->signal_server(SIGCONT);
        EXPECT_TRUE(eventually(nothing_runs));
    }
    // A session of it, in the middle of a statement
    Session other(here_->connection());
    expect_in_time(
        [&] {
            Control control(here_->connection());
            Running statement(session(), "SELECT * FROM " + kLong);
            EXPECT_TRUE(eventually(all_run)) << statement.wait() << session().message();
            const pid_t backend = std::stoi(
                Session(there_[1]->connection())
                    .value(
                        "SELECT pid FROM pg_stat_activity WHERE state = 'active' AND backend_type "
                        "= 'client backend' AND pid <> pg_backend_pid()"));
            send_signal(backend, SIGSTOP);
            const double late = control.cancel(other, statement, session().pid());
            EXPECT_EQ(statement.wait(), "57014");
            EXPECT_TRUE(eventually([] { return sessions(0) == 0 && sessions(2) == 0; }));
            send_signal(backend, SIGCONT);
            EXPECT_TRUE(eventually(nothing_runs));
            return late;
        },
        kMost);
    expect_same(kKnn,
                "gpu_knn('SELECT id, embedding FROM queries', 'SELECT id, embedding FROM one', 3)");
}

TEST_F(Distributed, APeerThatIsNoServerIsNotWaitedFor) {
    session().rows(
        "CREATE SERVER peer FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '127.0.0.1', port '1', "
        "sslmode 'disable', gssencmode 'disable')");
    session().rows("CREATE USER MAPPING FOR gputext SERVER peer OPTIONS (user 'gputext')");
    session().rows(
        "CREATE FOREIGN TABLE elsewhere (id bigint, embedding real[], body text) SERVER peer");
    const std::string knn =
        "gpu_knn_distributed('SELECT id, embedding FROM queries', 'elsewhere', 'id', 'embedding', "
        "3)";
    const std::string duplicates = "near_duplicates_distributed('elsewhere', 'id', 'body')";
    const auto connect_to = [&](const Peer& peer) {
        session().rows("ALTER SERVER peer OPTIONS (SET port '" + peer.port() + "')");
    };
    using namespace std::string_literals;
    const std::string welcome =
        "R\0\0\0\x08\0\0\0\0S\0\0\0\x19"
        "client_encoding\0UTF8\0Z\0\0\0\x05I"s;
    const auto say = [](int peer, const std::string& words) {
        return send(peer, words.data(), words.size(), MSG_NOSIGNAL) > 0;
    };
    const auto hear = [](int peer) {
        char heard[1000];
        return recv(peer, heard, sizeof heard, 0) > 0;
    };
    {
        Peer silent;
        connect_to(silent);
        for (const std::string& call : {knn, duplicates}) expect_to_end(call);
        session().rows("ALTER SERVER peer OPTIONS (ADD connect_timeout '1')");
        EXPECT_EQ(session().sqlstate("SELECT * FROM " + knn), "gone");
        EXPECT_NE(session().message().find("connect_timeout"), std::string::npos)
            << session().message();
        session().rows("ALTER SERVER peer OPTIONS (DROP connect_timeout)");
    }
    {
        Peer half_a_greeting([&](int peer) { hear(peer) && say(peer, welcome.substr(0, 12)); });
        connect_to(half_a_greeting);
        expect_to_end(knn);
    }
    {
        // And takes no request for cancelling
        Peer half_an_answer([&](int peer) {
            hear(peer) && say(peer, welcome) && hear(peer) &&
                say(peer,
                    "C\0\0\0\x64"
                    "BEG"s);
        });
        connect_to(half_an_answer);
        for (const std::string& call : {knn, duplicates}) expect_to_end(call);
    }
    {
        // Words without an end, in another encoding
        Peer nonsense([&](int peer) {
            hear(peer) && say(peer, welcome) && hear(peer) &&
                say(peer, "E\0\0\0\x1aSERROR\0C22012\0M\xff\xfe no\0\0Z\0\0\0\x05I"s);
        });
        connect_to(nonsense);
        EXPECT_EQ(session().sqlstate("SELECT * FROM " + knn), "22012") << session().message();
        EXPECT_NE(session().message().find("server \"peer\": (a message in another encoding)"),
                  std::string::npos)
            << session().message();
    }
}

}  // namespace
}  // namespace gputext::live
