// A number of a value that is stored out of line comes again for another value. Whoever keeps
// values by their numbers must see that (extension/values/row_versions.hpp).

#include <climits>

#include "tests/live/next_oid.hpp"

namespace gputext::live {
namespace {

/// A value that a session found, and what it knows of where it lies.
struct Found {
    std::string pointer;  // server's run, database, TOAST table and number
    std::string number;
    std::string value;
    unsigned long long version;  // of the row alone
    unsigned long long since;
    unsigned long long horizon;
};

/// Whether one who keeps a value as it was found may take it for that which was found later.
bool takes(const Found& kept, const Found& later) {
    return kept.pointer == later.pointer && later.since < kept.horizon;
}

constexpr const char* kFunctions =
    "CREATE EXTENSION gputext;"
    "CREATE FUNCTION server_run() RETURNS bigint LANGUAGE c AS 'gputext', 'gputext_server_run';"
    "CREATE FUNCTION row_versions(query text, OUT id bigint, OUT version xid, OUT toast_table oid, "
    "OUT number oid, OUT since bigint, OUT horizon bigint) RETURNS SETOF record STRICT "
    "LANGUAGE c AS 'gputext', 'gputext_row_versions';"
    "CREATE TABLE docs (id bigint PRIMARY KEY, body text, seen bigint DEFAULT 0);"
    "ALTER TABLE docs ALTER body SET STORAGE EXTERNAL;";

class ValueReuse : public ::testing::Test {
protected:
    static constexpr const char* kDatabase = "reuse";

    static void TearDownTestSuite() { server_.reset(); }

    void SetUp() override {
        try {
            if (server_ == nullptr) make_server();
            if (!server().running()) server().start();
            new_database();
        } catch (const std::exception& error) {
            FAIL() << error.what();
        }
    }

    void TearDown() override {
        session_.reset();
        if (HasFailure() && server_ != nullptr) std::puts(server().log().c_str());
    }

    static PrivateServer& server() { return *server_; }
    Session& session() { return *session_; }
    void connect() { session_ = open(); }
    void disconnect() { session_.reset(); }
    static std::unique_ptr<Session> open(const std::string& database = kDatabase) {
        return std::make_unique<Session>(server().connection(database));
    }

    /// The value that is stored out of line next gets this number, unless it is in use.
    static void next_value_gets(Session& by, const std::string& number) {
        by.rows("SELECT set_next_oid(" + number + ")");
    }
    void next_value_gets(const std::string& number) { next_value_gets(session(), number); }

    /// Stores a value of 4 kB in the row with id 1.
    static void insert(Session& by, char letter) {
        by.rows(std::string("INSERT INTO docs(id, body) VALUES (1, repeat('") + letter +
                "', 4000))");
    }
    void insert(char letter) { insert(session(), letter); }
    /// Until the row's number may come again.
    static void remove(Session& by) {
        by.rows("DELETE FROM docs");
        by.rows("VACUUM docs");
    }
    /// Takes the row away and gives its number to another value.
    static void give_number_to(Session& by, char letter) {
        const std::string number = find(by).number;
        remove(by);
        next_value_gets(by, number);
        insert(by, letter);
    }

    /// A row as a session sees it.
    static Found find(Session& by, int id = 1) {
        const pqxx::result found = by.rows(
            "SELECT concat_ws(' ', server_run(), d.oid, v.toast_table, v.number), v.number, "
            "md5(docs.body), v.version, v.since, v.horizon "
            "FROM row_versions('SELECT id, body FROM docs') v JOIN docs USING (id), pg_database d "
            "WHERE d.datname = current_database() AND v.number IS NOT NULL AND id = " +
            std::to_string(id));
        if (found.size() != 1) throw std::runtime_error("the row has no value out of line");
        const auto id_of = [&](int column) {
            return found[0][column].is_null() ? ULLONG_MAX : std::stoull(found[0][column].c_str());
        };
        return {found[0][0].c_str(),
                found[0][1].c_str(),
                found[0][2].c_str(),
                id_of(3),
                id_of(4),
                id_of(5)};
    }
    Found find(int id = 1) { return find(session(), id); }

