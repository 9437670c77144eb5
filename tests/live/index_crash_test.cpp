// The server is killed while sessions change a table, vacuum it and build indexes: after recovery
// the index finds what the table has, and takes inserts. The server compares all pages that it
// recovers with the images of them in WAL.
//
// GPUTEXT_INDEX_CRASHES says how often it is killed in each way.

#include "tests/live/index_use.hpp"
#include "tests/live/plain_session.hpp"
#include "tests/live/private_server.hpp"

namespace gputext::live {
namespace {

constexpr std::size_t kPool = 400, kRows = 800;

class IndexCrash : public ::testing::Test {
protected:
    static void TearDownTestSuite() { server_.reset(); }

    void SetUp() override {
        try {
            if (server_ == nullptr) make_server();
            if (!server().running()) server().start();
            Session session(server().connection());
            session.rows("DROP TABLE IF EXISTS docs, unlogged, other");
            session.rows(kDocs);
            session.rows("CREATE INDEX docs_index ON docs USING gputext (body)");
        } catch (const std::exception& error) {
            FAIL() << error.what();
        }
    }

    void TearDown() override {
        if (HasFailure() && server_ != nullptr) std::puts(server().log().c_str());
    }

    static constexpr const char* kDocs =
        "CREATE TABLE docs (id integer, part integer, body text, seen integer)";

    static PrivateServer& server() { return *server_; }

    static void make_server() {
        auto server = std::make_unique<PrivateServer>(
            "wal_consistency_checking = 'all'\nfull_page_writes = on\nmax_wal_size = '512MB'\n"
            "restart_after_crash = on\nmin_parallel_table_scan_size = 0\n");
        server->start();
        Session session(server->connection());
        session.rows("CREATE EXTENSION gputext");
        create_pool(session, kPool);
        server_ = std::move(server);
    }

    /// Sessions that change, vacuum and index the table until the server is gone.
    class Load {
    public:
        explicit Load(std::uint64_t seed) {
            for (std::size_t number = 0; number < 2; ++number)
                add([=](Session& session) {
                    Dice dice(seed + number);
                    RandomChanges changes(session, dice, kPool, kRows / 2, "body", number, 2);
                    // Ids come again after a crash, as those of other rows.
                    for (;;) dice.percent(30) ? changes.transaction() : changes.change();
                });
            add([](Session& session) {
                for (int i = 0;; ++i) {
                    session.rows("VACUUM docs");
                    if (i % 5 == 0) session.rows("CHECKPOINT");
                }
            });
            add([](Session& session) {
                for (;;) {
                    session.rows("CREATE INDEX CONCURRENTLY second ON docs USING gputext (body)");
                    session.rows("DROP INDEX second");
                    session.rows("BEGIN");
                    session.rows("CREATE TABLE other AS SELECT * FROM docs");
                    session.rows("CREATE INDEX ON other USING gputext (body)");
                    session.rows("COMMIT");
                    session.rows("DROP TABLE other");
                }
            });
        }
        ~Load() {
            for (std::thread& thread : threads_) thread.join();
        }
        pid_t session() const { return pids_.front(); }

    private:
        void add(const std::function<void(Session&)>& work) {
            auto session = std::make_shared<Session>(server().connection());
            pids_.push_back(session->pid());
            threads_.emplace_back([=] {
                try {
                    work(*session);
                } catch (const pqxx::broken_connection&) {
                    // as every session is to end
                } catch (const std::exception& error) {
                    const std::string text = error.what();
                    EXPECT_TRUE(text.find("terminating connection") != std::string::npos ||
                                text.find("server closed the connection") != std::string::npos ||
                                text.find("lost synchronization") != std::string::npos)
                        << text;
                }
            });
        }

        std::vector<std::thread> threads_;
        std::vector<pid_t> pids_;
    };

    void crash(Dice& dice, bool whole_server) {
        {
            Load load(dice.below(1000000));
            std::this_thread::sleep_for(std::chrono::milliseconds(100 + dice.below(400)));
            if (whole_server)
                server().signal_server(SIGKILL);
            else
                send_signal(load.session(), SIGKILL);
        }
        if (whole_server) {
            ASSERT_TRUE(server().ended());
            server().start();
        }
        const std::string where = server().connection().text;
        ASSERT_TRUE(eventually([&] { return PQping(where.c_str()) == PQPING_OK; }));
    }

    void expect_recovered(Dice& dice) {
        Session session(server().connection());
        session.rows("DROP TABLE IF EXISTS other");
        session.rows("DROP INDEX IF EXISTS second");
        EXPECT_EQ(session.value("SELECT pg_is_in_recovery()"), "f");
        expect_index_goes_on(session, dice, kPool, kRows, 10);
        expect_no_crash(server().log());
    }

