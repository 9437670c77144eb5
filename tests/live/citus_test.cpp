// gpu_knn_distributed on the tables of Citus, with a coordinator and two workers: the same rows as
// on one server, and what it says of a worker that is stopped. Where PostgreSQL has no Citus the
// test is skipped; bench/citus builds and installs it.

#include "tests/live/private_server.hpp"

namespace gputext::live {
namespace {

constexpr int kWorkers = 2;

class CitusTables : public ::testing::Test {
protected:
    static void SetUpTestSuite() {
        {
            PrivateServer plain;
            plain.start();
            Session session(plain.connection());
            is_there_ =
                session.value(
                    "SELECT count(*) FROM pg_available_extensions WHERE name = 'citus'") != "0";
        }
        if (!is_there_) return;
        for (auto& server : servers_) {
            server = std::make_unique<PrivateServer>(
                "shared_preload_libraries = 'citus'\nwal_level = "
                "logical\nmax_prepared_transactions = 100\n"
                "citus.node_conninfo = 'sslmode=disable "
                "user=gputext'\ncitus.enable_statistics_collection = off\n");
            server->start();
            Session session(server->connection());
            session.rows("CREATE EXTENSION citus");
            session.rows("CREATE EXTENSION gputext");
        }
        Session session(servers_[0]->connection());
        const auto host = [](int i) { return "'" + servers_[i]->root().string() + "', 5432"; };
        session.rows("SELECT citus_set_coordinator_host(" + host(0) + ")");
        for (int i = 1; i <= kWorkers; ++i) session.rows("SELECT citus_add_node(" + host(i) + ")");
        session.rows("CREATE TABLE items (id bigint, embedding real[], lang text, body text)");
        session.rows("SELECT create_distributed_table('items', 'id', shard_count => 5)");
        session.rows("SELECT setseed(0.25)");
        session.rows(
            "CREATE TABLE one AS SELECT i::bigint AS id, ARRAY(SELECT floor(random() * 7 + 0 * i) "
            "- 3 FROM "
            "generate_series(1, 4))::real[] AS embedding, 'l' || i % 3 AS lang, (SELECT "
            "string_agg('word' || "
            "floor(random() * random() * 60)::int, ' ') FROM generate_series(1, 5 + i % 20)) AS "
            "body "
            "FROM generate_series(1, 600) i");
        session.rows("INSERT INTO items SELECT * FROM one");
    }
    static void TearDownTestSuite() {
        for (auto& server : servers_) server.reset();
    }
    void SetUp() override {
        if (!is_there_) GTEST_SKIP() << "PostgreSQL has no Citus here";
        session_ = std::make_unique<Session>(servers_[0]->connection());
    }
    void expect_same(const std::string& distributed, const std::string& on_one_server) {
        const std::string wanted = session_->table("SELECT * FROM " + on_one_server);
        EXPECT_TRUE(session_->table("SELECT * FROM " + distributed) == wanted) << distributed;
        EXPECT_TRUE(wanted != "") << on_one_server;
    }

    static bool is_there_;
    static std::unique_ptr<PrivateServer> servers_[kWorkers + 1];
    std::unique_ptr<Session> session_;
};
bool CitusTables::is_there_ = false;
std::unique_ptr<PrivateServer> CitusTables::servers_[kWorkers + 1];

TEST_F(CitusTables, HaveTheNeighborsOfOneServer) {
    for (const std::string options :
         {"k => 3", "k => 7, metric => 'euclidean', exclude_self => true",
          "k => 2, metric => 'manhattan'"})
        expect_same(
            "gpu_knn_distributed('SELECT id, embedding FROM one', 'items', 'id', 'embedding', " +
                options + ")",
            "gpu_knn('SELECT id, embedding FROM one', 'SELECT id, embedding FROM one', " + options +
                ")");
    expect_same(
        "gpu_knn_distributed('SELECT id, embedding, lang FROM one', 'items', 'id', 'embedding', 3, "
        "key => 'lang', "
        "condition => $$lang <> 'l1' AND body LIKE '%word1%'$$, statement_bytes => 5000)",
        "gpu_knn('SELECT id, embedding, lang FROM one', $$SELECT id, embedding, lang FROM one "
        "WHERE lang <> 'l1' "
        "AND body LIKE '%word1%'$$, 3)");
    expect_same(
        "gpu_knn_within_distributed('SELECT id, embedding FROM one', 'items', 'id', 'embedding', "
        "0.2)",
        "gpu_knn_within('SELECT id, embedding FROM one', 'SELECT id, embedding FROM one', 0.2)");
    expect_same(
        "gpu_knn_distributed('SELECT id::text, body FROM one', 'items', 'body', 'body', "
        "NULL::text, 5)",
        "gpu_knn('SELECT id::text, body FROM one', 'SELECT body, body FROM one', NULL::text, 5)");
    expect_same("gpu_knn_distributed('SELECT id, body FROM one', 'items', 'id', 'body', 5)",
                "gpu_knn('SELECT id, body FROM one', 'SELECT id, body FROM one', 5)");
    expect_same("near_duplicates_distributed('items', 'id', 'body', threshold => 0.3)",
                "near_duplicates('SELECT id, body FROM one', 0.3)");
}

TEST_F(CitusTables, NameTheWorkerThatFails) {
    servers_[2]->signal_server(SIGQUIT);
    ASSERT_TRUE(servers_[2]->ended());
    EXPECT_NE(session_->sqlstate("SELECT * FROM gpu_knn_distributed('SELECT id, embedding FROM "
                                 "one', 'items', 'id', 'embedding', 3)"),
              "ok");
    EXPECT_NE(session_->message().find(servers_[2]->root().string()), std::string::npos)
        << session_->message();
}

}  // namespace
}  // namespace gputext::live