    /// Another value with the same number, which must not be taken for the one that is kept.
    static void expect_seen_through(const Found& kept, const Found& later) {
        EXPECT_EQ(kept.pointer, later.pointer) << "the number did not come again";
        EXPECT_NE(kept.value, later.value);
        EXPECT_FALSE(takes(kept, later)) << later.since << " < " << kept.horizon;
    }

private:
    static void make_server() {
        auto server = std::make_unique<PrivateServer>("max_prepared_transactions = 5\n");
        server->start();
        server_ = std::move(server);
    }

    void new_database() {
        auto maintenance = open("postgres");
        maintenance->rows(std::string("DROP DATABASE IF EXISTS ") + kDatabase);
        maintenance->rows(std::string("CREATE DATABASE ") + kDatabase);
        connect();
        session().rows(kFunctions + create_set_next_oid(server()));
    }

    static inline std::unique_ptr<PrivateServer> server_;
    std::unique_ptr<Session> session_;
};

// ---- How numbers come again ----

TEST_F(ValueReuse, ANumberComesAgainWhenTheCounterHasGoneRound) {
    insert('a');
    const std::string number = find().number;
    remove(session());
    next_value_gets(number);
    insert('b');
    EXPECT_EQ(find().number, number);
    EXPECT_EQ(session().value("SELECT left(body, 1) FROM docs"), "b");
    // Which is what the TOAST table has of it.
    const std::string toast = session().value(
        "SELECT reltoastrelid::regclass FROM pg_class WHERE oid = 'docs'::regclass");
    EXPECT_EQ(session().value("SELECT DISTINCT chunk_id FROM " + toast), number);
}

TEST_F(ValueReuse, ANumberDoesNotComeAgainBeforeVacuum) {
    insert('a');
    const std::string number = find().number;
    session().rows("DELETE FROM docs");
    next_value_gets(number);
    insert('b');
    EXPECT_NE(find().number, number);
}

TEST_F(ValueReuse, ANumberDoesNotComeAgainWhileASnapshotSeesItsValue) {
    insert('a');
    auto reader = open();
    reader->rows("BEGIN ISOLATION LEVEL REPEATABLE READ");
    const Found seen = find(*reader);
    give_number_to(session(), 'b');
    EXPECT_NE(find().number, seen.number);
    EXPECT_EQ(find(*reader).value, seen.value);
}

// ---- That it is seen ----

TEST_F(ValueReuse, AValueIsFoundAgainAsLongAsItIsTheSame) {
    insert('a');
    const Found kept = find();
    EXPECT_TRUE(takes(kept, find()));
    session().rows("VACUUM FREEZE docs");
    session().rows("ANALYZE docs");
    EXPECT_TRUE(takes(kept, find()));
    auto other = open();
    EXPECT_TRUE(takes(kept, find(*other)));
    // Another version of the row points to the same value, but that cannot be known before a later
    // snapshot has read it.
    session().rows("UPDATE docs SET seen = 1");
    const Found later = find();
    EXPECT_EQ(later.pointer, kept.pointer);
    EXPECT_FALSE(takes(kept, later));
    EXPECT_TRUE(takes(later, find()));
}

TEST_F(ValueReuse, IsSeenAfterDeleteAndVacuum) {
    insert('a');
    const Found kept = find();
    give_number_to(session(), 'b');
    expect_seen_through(kept, find());
    session().rows("VACUUM FREEZE docs");
    expect_seen_through(kept, find());
}

TEST_F(ValueReuse, IsSeenAfterTruncate) {
    insert('a');
    const Found kept = find();
    session().rows("TRUNCATE docs");
    next_value_gets(kept.number);
    insert('b');
    expect_seen_through(kept, find());
}

/// A transaction that is older than those of the snapshots after it, but younger than the one that
/// takes the value away: or else VACUUM would leave it alone.
class BesideAnOldTransaction : public ValueReuse {
protected:
    void SetUp() override {
        ValueReuse::SetUp();
        if (HasFailure()) return;
        insert('a');
        oldest_ = open();
        oldest_->rows("BEGIN");
        oldest_->rows("DELETE FROM docs");
        old_ = open();
        old_->rows("BEGIN");
        id_ = std::stoull(old_->value("SELECT pg_current_xact_id()"));
        for (int i = 0; i < 10; ++i) session().rows("SELECT pg_current_xact_id()");
    }
    void TearDown() override {
        old_.reset();
        oldest_.reset();
        ValueReuse::TearDown();
    }