    void expect_recovers(bool whole_server) {
        Dice dice(testing::seed());
        const std::size_t most = number_from("GPUTEXT_INDEX_CRASHES", testing::rounds(2, 3));
        for (std::size_t i = 0; i < most && !HasFailure(); ++i) {
            crash(dice, whole_server);
            expect_recovered(dice);
        }
    }

private:
    static inline std::unique_ptr<PrivateServer> server_;
};

TEST_F(IndexCrash, OfTheServerLeavesWhatTheTableHas) {
    expect_recovers(true);
}

TEST_F(IndexCrash, OfASessionLeavesWhatTheTableHas) {
    expect_recovers(false);
}

// WAL that was written, and pages that were not: all of them come from records.
TEST_F(IndexCrash, RecoversPagesThatWereNeverWritten) {
    Dice dice(testing::seed());
    {
        Session session(server().connection());
        session.rows("CHECKPOINT");
        RandomChanges changes(session, dice, kPool, kRows);
        for (int i = 0; i < 60; ++i) changes.change();
        session.rows("VACUUM docs");
        session.rows("REINDEX INDEX docs_index");
        for (int i = 0; i < 60; ++i) changes.change();
        session.rows("VACUUM docs");
        server().signal_server(SIGKILL);
    }
    ASSERT_TRUE(server().ended());
    server().start();
    expect_recovered(dice);
}

TEST_F(IndexCrash, RecoversModelsThatWereNeverWritten) {
    {
        Session session(server().connection());
        session.rows("DROP TABLE docs");
        session.rows("ALTER TABLE pool RENAME TO other_pool");
        create_kinds(session);
        create_pool_of_kinds(session, kPool);
        session.rows("CHECKPOINT");
        session.rows("CREATE INDEX docs_index ON docs USING gputext (body)");
        session.rows("INSERT INTO docs SELECT i, 0, " + kind_of_document("(i * 7)") +
                     ", 1 FROM generate_series(1, 3000) AS i");
        session.rows("DELETE FROM docs WHERE id % 50 < 20");
        session.rows("VACUUM docs");
        server().signal_server(SIGKILL);
    }
    ASSERT_TRUE(server().ended());
    server().start();
    Session session(server().connection());
    EXPECT_GT(models_of(session), 1);
    Dice dice(testing::seed());
    expect_index_goes_on(session, dice, kPool, kRows, 10);
    expect_no_crash(server().log());
    session.rows("DROP TABLE pool");
    session.rows("ALTER TABLE other_pool RENAME TO pool");
}

TEST_F(IndexCrash, EmptiesAnIndexOfAnUnloggedTable) {
    Dice dice(testing::seed());
    // The pages from which it begins come from its file, or from WAL.
    for (const bool checkpoint : {true, false}) {
        {
            Session session(server().connection());
            session.rows("CHECKPOINT");
            session.rows("DROP TABLE docs");
            session.rows(
                "CREATE UNLOGGED TABLE docs (id integer, part integer, body text, seen integer)");
            session.rows("CREATE INDEX docs_index ON docs USING gputext (body) WITH (bins = 64)");
            RandomChanges changes(session, dice, kPool, kRows);
            for (int i = 0; i < 60; ++i) changes.transaction();
            session.rows("VACUUM docs");
            EXPECT_GT(expect_index_finds_all(session, dice, kPool), 0u);
            if (checkpoint) session.rows("CHECKPOINT");
            for (int i = 0; i < 20; ++i) changes.change();
            server().signal_server(SIGKILL);
        }
        ASSERT_TRUE(server().ended());
        server().start();
        {
            Session session(server().connection());
            EXPECT_EQ(session.value("SELECT count(*) FROM docs"), "0");
            EXPECT_EQ(expect_index_finds_all(session, dice, kPool), 0u);
            EXPECT_EQ(session.value("SELECT pg_relation_size('docs_index')"), "24576");
            expect_sound(session);
        }
        expect_recovered(dice);
    }
}

// ---- Where the table and its index are of one transaction ----

// With the least WAL, what such a transaction writes is not logged but written at its end.
TEST_F(IndexCrash, KeepsAnIndexWhoseTransactionWroteNoWal) {
    server().signal_server(SIGINT);
    ASSERT_TRUE(server().ended());
    server().configure("wal_level = minimal\nmax_wal_senders = 0\nwal_skip_threshold = '16kB'\n");
    server().start();
    Dice dice(testing::seed());
    {
        Session session(server().connection());
        session.rows("BEGIN");
        session.rows("DROP TABLE docs");
        session.rows(kDocs);
        session.rows("INSERT INTO docs SELECT id, 0, body, 0 FROM pool");
        const std::string before = session.value("SELECT pg_current_wal_insert_lsn()");
        session.rows("CREATE INDEX docs_index ON docs USING gputext (body)");
        EXPECT_LT(std::stol(session.value("SELECT pg_current_wal_insert_lsn() - '" + before +
                                          "'::pg_lsn")),
                  std::stol(session.value("SELECT pg_relation_size('docs_index')")));
        RandomChanges changes(session, dice, kPool, kRows);
        for (int i = 0; i < 20; ++i) changes.change();
        EXPECT_GT(expect_index_finds_all(session, dice, kPool, {}, 8, false), 0u);
        session.rows("TRUNCATE docs");
        EXPECT_EQ(expect_index_finds_all(session, dice, kPool, {}, 8, false), 0u);
        for (int i = 0; i < 20; ++i) changes.change();
        EXPECT_GT(expect_index_finds_all(session, dice, kPool, {}, 8, false), 0u);
        session.rows("COMMIT");
        server().signal_server(SIGKILL);
    }
    ASSERT_TRUE(server().ended());
    server().start();
    {
        Session session(server().connection());
        EXPECT_NE(session.value("SELECT count(*) FROM docs"), "0");
    }
    expect_recovered(dice);
}

}  // namespace
}  // namespace gputext::live
