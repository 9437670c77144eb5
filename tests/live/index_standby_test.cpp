// Searches through an index on a hot standby, while the primary changes the table, vacuums it and
// builds the index anew; and after the standby is promoted. The standby is made by pg_basebackup,
// which copies the index's file as pg_upgrade does: nothing in it depends on the server's release.

#include "tests/live/index_use.hpp"
#include "tests/live/private_server.hpp"

namespace gputext::live {
namespace {

constexpr std::size_t kPool = 400, kRows = 800;

class IndexStandby : public ::testing::Test {
protected:
    void SetUp() override {
        try {
            primary_ = std::make_unique<PrivateServer>(
                "wal_consistency_checking = 'all'\nmax_wal_size = '1GB'\nwal_keep_size = '1GB'\n"
                "wal_retrieve_retry_interval = '100ms'\n"
                "max_standby_streaming_delay = -1\n");
            primary_->start();
            Session session(primary().connection());
            session.rows("CREATE EXTENSION gputext");
            create_pool(session, kPool);
            session.rows("CREATE TABLE docs (id integer, part integer, body text, seen integer)");
            session.rows("CREATE INDEX docs_index ON docs USING gputext (body)");
            Dice dice(testing::seed());
            RandomChanges changes(session, dice, kPool, kRows);
            for (int i = 0; i < 20; ++i) changes.change();
            standby_ = PrivateServer::standby_of(primary());
            standby_->start();
        } catch (const std::exception& error) {
            FAIL() << error.what();
        }
    }

    void TearDown() override {
        if (!HasFailure()) return;
        if (primary_ != nullptr) std::puts(primary_->log().c_str());
        if (standby_ != nullptr) std::puts(standby_->log().c_str());
    }

    PrivateServer& primary() { return *primary_; }
    PrivateServer& standby() { return *standby_; }

    bool caught_up(Session& writer, Session& reader) {
        const std::string written = writer.value("SELECT pg_current_wal_flush_lsn()");
        return eventually([&] {
            return reader.value("SELECT pg_last_wal_replay_lsn() >= '" + written + "'::pg_lsn") ==
                   "t";
        });
    }

    /// All documents, as the primary's table has them.
    static std::string all_near(Session& session, const Way& way) {
        session.rows("BEGIN");
        const std::string found =
            session.table(way.settings + search_statement({}, "1,20,40,80,160,320,399", 0.05, 0));
        session.rows("COMMIT");
        return found;
    }

    void expect_no_crash() {
        live::expect_no_crash(primary().log());
        live::expect_no_crash(standby().log());
    }

private:
    std::unique_ptr<PrivateServer> primary_, standby_;
};

TEST_F(IndexStandby, FindsWhatTheTableHasAndGoesOnWhenItIsPromoted) {
    std::atomic<bool> stop{false};
    std::thread load([&] {
        try {
            Session session(primary().connection());
            Dice dice(testing::seed() + 1);
            RandomChanges changes(session, dice, kPool, kRows);
            for (int i = 1; !stop; ++i) {
                dice.percent(30) ? changes.transaction() : changes.change();
                if (i % 10 == 0) session.rows("VACUUM docs");
                if (i % 100 == 0) session.rows("REINDEX INDEX CONCURRENTLY docs_index");
                if (i % 70 == 0) session.rows("CHECKPOINT");
                std::this_thread::sleep_for(3ms);  // the standby is to stay close
            }
        } catch (const std::exception& error) {
            ADD_FAILURE() << error.what();
        }
    });
    const auto end = Clock::now() + std::chrono::seconds(number_from("GPUTEXT_INDEX_SECONDS", 4));
    std::size_t found = 0, searches = 0;
    try {
        Session reader(standby().connection());
        Dice dice(testing::seed());
        EXPECT_EQ(reader.value("SELECT pg_is_in_recovery()"), "t");
        for (; (Clock::now() < end || searches <= 10) && !HasFailure(); ++searches)
            found += expect_index_finds_all(reader, dice, kPool);
    } catch (const std::exception& error) {
        ADD_FAILURE() << error.what();
    }
    stop = true;
    load.join();
    EXPECT_GT(searches, 10u);
    EXPECT_GT(found, searches);

    Session writer(primary().connection()), reader(standby().connection());
    ASSERT_TRUE(caught_up(writer, reader));
    const std::string expected = all_near(writer, kWithoutIndex);
    for (const Way& way : kWithIndex) EXPECT_EQ(all_near(reader, way), expected) << way.name;
    expect_sound(writer);
    expect_sound(reader);

    ASSERT_TRUE(promote(reader));
    Dice dice(testing::seed() + 2);
    RandomChanges changes(reader, dice, kPool, kRows);
    for (int i = 0; i < 100; ++i) {
        dice.percent(30) ? changes.transaction() : changes.change();
        if (i % 20 == 0) reader.rows("VACUUM docs");
        if (i % 10 == 0) found += expect_index_finds_all(reader, dice, kPool);
    }
    expect_sound(reader);
    expect_no_crash();
}

TEST_F(IndexStandby, HasTheModelsOfThePrimary) {
    Session writer(primary().connection()), reader(standby().connection());
    writer.rows("DROP TABLE docs, pool");
    create_kinds(writer);
    create_pool_of_kinds(writer, kPool);
    writer.rows("CREATE INDEX docs_index ON docs USING gputext (body)");
    EXPECT_GT(models_of(writer), 1);
    Dice dice(testing::seed());
    std::size_t found = 0;
    for (const char* statement : {"SELECT", "REINDEX INDEX docs_index",
                                  "DELETE FROM docs WHERE id % 50 < 20", "VACUUM docs"}) {
        writer.rows(statement);
        ASSERT_TRUE(caught_up(writer, reader));
        for (int i = 0; i < 2; ++i) found += expect_index_finds_all(reader, dice, kPool);
        expect_sound(reader);
    }
    EXPECT_GT(found, 0u);
    ASSERT_TRUE(promote(reader));
    EXPECT_GT(models_of(reader), 1);
    expect_index_goes_on(reader, dice, kPool, kRows, 10);
    expect_no_crash();
}

// What the standby has not been sent yet it has in the index of no row that is there.
TEST_F(IndexStandby, IsPromotedWhereThePrimaryEndsInTheMidstOfItsChanges) {
    std::thread load([&] {
        try {
            Session session(primary().connection());
            Dice dice(testing::seed() + 1);
            RandomChanges changes(session, dice, kPool, kRows);
            for (int i = 1;; ++i) {
                dice.percent(30) ? changes.transaction() : changes.change();
                if (i % 10 == 0) session.rows("VACUUM docs");
            }
        } catch (const std::exception&) {
            // as the server ends
        }
    });
    std::this_thread::sleep_for(500ms);
    primary().signal_server(SIGQUIT);
    load.join();
    Session session(standby().connection());
    ASSERT_TRUE(promote(session));
    Dice dice(testing::seed());
    expect_index_goes_on(session, dice, kPool, kRows, 30);
    expect_no_crash();
}

}  // namespace
}  // namespace gputext::live