    /// After the snapshot that saw the row, which then goes. The next value gets its number.
    void remove_row(const std::string& number) {
        oldest_->rows("COMMIT");
        session().rows("VACUUM docs");
        next_value_gets(number);
    }

    Session& old() { return *old_; }
    unsigned long long id() const { return id_; }

private:
    std::unique_ptr<Session> oldest_, old_;
    unsigned long long id_ = 0;
};

TEST_F(BesideAnOldTransaction, IsSeenWhereItMadeTheValue) {
    const Found kept = find();
    remove_row(kept.number);
    insert(old(), 'b');
    old().rows("COMMIT");
    ASSERT_EQ(find().version, id());
    expect_seen_through(kept, find());
}

TEST_F(BesideAnOldTransaction, IsSeenWhereItMadeTheRowVersionAndAYoungerOneTheValue) {
    const Found kept = find();
    remove_row(kept.number);
    insert('b');
    ASSERT_GT(find().version, id());
    old().rows("UPDATE docs SET seen = 1");
    old().rows("COMMIT");
    ASSERT_EQ(find().version, id());
    expect_seen_through(kept, find());
}

TEST_F(BesideAnOldTransaction, IsSeenWhereASubtransactionOfItMadeTheValueAndItWasPrepared) {
    const Found kept = find();
    remove_row(kept.number);
    old().rows("SAVEPOINT point");
    insert(old(), 'b');
    old().rows("RELEASE point");
    old().rows("PREPARE TRANSACTION 'old'");
    session().rows("COMMIT PREPARED 'old'");
    ASSERT_GT(find().version, id());
    expect_seen_through(kept, find());
}

// ---- Where the row is older than the value ----

TEST_F(ValueReuse, IsSeenWhereVacuumFullStoresAnOldRowsValueAnew) {
    // A row whose value is within it, and values out of line with numbers one behind the other.
    session().rows("ALTER TABLE docs ALTER body SET STORAGE MAIN");
    session().rows(
        "INSERT INTO docs SELECT 1000, string_agg(md5(i::text), '') FROM generate_series(1, 100) "
        "i");
    session().rows("ALTER TABLE docs ALTER body SET STORAGE EXTERNAL");
    session().rows(
        "INSERT INTO docs SELECT i, repeat(i::text, 4000) FROM generate_series(1, 50) i");
    std::vector<Found> kept;
    for (int id = 1; id <= 50; ++id) kept.push_back(find(id));
    session().rows("DELETE FROM docs WHERE id <= 50");
    session().rows("VACUUM docs");
    // VACUUM FULL takes some numbers for itself before it comes to the value.
    next_value_gets(kept.front().number);
    session().rows("VACUUM FULL docs");
    const Found later = find(1000);
    const auto same = std::find_if(kept.begin(), kept.end(),
                                   [&](const Found& one) { return one.pointer == later.pointer; });
    ASSERT_NE(same, kept.end()) << later.pointer;
    EXPECT_LT(later.version, same->horizon);
    expect_seen_through(*same, later);
    // It may be kept from now on.
    EXPECT_TRUE(takes(later, find(1000)));
}

TEST_F(ValueReuse, IsSeenInAnotherDatabaseWithTheSameNumber) {
    insert('a');
    disconnect();
    auto maintenance = open("postgres");
    maintenance->rows("DROP DATABASE IF EXISTS copy");
    maintenance->rows(std::string("CREATE DATABASE copy TEMPLATE ") + kDatabase);
    auto copy = open("copy");
    give_number_to(*copy, 'b');
    const Found kept = find(*copy);
    const std::string oid =
        copy->value("SELECT oid FROM pg_database WHERE datname = current_database()");
    copy.reset();
    ASSERT_TRUE(eventually([&] { return maintenance->sqlstate("DROP DATABASE copy") == "ok"; }));
    maintenance->rows("CREATE DATABASE copy OID " + oid + " TEMPLATE " + kDatabase);
    copy = open("copy");
    const Found later = find(*copy);
    EXPECT_LT(later.version, kept.horizon);
    expect_seen_through(kept, later);
    EXPECT_TRUE(takes(later, find(*copy)));
    copy.reset();
    ASSERT_TRUE(eventually([&] { return maintenance->sqlstate("DROP DATABASE copy") == "ok"; }));
}

// ---- Other runs of the server ----

TEST_F(ValueReuse, NothingIsTakenOverACrashOrARestart) {
    insert('a');
    const Found kept = find();
    ASSERT_TRUE(takes(kept, find()));
    // The server ends all sessions when it has seen that one was killed. Until then it takes new ones.
    const auto witness = open("postgres");
    send_signal(session().pid(), SIGKILL);
    ASSERT_TRUE(eventually([&] { return session().sqlstate("SELECT 1") == "gone"; }));
    ASSERT_TRUE(eventually([&] { return witness->sqlstate("SELECT 1") != "ok"; }));
    ASSERT_TRUE(eventually([&] {
        try {
            connect();
            return true;
        } catch (const std::exception&) {
            return false;
        }
    }));
    const Found after_crash = find();
    EXPECT_NE(after_crash.pointer, kept.pointer);
    EXPECT_EQ(after_crash.number, kept.number);
    disconnect();
    server().signal_server(SIGINT);
    ASSERT_TRUE(server().ended());
    server().start();
    connect();
    const Found after_restart = find();
    EXPECT_NE(after_restart.pointer, kept.pointer);
    EXPECT_NE(after_restart.pointer, after_crash.pointer);
    EXPECT_EQ(after_restart.number, kept.number);
}

TEST_F(ValueReuse, IsSeenOnAStandbyThatIsPromoted) {
    insert('a');
    session().rows("INSERT INTO docs SELECT 2, repeat('c', 4000)");
    auto standby = PrivateServer::standby_of(server());
    standby->start();
    {
        Session reader(standby->connection(kDatabase));
        ASSERT_EQ(reader.value("SELECT pg_is_in_recovery()"), "t");
        const Found kept = find(reader), other = find(reader, 2);
        EXPECT_TRUE(takes(kept, find(reader)));
        // On the primary, and then by itself
        give_number_to(session(), 'b');
        session().rows("INSERT INTO docs SELECT 2, repeat('c', 4000)");
        const std::string written = session().value("SELECT pg_current_wal_flush_lsn()");
        ASSERT_TRUE(eventually([&] {
            return reader.value("SELECT pg_last_wal_replay_lsn() >= '" + written + "'::pg_lsn") ==
                   "t";
        }));
        const Found replayed = find(reader);
        expect_seen_through(kept, replayed);
        EXPECT_FALSE(takes(other, find(reader, 2)));
        const Found kept_two = find(reader, 2);
        ASSERT_TRUE(promote(reader));
        EXPECT_TRUE(takes(replayed, find(reader)));
        EXPECT_TRUE(takes(kept_two, find(reader, 2)));
        give_number_to(reader, 'd');
        expect_seen_through(replayed, find(reader));
        EXPECT_FALSE(takes(kept, find(reader)));
    }
}

// ---- Where neither pointers nor places mean anything ----

/// VACUUM may then remove rows that a statement still has to read.
TEST_F(ValueReuse, IsNotRiskedWhereVacuumRemovesWhatSnapshotsSee) {
    if (std::stoi(session().value("SHOW server_version_num")) >= 170000)
        GTEST_SKIP() << "no release since 17 has old_snapshot_threshold";
    const std::string functions =
        std::string(kFunctions) +
        "CREATE FUNCTION row_places(query text, OUT id bigint, OUT relation regclass, OUT place "
        "tid) "
        "RETURNS SETOF record STRICT LANGUAGE c AS 'gputext', 'gputext_row_places';"
        "INSERT INTO docs SELECT i, CASE WHEN i > 1 THEN repeat('a', 1000) ELSE repeat('b', 4000) "
        "END "
        "FROM generate_series(1, 20) AS i;";
    const auto placed = [](Session& by) {
        return by.value("SELECT count(place) FROM row_places('SELECT id, body FROM docs')");
    };
    for (const char* configuration : {"", "old_snapshot_threshold = 60min\n"}) {
        PrivateServer another(configuration);
        another.start();
        Session reader(another.connection());
        reader.rows(functions);
        reader.rows("VACUUM ANALYZE docs");
        const bool risky = *configuration != 0;
        EXPECT_EQ(placed(reader), risky ? "0" : "19");
        EXPECT_EQ(find(reader).horizon == 0, risky);
    }
}

/// A value that is gone leaves its chunk on the page until that is pruned or vacuumed. Whoever
/// looks for the number in the TOAST table itself has the index forget it, so that it may come
/// again.
TEST_F(ValueReuse, AChunkThatTheIndexHasForgottenIsNotOfTheNextValue) {
    const auto place = [](const std::string& element) {
        return "(SELECT array_agg(" + element + ") FROM generate_series(1, 425) AS j)::real[], " +
               "repeat('x', 2100)";
    };
    const auto answer = [&](const std::string& value) {
        return session().value(
            "SELECT sum(hashtextextended(s::text, 0)) FROM cosine_similarities(array_fill(0.5, "
            "ARRAY[425]), 'SELECT id, " +
            value + " FROM places') AS s");
    };
    // One of which no element is as it should be, and one that is as others are
    for (const char* element : {"'Infinity'::real", "j % 7"}) {
        session().rows(
            "DROP TABLE IF EXISTS places; CREATE TABLE places (id bigint, place real[], filler "
            "text) WITH (toast_tuple_target = 128); ALTER TABLE places ALTER place SET STORAGE "
            "EXTERNAL");
        // Four chunks to a page, which is too empty to be pruned and too full for another one
        session().rows(
            "INSERT INTO places SELECT i, array_fill(1, ARRAY[425])::real[], "
            "repeat('x', 2100) FROM generate_series(1, 1103) AS i");
        session().rows("INSERT INTO places SELECT 2000, " + place(element));
        const std::string number_of =
            "SELECT number FROM row_versions('SELECT id, place FROM places') WHERE id = ";
        const std::string number = session().value(number_of + "2000");
        session().rows("DELETE FROM places WHERE id = 1");
        session().rows("VACUUM (INDEX_CLEANUP on) places");
        session().rows("DELETE FROM places WHERE id = 2000");
        const std::string chunks = "FROM " +
                                   session().value(
                                       "SELECT reltoastrelid::regclass FROM pg_class WHERE oid = "
                                       "'places'::regclass") +
                                   " WHERE chunk_id = " + number;
        session().rows("SET enable_seqscan = off");
        ASSERT_EQ(session().value("SELECT count(*) " + chunks), "0");
        next_value_gets(number);
        session().rows("INSERT INTO places SELECT 1, " + place("j % 5"));
        ASSERT_EQ(session().value(number_of + "1"), number);
        // The page that is read last has the older chunk.
        ASSERT_EQ(session().value("SELECT (ctid::text::point)[0] " + chunks), "0");
        session().rows("RESET enable_seqscan");
        const std::size_t said = server().log().size();
        session().rows("SET log_min_messages = debug1");
        EXPECT_EQ(answer("place"), answer("place || ''{}''::real[]")) << element;
        session().rows("RESET log_min_messages");
        EXPECT_NE(server().log().find("1 of 1103 vectors are not in them as usual", said),
                  std::string::npos);
    }
}

}  // namespace
}  // namespace gputext::live
