// After a few rows have changed, gpu_knn reads the pages that have changed and not the table, and
// gives the rows that a scan gives, whatever sessions have done to the table meanwhile.

#include <libpq-fe.h>

#include <atomic>
#include <memory>
#include <random>
#include <thread>

#include "tests/live/resident_use.hpp"
#include "tests/support/test_size.hpp"

namespace gputext::live {
namespace {

class ChangedRows : public ResidentTest {
protected:
    /// As many rows as are worth a question to gputextd.
    static constexpr int kPlaces = 7000;

    void SetUp() override {
        DaemonTest::SetUp();
        if (HasFailure()) return;
        session().rows("DROP TABLE IF EXISTS places, asked");
        // Of a row that is long before it is stored, the vector is stored out of line.
        session().rows(
            "CREATE TABLE places (id bigint, kind int, place real[], filler text) "
            "WITH (toast_tuple_target = 128, fillfactor = 90)");
        session().rows("ALTER TABLE places ALTER place SET STORAGE EXTERNAL");
        session().rows("CREATE TABLE asked AS SELECT i AS id, " + place("i * 131") +
                       " AS place FROM generate_series(1, 3) AS i");
        fill();
        session().rows("VACUUM places, asked");
        set("gputext.device = cpu");
        is_scanned();
        is_scanned();
        ASSERT_FALSE(is_scanned());
    }
    void fill() {
        session().rows("INSERT INTO places SELECT i, 0, " + row("i") + " FROM generate_series(1, " +
                       std::to_string(kPlaces) + ") AS i");
    }

    /// A vector of 40 numbers, of which few are equal.
    static std::string place(const std::string& number) {
        return "(SELECT array_agg(((" + number + ") * 31 + j * 17 + (" + number +
               ") * j) % 101) FROM generate_series(1, 40) AS j)::real[]";
    }

    /// The last columns of a row, and what an update sets them to.
    static std::string row(const std::string& number) {
        return place(number) + ", repeat('x', 2100)";
    }
    static std::string update(const std::string& number) {
        return "UPDATE places SET (place, filler) = (SELECT " + row(number) + ")";
    }

    /// A search among these items: its rows in their order, as one number.
    static std::string search(const std::string& items, const std::string& options = "5") {
        return "SELECT count(*) || ' ' || coalesce(sum(hashtextextended(s::text, 0)), 0) "
               "FROM gpu_knn('SELECT id, place FROM asked', $$" +
               items + "$$, " + options + ") AS s";
    }
    static constexpr const char* kItems = "SELECT id, place FROM places";
    /// Values without a pointer, which nobody keeps.
    static constexpr const char* kComputed =
        "SELECT id, CASE WHEN place IS NOT NULL THEN place || '{}'::real[] END FROM places";
    /// As the number of neighbors: all items.
    static constexpr const char* kAll = "100000";

    static std::string answer(Session& session) { return session.value(search(kItems, kAll)); }
    static std::string expected(Session& session) { return session.value(search(kComputed, kAll)); }

    /// How often the transaction has scanned the table so far.
    static long scans(Session& session) {
        return std::stol(session.value("SELECT pg_stat_get_xact_numscans('places'::regclass)"));
    }
    /// Whether the answer takes a scan of the table. It has to be right.
    static bool is_scanned(Session& session, const std::string& options = "5") {
        session.rows("BEGIN ISOLATION LEVEL REPEATABLE READ");
        const std::string right = session.value(search(kComputed, options));
        const long before = scans(session);
        EXPECT_EQ(session.value(search(kItems, options)), right) << options;
        const long after = scans(session);
        session.rows("COMMIT");
        return after > before;
    }
    bool is_scanned() { return is_scanned(session()); }
    /// A table that is vacuumed is scanned once.
    void keep() {
        session().rows("VACUUM places");
        is_scanned();
        is_scanned();
        ASSERT_FALSE(is_scanned());
    }
};

TEST_F(ChangedRows, AreNoScan) {
    Session *writer = &session(), *next = &other();
    for (const std::string& change : std::vector<std::string>{
             "INSERT INTO places SELECT 0, 1, " + row("131"),
             "INSERT INTO places SELECT 9000, 1, " + row("262"), update("393") + " WHERE id = 17",
             update("131") + " WHERE id BETWEEN 500 AND 520",
             "UPDATE places SET kind = kind + 1 WHERE id = 4000",
             "UPDATE places SET id = -id WHERE id IN (131, 262)",
             "DELETE FROM places WHERE id = 393",
             "DELETE FROM places WHERE id = -131; INSERT INTO places SELECT 131, 2, " + row("131"),
             "INSERT INTO places VALUES (9001, 1, NULL)",
             "UPDATE places SET place = NULL WHERE id = 524", update("4 * 131") + " WHERE id = 524",
             "DELETE FROM places WHERE id = 9001", "BEGIN; DELETE FROM places; ROLLBACK",
             "BEGIN; INSERT INTO places SELECT 9002, 1, " + row("131") + "; ROLLBACK",
             "BEGIN; SELECT FROM places WHERE id < 30 FOR UPDATE; COMMIT"}) {
        SCOPED_TRACE(change);
        writer->rows(change);
        std::swap(writer, next);
        for (const char* options : {kAll, "3, 'euclidean', exclude_self => true"})
            EXPECT_FALSE(is_scanned(session(), options)) << options;
    }
    for (const char* device : {"gpu", "auto", "cpu"}) {
        set(std::string("gputext.device = ") + device);
        EXPECT_FALSE(is_scanned());
    }
    const auto within = [&](const char* items) {
        return session().value(
            "SELECT string_agg(s::text, ' ') FROM gpu_knn_within('SELECT id, "
            "place FROM asked', $$" +
            std::string(items) + "$$, 0.001) AS s");
    };
    session().rows("BEGIN");
    const std::string right = within(kComputed);
    const long before = scans(session());
    EXPECT_EQ(within(kItems), right);
    EXPECT_EQ(scans(session()), before);
    session().rows("COMMIT");
}

/// The server gives the place of a row that is gone to another one, without VACUUM.
TEST_F(ChangedRows, AreNotTakenForThoseThatHadTheirPlace) {
    other().rows("UPDATE places SET kind = 1 WHERE id = 17");
    const std::string place = other().value("SELECT ctid FROM places WHERE id = 17");
    const auto row_there = [&] {
        return other().value("SELECT max(id) FROM places WHERE ctid = '" + place + "'");
    };
    Session another(server().connection());
    for (int i = 0; i < 2; ++i) is_scanned(another);
    other().rows("DELETE FROM places WHERE id = 17");
    // Until the page is full, and what is dead on it is removed
    for (int i = 0; i < 20 && row_there() == "NULL"; ++i) {
        other().rows("UPDATE places SET kind = kind + 1 WHERE id = 18");
        EXPECT_FALSE(is_scanned(another, kAll));
    }
    EXPECT_EQ(row_there(), "18");
}

TEST_F(ChangedRows, AreForgottenWithTheTable) {
    for (const char* change :
         {"VACUUM places", "VACUUM FREEZE places", "VACUUM FULL places", "ANALYZE places",
          "ALTER TABLE places ALTER kind TYPE bigint", "ALTER TABLE places ADD more int DEFAULT 3",
          "CREATE INDEX by_id ON places (id); CLUSTER places USING by_id",
          "BEGIN; ALTER TABLE places RENAME place TO gone; ALTER TABLE places ADD place real[] "
          "DEFAULT array_fill(2, ARRAY[40])::real[]; COMMIT",
          "ALTER TABLE places DROP place; ALTER TABLE places RENAME gone TO place",
          "TRUNCATE places"}) {
        SCOPED_TRACE(change);
        other().rows(update("393") + " WHERE id % 1000 = 7");
        is_scanned();
        other().rows(change);
        is_scanned();
        is_scanned();
        other().rows("INSERT INTO places SELECT 9000, 1, " + row("262"));
        is_scanned();
        other().rows("DELETE FROM places WHERE id = 9000");
        is_scanned();
    }
    fill();
    keep();
    // The last pages go, and others come.
    other().rows("DELETE FROM places WHERE id > 6000");
    other().rows("VACUUM places");
    EXPECT_TRUE(is_scanned());
    fill();
    is_scanned();
    // A table that a transaction has emptied itself
    session().rows("BEGIN");
    session().rows("TRUNCATE places");
    fill();
    for (int i = 0; i < 2; ++i) EXPECT_EQ(answer(session()), expected(session()));
    session().rows("ROLLBACK");
    is_scanned();
}

TEST_F(ChangedRows, AreScannedWhereTheyAreMany) {
    other().rows(update("393") + " WHERE id % 10 = 7");
    EXPECT_TRUE(is_scanned());
    keep();
    // New pages are read up to a number, too.
    other().rows("INSERT INTO places SELECT 10000 + i, 0, " + row("i") +
                 " FROM generate_series(1, 400) AS i");
    EXPECT_FALSE(is_scanned());
    other().rows("INSERT INTO places SELECT 20000 + i, 0, " + row("i") +
                 " FROM generate_series(1, 400) AS i");
    EXPECT_TRUE(is_scanned());
    // What a scan has found on pages that were not vacuumed is known, too.
    EXPECT_FALSE(is_scanned());
    other().rows("DELETE FROM places WHERE id IN (131, 20131)");
    EXPECT_FALSE(is_scanned());
    // Without memory for where the rows lie
    set("gputext.scan_memory = '70kB'");
    keep();
    other().rows("DELETE FROM places WHERE id = 262");
    EXPECT_TRUE(is_scanned());
    set("gputext.scan_memory = '64MB'");
}

TEST_F(ChangedRows, AreCountedWhereTheirVectorsAreNull) {
    const std::unique_ptr<PGconn, void (*)(PGconn*)> connection(
        PQconnectdb(server().connection().text.c_str()), PQfinish);
    std::string notices;
    PQsetNoticeProcessor(
        connection.get(),
        [](void* all, const char* notice) { *static_cast<std::string*>(all) += notice; }, &notices);
    const auto notices_of = [&](const std::string& statement) {
        notices.clear();
        PQclear(PQexec(connection.get(), statement.c_str()));
        return notices;
    };
    other().rows("UPDATE places SET place = NULL WHERE id < 4");
    other().rows("VACUUM places");
    notices_of("SET gputext.device = cpu");
    for (const char* change :
         {"SELECT", "DELETE FROM places WHERE id = 1", "UPDATE places SET kind = 2 WHERE id = 2",
          "INSERT INTO places SELECT -i FROM generate_series(1, 5) AS i",
          "UPDATE places SET place = NULL WHERE id = 4000"}) {
        other().rows(change);
        EXPECT_NE(notices_of(search(kComputed)).find("skipped"), std::string::npos);
        const std::string right = notices;
        for (int i = 0; i < 3; ++i) EXPECT_EQ(notices_of(search(kItems)), right) << change;
    }
    EXPECT_EQ(notices_of("SET client_min_messages = debug1"), "");
    EXPECT_NE(notices_of(search(kItems)).find("took the rows of an earlier scan"),
              std::string::npos);
}

TEST_F(ChangedRows, HaveIdsOfTheirOwn) {
    other().rows("INSERT INTO places SELECT 131, 1, " + row("131"));
    EXPECT_TRUE(is_scanned()) << "rows of one id come as they are scanned";
    EXPECT_TRUE(is_scanned());
    other().rows("DELETE FROM places WHERE kind = 1");
    keep();
    other().rows("INSERT INTO places SELECT 9000, 1, " + row("i") +
                 " FROM generate_series(1, 2) AS i");
    EXPECT_TRUE(is_scanned());
    other().rows("DELETE FROM places WHERE kind = 1");
    keep();
    // Errors are those of a scan.
    for (const char* row :
         {"NULL, 1, array_fill(1, ARRAY[40])", "9000, 1, array_fill(1, ARRAY[41])",
          "9000, 1, array_fill('NaN'::real, ARRAY[40])", "-1, 1, '{}'"}) {
        other().rows("INSERT INTO places VALUES (" + std::string(row) + ")");
        const std::string state = session().sqlstate(search(kComputed));
        const std::string message = session().message();
        EXPECT_NE(state, "ok");
        EXPECT_EQ(session().sqlstate(search(kItems)), state) << row;
        EXPECT_EQ(session().message().substr(0, 60), message.substr(0, 60)) << row;
        other().rows("DELETE FROM places WHERE kind = 1");
        keep();
    }
    // Ids of another type, and ids that widen
    session().rows("ALTER TABLE places ALTER id TYPE int");
    keep();
    other().rows("INSERT INTO places SELECT 0, 1, " + row("131"));
    EXPECT_FALSE(is_scanned());
    const auto as_text = [&](const std::string& items) {
        return session().value(
            "SELECT string_agg(s::text, ' ') FROM gpu_knn('SELECT id::text, "
            "place FROM asked', $$" +
            items + "$$, NULL::text, 5, exclude_self => true) AS s");
    };
    session().rows("ALTER TABLE places ALTER id TYPE text");
    session().rows("VACUUM places");
    for (int i = 0; i < 3; ++i) EXPECT_EQ(as_text(kItems), as_text(kComputed));
    other().rows("INSERT INTO places SELECT 'one', 1, " + row("131"));
    other().rows("UPDATE places SET id = id || 'x' WHERE id IN ('1', '131', '7999')");
    session().rows("BEGIN");
    const std::string right = as_text(kComputed);
    const long before = scans(session());
    EXPECT_EQ(as_text(kItems), right);
    EXPECT_EQ(scans(session()), before);
    session().rows("COMMIT");
}

TEST_F(ChangedRows, FollowTheSnapshot) {
    Session old(server().connection()), writer(server().connection());
    for (int i = 0; i < 2; ++i) is_scanned(old);
    old.rows("BEGIN ISOLATION LEVEL REPEATABLE READ");
    const std::string first = answer(old);
    // Of a transaction that runs nothing is seen, and then all.
    writer.rows("BEGIN");
    writer.rows(update("131") + " WHERE id BETWEEN 1 AND 9");
    writer.rows("SAVEPOINT here");
    writer.rows("DELETE FROM places WHERE id = 131");
    EXPECT_EQ(answer(writer), expected(writer));
    EXPECT_EQ(answer(session()), first);
    writer.rows("ROLLBACK TO here");
    EXPECT_EQ(answer(writer), expected(writer));
    EXPECT_EQ(answer(session()), first);
    session().rows("BEGIN");
    session().rows("DECLARE early CURSOR FOR " + search(kItems, kAll));
    writer.rows("COMMIT");
    const std::string second = expected(session());
    EXPECT_NE(second, first);
    EXPECT_EQ(answer(session()), second);
    EXPECT_EQ(session().value("FETCH early"), first);
    EXPECT_EQ(answer(session()), second);
    EXPECT_EQ(answer(old), first);
    session().rows("COMMIT");
    // What a scan has seen of its own transaction may not stay.
    session().rows("BEGIN");
    session().rows(update("262") + " WHERE id % 10 = 1");
    const std::string third = expected(session());
    for (int i = 0; i < 3; ++i) EXPECT_EQ(answer(session()), third);
    session().rows("ROLLBACK");
    for (int i = 0; i < 3; ++i) EXPECT_EQ(answer(session()), second);
    EXPECT_EQ(answer(old), first);
    old.rows("COMMIT");
    EXPECT_EQ(answer(old), second);
}

TEST_F(ChangedRows, AreThoseOfTheRoleThatAsks) {
    session().rows("DROP ROLE IF EXISTS reader");
    session().rows("CREATE ROLE reader");
    session().rows("GRANT SELECT ON asked TO reader");
    session().rows("GRANT SELECT (id) ON places TO reader");
    keep();
    other().rows("INSERT INTO places SELECT 0, 1, " + row("131"));
    session().rows("SET ROLE reader");
    EXPECT_EQ(session().sqlstate(search(kItems)), "42501");
    session().rows("RESET ROLE");
    other().rows("GRANT SELECT ON places TO reader");
    keep();
    other().rows("INSERT INTO places SELECT -1, 1, " + row("131"));
    session().rows("SET ROLE reader");
    EXPECT_FALSE(is_scanned());
    session().rows("RESET ROLE");
    other().rows("ALTER TABLE places ENABLE ROW LEVEL SECURITY");
    other().rows("CREATE POLICY few ON places TO reader USING (kind = 0)");
    keep();
    other().rows("INSERT INTO places SELECT -2, 1, " + row("131"));
    EXPECT_FALSE(is_scanned());
    session().rows("SET ROLE reader");
    EXPECT_TRUE(is_scanned());
    session().rows("RESET ROLE");
    session().rows("DROP TABLE places");
    session().rows("DROP OWNED BY reader");
    session().rows("DROP ROLE reader");
}

/// The server goes on with what it has in its log.
TEST_F(ChangedRows, AreThereAfterACrash) {
    for (int i = 0; i < 2; ++i) {
        other().rows(update("131") + " WHERE id = " + std::to_string(i + 1));
        other().rows("BEGIN");
        other().rows("DELETE FROM places WHERE id = 131");
        EXPECT_FALSE(is_scanned());
        disconnect();
        server().signal_server(SIGQUIT);
        ASSERT_TRUE(server().ended());
        server().start();
        connect();
        set("gputext.device = cpu");
        EXPECT_TRUE(is_scanned());
        is_scanned();
        EXPECT_FALSE(is_scanned());
    }
}

/// Two sessions search, one of them in transactions with one snapshot, while these and two others
/// change rows, in transactions that commit or not.
TEST_F(ChangedRows, AreThoseOfAScanWhateverHappens) {
    std::mt19937 random(11);
    const auto below = [&](unsigned most) { return static_cast<unsigned>(random()) % most; };
    Session old(server().connection());
    Session writers[] = {Session(server().connection()), Session(server().connection())};
    bool open[2] = {}, saved[2] = {}, old_runs = false;
    std::string old_answer;
    int next = 10000;
    long taken = 0;
    const auto end_all = [&] {
        for (int w = 0; w < 2; ++w) {
            if (open[w]) writers[w].rows(below(2) == 0 ? "COMMIT" : "ROLLBACK");
            open[w] = saved[w] = false;
        }
        if (old_runs) old.rows("COMMIT");
        old_runs = false;
    };
    // Each writer has rows of its own, so that none waits for another one.
    const auto change = [&](Session& session, unsigned writer) {
        const std::string own = " AND id % 3 = " + std::to_string(writer);
        const std::string first = std::to_string(below(static_cast<unsigned>(next) + 100));
        const std::string some = " WHERE id BETWEEN " + first + " AND " + first + " + " +
                                 std::to_string(below(4) == 0 ? 60 : 3) + own;
        const std::string number = std::to_string(below(50) * 131);
        switch (below(7)) {
            case 0:
                return session.rows("DELETE FROM places" + some);
            case 1:
                return session.rows("UPDATE places SET kind = kind + 1" + some);
            case 2:
                return session.rows("UPDATE places SET place = NULL" + some);
            case 3:
                return session.rows("SELECT FROM places" + some + " FOR UPDATE");
            case 4: {
                // Those that have the numbers that the id has gone round to are the same writer's.
                const int begin = next;
                next += 9;
                return session.rows("INSERT INTO places SELECT i, 0, " + row(number + " + i") +
                                    " FROM generate_series(" + std::to_string(begin) + ", " +
                                    std::to_string(begin + 8) +
                                    ") AS i WHERE i % 3 = " + std::to_string(writer));
            }
            default:
                return session.rows(update(number + " + places.id % 5") + some);
        }
    };
    const int answers = testing::rounds(50, 10000);
    for (int step = 0, found = 0; found < answers && !HasFailure(); ++step) {
        SCOPED_TRACE(step);
        const unsigned w = below(2);
        switch (below(16)) {
            case 0:
                if (open[w])
                    writers[w].rows(below(3) == 0 ? "ROLLBACK" : "COMMIT");
                else
                    writers[w].rows("BEGIN");
                open[w] = !open[w];
                saved[w] = false;
                break;
            case 1:
                if (!open[w]) break;
                if (saved[w])
                    writers[w].rows(below(2) == 0 ? "ROLLBACK TO here" : "RELEASE here");
                else
                    writers[w].rows("SAVEPOINT here");
                saved[w] = !saved[w];
                break;
            case 2:
                if (old_runs)
                    old.rows("COMMIT");
                else
                    old.rows("BEGIN ISOLATION LEVEL REPEATABLE READ");
                old_runs = !old_runs;
                if (old_runs) old_answer = expected(old);
                break;
            case 3:
            case 4:
                other().rows(below(4) == 0 ? "VACUUM (FREEZE) places" : "VACUUM places");
                break;
            case 5: {
                // In a transaction of the reader's own
                session().rows("BEGIN");
                session().rows("SAVEPOINT here");
                change(session(), 2);
                EXPECT_EQ(answer(session()), expected(session()));
                session().rows(below(2) == 0 ? "ROLLBACK TO here" : "SAVEPOINT there");
                EXPECT_EQ(answer(session()), expected(session()));
                session().rows(below(2) == 0 ? "ROLLBACK" : "COMMIT");
                break;
            }
            case 6:
                session().rows("BEGIN");
                session().rows("DECLARE early CURSOR FOR " + search(kItems, kAll));
                {
                    const std::string right = expected(session());
                    change(writers[w], w);
                    EXPECT_EQ(answer(session()), expected(session()));
                    if (!open[w]) other().rows("VACUUM places");
                    EXPECT_EQ(session().value("FETCH early"), right);
                }
                session().rows("COMMIT");
                break;
            case 7:
                if (below(4) != 0) break;
                end_all();
                switch (below(5)) {
                    case 0:
                        other().rows("TRUNCATE places");
                        fill();
                        break;
                    case 1:
                        other().rows("VACUUM FULL places");
                        break;
                    case 2:
                        other().rows("ALTER TABLE places ALTER kind TYPE " +
                                     std::string(below(2) == 0 ? "int" : "bigint"));
                        break;
                    case 3:
                        other().rows("DELETE FROM places WHERE id > 7000");
                        break;
                    default:
                        session().rows("TRUNCATE places; INSERT INTO places SELECT i, 0, " +
                                       row("i") + " FROM generate_series(1, 8000) AS i");
                }
                break;
            default:
                change(writers[w], w);
        }
        if (step % 3 != 0) continue;
        if (old_runs) {
            EXPECT_EQ(answer(old), old_answer);
        }
        taken += !is_scanned(session(), below(2) == 0 ? "5" : kAll);
        ++found;
    }
    end_all();
    EXPECT_GE(taken, answers / 3) << "of " << answers;
    RecordProperty("taken", static_cast<int>(taken));
}

/// While a session searches, another one changes rows at any time.
TEST_F(ChangedRows, AreThoseOfAScanWhileTheyChange) {
    std::atomic<bool> done{false};
    const std::string where = server().connection().text;
    std::thread writing([&] {
        Session writer{ConnectionString{where}};
        std::mt19937 random(5);
        for (int i = 0; !done; ++i) {
            const std::string id = std::to_string(1 + random() % kPlaces);
            if (random() % 40 == 0) writer.rows("VACUUM places");
            const bool opens = random() % 2 == 0;
            if (opens) writer.rows("BEGIN");
            writer.rows(update(id + " + " + std::to_string(i)) + " WHERE id = " + id);
            writer.rows("INSERT INTO places SELECT " + std::to_string(20000 + i) + ", 0, " +
                        row("131 * " + std::to_string(i % 50)));
            writer.rows("DELETE FROM places WHERE id = " + std::to_string(20000 + i - 20));
            if (opens) writer.rows(random() % 3 == 0 ? "ROLLBACK" : "COMMIT");
        }
    });
    // Without a change of the map by VACUUM it takes three searches until the table is not scanned.
    long taken = 0;
    const int answers = testing::rounds(20, 2000);
    for (int step = 0; step < answers || (taken < 5 && step < 10 * answers); ++step)
        taken += !is_scanned();
    done = true;
    writing.join();
    RecordProperty("taken", static_cast<int>(taken));
}

}  // namespace
}  // namespace gputext::live
