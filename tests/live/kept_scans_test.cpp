// A session does not scan a table again that has not changed (gputext.scan_memory), and gives the
// rows that it would give if it did, whatever it or others have done to the table meanwhile.

#include <random>

#include "tests/live/dice.hpp"
#include "tests/live/places_test.hpp"
#include "tests/support/test_size.hpp"

namespace gputext::live {
namespace {

class KeptScans : public PlacesTest {
protected:
    void SetUp() override {
        PlacesTest::SetUp();
        if (HasFailure()) return;
        session().rows("VACUUM places");
    }

    /// How often the transaction has scanned the table so far.
    static long scans(Session& session, const std::string& table) {
        return std::stol(
            session.value("SELECT pg_stat_get_xact_numscans('" + table + "'::regclass)"));
    }
    /// Whether the answer takes a scan of the table. It has to be right.
    static bool is_scanned(Session& session, const std::string& from,
                           const std::string& table = "places",
                           const std::string& begin = "BEGIN") {
        session.rows(begin);
        const bool scanned = is_scanned_for(expected(session, from), session, from, table);
        session.rows("COMMIT");
        return scanned;
    }
    /// The same in a transaction, of the answer that is right.
    static bool is_scanned_for(const std::string& right, Session& session, const std::string& from,
                               const std::string& table) {
        const long before = scans(session, table);
        EXPECT_EQ(answer(session, from), right) << from;
        return scans(session, table) > before;
    }
    bool is_scanned(const std::string& from = "places", const std::string& table = "places") {
        return is_scanned(session(), from, table);
    }
    /// From here on the table is not scanned. What is right is computed once, as that takes twice
    /// as long as an answer.
    void keep(const std::string& from = "places", const std::string& table = "places") {
        keep_for(expected(session(), from), from, table);
    }
    void keep_for(const std::string& right, const std::string& from = "places",
                  const std::string& table = "places") {
        const auto is_scanned_now = [&] {
            session().rows("BEGIN");
            const bool scanned = is_scanned_for(right, session(), from, table);
            session().rows("COMMIT");
            return scanned;
        };
        is_scanned_now();
        if (is_scanned_now()) is_scanned_now();
        ASSERT_FALSE(is_scanned_now()) << from;
    }
    /// For the server to write to and to read from.
    std::string file() const { return (server().data() / "places").string(); }
    /// The table has changed; after VACUUM, it is scanned once more and then no more.
    void expect_change(const std::string& what) {
        SCOPED_TRACE(what);
        EXPECT_TRUE(is_scanned());
        const std::string right = expected(session(), "places");
        EXPECT_EQ(answer(session(), "places"), right);
        session().rows("VACUUM places");
        keep_for(right);
    }
};

TEST_F(KeptScans, ScansOnce) {
    EXPECT_TRUE(is_scanned());
    for (const char* device : {"cpu", "gpu", "auto"}) {
        set(std::string("gputext.device = ") + device);
        EXPECT_FALSE(is_scanned()) << device;
    }
    const Use before = use_of(session(), "places");
    answer(session(), "places");
    EXPECT_EQ(use_of(session(), "places") - before, (Use{kRows, 0}));
    // Another session does not know yet, and shares the values.
    Session another(server().connection());
    EXPECT_TRUE(is_scanned(another, "places"));
    EXPECT_FALSE(is_scanned(another, "places"));
    expect_nothing_left_when_forgotten();
}

TEST_F(KeptScans, ServesAllFunctionsOfDenseVectors) {
    keep();
    const auto both = [&](const std::string& call) {
        const auto run = [&](const std::string& place) {
            std::string sql = call;
            const std::string mark = "ITEMS";
            sql.replace(sql.find(mark), mark.size(), "$$SELECT id, " + place + " FROM places$$");
            return session().table(sql);
        };
        session().rows("BEGIN");
        const std::string right = run("place || '{}'::real[]");
        const long before = scans(session(), "places");
        EXPECT_EQ(run("place"), right) << call;
        const long after = scans(session(), "places");
        session().rows("COMMIT");
        return after - before;
    };
    const std::string queries = "'SELECT 5::bigint, array_fill(1, ARRAY[600])::real[]'";
    EXPECT_EQ(both("SELECT * FROM gpu_knn(" + queries + ", ITEMS, 5)"), 0);
    EXPECT_EQ(both("SELECT * FROM gpu_knn(" + queries + ", ITEMS, 5, 'euclidean')"), 0);
    EXPECT_EQ(both("SELECT * FROM gpu_knn(" + queries + ", ITEMS, 5, exclude_self => true)"), 0);
    EXPECT_EQ(both("SELECT * FROM gpu_knn_within(" + queries + ", ITEMS, 0.2)"), 0);
    EXPECT_EQ(both("SELECT * FROM k_means(ITEMS, 3, iterations => 2)"), 0);
    set("gputext.device = gpu");
    EXPECT_EQ(both("SELECT * FROM gpu_knn(" + queries + ", ITEMS, 5)"), 0);
}

TEST_F(KeptScans, LetAutoTakeADeviceForOneQuery) {
    set("gputext.cpu_threads = 2");
    keep();
    set("gputext.device = auto");
    const auto device_jobs = [&](const std::string& items) {
        const long before = counter("gpu_jobs");
        session().rows("SELECT * FROM gpu_knn('SELECT 1, array_fill(1, ARRAY[600])::real[]', $$" +
                       items + "$$, 5)");
        return counter("gpu_jobs") - before;
    };
    EXPECT_EQ(device_jobs("SELECT id, place FROM places"), 1);
    // Items that nobody keeps are compared in less time than a device gets them in.
    EXPECT_EQ(device_jobs("SELECT id, place || '{}'::real[] FROM places LIMIT 9000"), 0);
}

TEST_F(KeptScans, SeesWhatTheSessionChanges) {
    keep();
    for (const char* change :
         {"UPDATE places SET place = array_fill(3, ARRAY[600])::real[] WHERE id = 77",
          "DELETE FROM places WHERE id = 78", "UPDATE places SET id = -id WHERE id = 79",
          "INSERT INTO places SELECT max(id) + 1, 1, array_fill(1, ARRAY[600]) FROM places"}) {
        session().rows(change);
        expect_change(change);
        // VACUUM comes before the session reads the table again.
        session().rows(change);
        session().rows("VACUUM places");
        const std::string right = expected(session(), "places");
        EXPECT_EQ(answer(session(), "places"), right) << change;
        keep_for(right);
    }
    // Pages are read, and have no other rows.
    session().rows("INSERT INTO places SELECT max(id) + 1, 1, NULL FROM places");
    EXPECT_FALSE(is_scanned());
    session().rows("VACUUM places");
    keep();
    // What was never committed is not seen later, and is seen before.
    session().rows("BEGIN");
    session().rows("SAVEPOINT here");
    session().rows("UPDATE places SET place = array_fill(4, ARRAY[600])::real[] WHERE id = 80");
    const std::string mine = expected(session(), "places");
    for (int i = 0; i < 2; ++i) EXPECT_EQ(answer(session(), "places"), mine);
    session().rows("ROLLBACK TO here");
    EXPECT_EQ(answer(session(), "places"), expected(session(), "places"));
    session().rows("DELETE FROM places WHERE id > 6000");
    EXPECT_EQ(answer(session(), "places"), expected(session(), "places"));
    session().rows("ROLLBACK");
    EXPECT_EQ(answer(session(), "places"), expected(session(), "places"));
    session().rows("VACUUM places");
    keep();
    // Locks of rows change nothing that is read.
    session().rows("BEGIN");
    session().rows("SELECT FROM places WHERE id < 100 FOR UPDATE");
    session().rows("COMMIT");
    EXPECT_EQ(answer(session(), "places"), expected(session(), "places"));
}

TEST_F(KeptScans, SeesWhatOthersChange) {
    keep();
    for (const char* change :
         {"UPDATE places SET place = array_fill(5, ARRAY[600])::real[] WHERE id % 1000 = 7",
          "DELETE FROM places WHERE id = 12", "VACUUM FULL places", "VACUUM FREEZE places",
          "ALTER TABLE places RENAME COLUMN kind TO sort",
          "ALTER TABLE places ADD COLUMN more float DEFAULT 3",
          "ALTER TABLE places DROP COLUMN more", "ALTER TABLE places ALTER id TYPE int",
          "UPDATE places SET id = -id WHERE id = 99", "ALTER TABLE places ALTER id TYPE oid",
          "ALTER TABLE places ALTER id TYPE bigint", "ALTER TABLE places ALTER place TYPE float[]",
          "CREATE INDEX by_id ON places (id); CLUSTER places USING by_id",
          "BEGIN; ALTER TABLE places RENAME place TO gone; ALTER TABLE places ADD place real[] "
          "DEFAULT array_fill(2, ARRAY[600])::real[]; COMMIT",
          "ALTER TABLE places DROP place; ALTER TABLE places RENAME gone TO place",
          "CREATE TABLE other AS SELECT * FROM places WHERE id % 2 = 0; DROP TABLE places; ALTER "
          "TABLE other RENAME TO places; ALTER TABLE places ALTER place SET STORAGE EXTERNAL",
          "TRUNCATE places"}) {
        SCOPED_TRACE(change);
        other().rows(change);
        const std::string right = expected(session(), "places");
        for (int i = 0; i < 2; ++i) EXPECT_EQ(answer(session(), "places"), right);
        other().rows("VACUUM places");
        for (int i = 0; i < 2; ++i) EXPECT_EQ(answer(session(), "places"), right);
    }
    session().rows("DROP TABLE places");
    make_places("places");
    session().rows("VACUUM places");
    keep();
}

TEST_F(KeptScans, SeesRowsThatAreAddedFrozen) {
    session().rows("COPY (SELECT * FROM places WHERE id <= 10001) TO '" + file() + "'");
    session().rows("COPY (SELECT * FROM places WHERE id = 10002) TO '" + file() + "_2'");
    session().rows("BEGIN");
    session().rows("TRUNCATE places");
    for (const char* part : {"", "_2"}) {
        session().rows("COPY places FROM '" + file() + part + "' (FREEZE)");
        EXPECT_EQ(answer(session(), "places"), expected(session(), "places"));
        EXPECT_EQ(answer(session(), "places"), expected(session(), "places"));
    }
    session().rows("COMMIT");
    EXPECT_EQ(answer(session(), "places"), expected(session(), "places"));
    // VACUUM has nothing to do.
    keep();
    for (const char* part : {"", "_2"}) fs::remove(file() + part);
}

TEST_F(KeptScans, KnowsPagesThatAreNew) {
    keep();
    // As a server leaves them that has extended the table by more pages than it has used
    const fs::path heap =
        server().data() / session().value("SELECT pg_relation_filepath('places')");
    const auto size = fs::file_size(heap);
    fs::resize_file(heap, size + 3 * 8192);
    EXPECT_FALSE(is_scanned());
    // The server goes on behind them.
    other().rows(
        "INSERT INTO places SELECT -i, 1, array_fill(i, ARRAY[600])::real[] "
        "FROM generate_series(1, 300) AS i");
    EXPECT_GT(fs::file_size(heap), size + 3 * 8192);
    EXPECT_TRUE(is_scanned());
    other().rows("VACUUM places");
    EXPECT_EQ(answer(session(), "places"), expected(session(), "places"));
    keep();
}

TEST_F(KeptScans, FollowsTheSnapshot) {
    keep();
    Session old(server().connection());
    old.rows("BEGIN ISOLATION LEVEL REPEATABLE READ");
    const std::string before = answer(old, "places");
    EXPECT_EQ(answer(old, "places"), before);
    other().rows("UPDATE places SET place = array_fill(id::real, ARRAY[600]) WHERE id % 300 = 0");
    other().rows("DELETE FROM places WHERE id % 300 = 1");
    const std::string after = expected(session(), "places");
    for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(answer(session(), "places"), after);
        EXPECT_EQ(answer(old, "places"), before);
        other().rows("VACUUM places");
    }
    old.rows("COMMIT");
    EXPECT_EQ(answer(old, "places"), after);
    other().rows("VACUUM places");
    EXPECT_EQ(answer(old, "places"), after);
    EXPECT_EQ(answer(old, "places"), after);
    EXPECT_FALSE(is_scanned(old, "places", "places", "BEGIN ISOLATION LEVEL REPEATABLE READ"));
    EXPECT_TRUE(is_scanned(old, "places", "places", "BEGIN ISOLATION LEVEL SERIALIZABLE"))
        << "which notes what it reads";
    // A cursor's snapshot
    old.rows("BEGIN");
    old.rows("DECLARE early CURSOR FOR " + digest_of("SELECT id, place FROM places"));
    other().rows("DELETE FROM places WHERE id % 300 = 2");
    const std::string later = answer(old, "places");
    EXPECT_NE(later, after);
    EXPECT_EQ(old.value("FETCH early"), after);
    EXPECT_EQ(answer(old, "places"), later);
    old.rows("COMMIT");
}

TEST_F(KeptScans, KnowsWhichQueriesGiveAllRows) {
    session().rows("CREATE OR REPLACE VIEW shown AS SELECT id, place FROM places");
    session().rows("DROP TABLE IF EXISTS doubled");
    session().rows("CREATE TABLE doubled (LIKE places)");
    session().rows("ALTER TABLE doubled ALTER place SET STORAGE EXTERNAL");
    session().rows("INSERT INTO doubled SELECT id / 2, kind, place FROM places");
    session().rows("VACUUM doubled");
    keep();
    for (const char* from : {"shown", "ONLY places", "places WHERE true", "places AS p",
                             "(SELECT place, id FROM places) AS p"})
        EXPECT_FALSE(is_scanned(from)) << from;
    // Conditions on the row alone, by operators that nobody can replace
    session().rows("CREATE OR REPLACE VIEW few AS SELECT id, place FROM places WHERE kind >= 1");
    for (const char* from :
         {"places WHERE id <> 7", "places WHERE kind <= 1 AND id > 3", "few",
          "places WHERE kind IN (0, 2) AND NOT (id < 10::numeric OR place IS NULL)",
          "places WHERE coalesce(kind, 3) IS DISTINCT FROM 2 AND (id % 5 = 0) IS NOT TRUE"})
        keep(from);
    EXPECT_FALSE(is_scanned("places AS p WHERE p.id<>7"));
    session().rows("DROP VIEW few");
    session().rows(
        "CREATE OR REPLACE FUNCTION is_seven(number bigint) RETURNS boolean IMMUTABLE LANGUAGE "
        "plpgsql AS 'BEGIN RETURN number = 7; END'");
    for (const char* from :
         {"places WHERE NOT is_seven(id)", "places WHERE id <> random() * 0",
          "places WHERE id::text <> '7'", "places WHERE ctid <> '(0,1)'",
          "places AS p WHERE p IS NOT NULL", "places WHERE now() > '2000-01-01'::date + kind",
          "places WHERE id = ANY (SELECT i FROM generate_series(1, 11000) AS i)",
          "places WHERE left(kind::text, 1) <> current_user", "places ORDER BY id DESC",
          "places LIMIT 11000", "places WHERE id > (SELECT 5)",
          "(SELECT id, place FROM places UNION ALL SELECT -1, NULL) AS p",
          "(SELECT id + 1 AS id, place FROM places) AS p"})
        for (int i = 0; i < 2; ++i) EXPECT_TRUE(is_scanned(from)) << from;
    // What PostgreSQL marks as immutable, but may have names of months.
    session().rows("CREATE TABLE described (id bigint, place real[], about jsonb)");
    session().rows("ALTER TABLE described ALTER place SET STORAGE EXTERNAL");
    session().rows("INSERT INTO described SELECT id, place, '{\"month\": \"May\"}' FROM places");
    session().rows("VACUUM described");
    keep("described WHERE about @> '{\"month\": \"May\"}'", "described");
    for (int i = 0; i < 2; ++i)
        EXPECT_TRUE(is_scanned("described WHERE about @? '$.month'", "described"));
    session().rows("DROP TABLE described");
    const std::string half = "places TABLESAMPLE SYSTEM (50) REPEATABLE (3)";
    EXPECT_EQ(answer(session(), half), expected(session(), half));
    keep();
    session().rows("DROP VIEW shown");
    // Rows with equal ids come in the order of the scan.
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(is_scanned("doubled", "doubled"));
    // A child's rows are the parent's, too.
    session().rows("CREATE TABLE child (more int) INHERITS (places)");
    session().rows("ALTER TABLE child ALTER place SET STORAGE EXTERNAL");
    insert("child (id, kind, place)", kRows + 1, kRows + 100, 3);
    for (int i = 0; i < 2; ++i) EXPECT_TRUE(is_scanned());
    session().rows("DROP TABLE child");
    keep();
    // The ids of the same scan as another type
    EXPECT_EQ(
        session().value("SELECT count(*) FROM cosine_similarities(array_fill(0.5, ARRAY[600]), "
                        "'SELECT kind, place FROM places WHERE id < 5', id_type => NULL::int)"),
        "4");
    session().rows("ALTER TABLE places ALTER id TYPE int");
    session().rows("VACUUM places");
    keep();
    const auto as_int = [&] {
        return session().value(
            "SELECT count(*) || ' ' || sum(id) FROM cosine_similarities(array_fill(0.5, "
            "ARRAY[600]), 'SELECT id, place FROM places', id_type => NULL::int) AS s(id, c)");
    };
    const std::string right = std::to_string(kRows) + " " + std::to_string(kRows * (kRows + 1) / 2);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(as_int(), right);
    EXPECT_FALSE(is_scanned());
    session().rows("SET parallel_setup_cost = 0");
    session().rows("SET parallel_tuple_cost = 0");
    session().rows("SET min_parallel_table_scan_size = 0");
    EXPECT_FALSE(is_scanned());
    session().rows("DROP TABLE doubled");
    Session another(server().connection());
    another.rows("SET parallel_setup_cost = 0");
    another.rows("SET parallel_tuple_cost = 0");
    another.rows("SET min_parallel_table_scan_size = 0");
    EXPECT_TRUE(is_scanned(another, "places"));
    EXPECT_FALSE(is_scanned(another, "places"));
}

TEST_F(KeptScans, LeavesOtherTablesAlone) {
    keep();
    session().rows("DROP SCHEMA IF EXISTS elsewhere CASCADE");
    session().rows("CREATE SCHEMA elsewhere");
    session().rows("CREATE TABLE elsewhere.places AS SELECT * FROM places WHERE id < 100");
    session().rows("SET search_path = elsewhere, public");
    EXPECT_EQ(answer(session(), "places"), expected(session(), "places"));
    session().rows("RESET search_path");
    EXPECT_FALSE(is_scanned());
    session().rows("CREATE TEMP TABLE places AS SELECT * FROM public.places WHERE id < 11000");
    session().rows("VACUUM places");
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(is_scanned("places", "pg_temp.places"));
    session().rows("DROP TABLE pg_temp.places");
    EXPECT_FALSE(is_scanned());
    session().rows("DROP TABLE IF EXISTS unlogged");
    session().rows("CREATE UNLOGGED TABLE unlogged (LIKE places)");
    session().rows("ALTER TABLE unlogged ALTER place SET STORAGE EXTERNAL");
    session().rows("INSERT INTO unlogged SELECT * FROM places");
    session().rows("VACUUM unlogged");
    // All of its pages are read, as nothing tells which have changed.
    keep("unlogged", "unlogged");
    for (const char* change :
         {"DELETE FROM unlogged WHERE id = 17", "VACUUM unlogged",
          "UPDATE unlogged SET kind = 5 WHERE id = 18", "DELETE FROM unlogged WHERE id = 19"}) {
        other().rows(change);
        EXPECT_EQ(answer(session(), "unlogged"), expected(session(), "unlogged")) << change;
    }
    keep("unlogged", "unlogged");
    session().rows("DROP TABLE unlogged");
    session().rows("CREATE MATERIALIZED VIEW matter AS SELECT * FROM places WHERE id < 11000");
    session().rows("ALTER MATERIALIZED VIEW matter ALTER place SET STORAGE EXTERNAL");
    session().rows("REFRESH MATERIALIZED VIEW matter");
    session().rows("VACUUM matter");
    keep("matter", "matter");
    session().rows("DELETE FROM places WHERE id % 10 = 0");
    session().rows("REFRESH MATERIALIZED VIEW matter");
    EXPECT_TRUE(is_scanned("matter", "matter"));
    session().rows("REFRESH MATERIALIZED VIEW matter WITH NO DATA");
    EXPECT_EQ(session().sqlstate(digest_of("SELECT id, place FROM matter")), "55000");
    session().rows("DROP MATERIALIZED VIEW matter");
    session().rows("DROP SCHEMA elsewhere CASCADE");
}

TEST_F(KeptScans, ChecksRights) {
    session().rows("DROP ROLE IF EXISTS reader");
    session().rows("CREATE ROLE reader");
    session().rows("GRANT SELECT (id, place) ON places TO reader");
    keep();
    session().rows("SET ROLE reader");
    EXPECT_FALSE(is_scanned());
    session().rows("RESET ROLE");
    other().rows("REVOKE SELECT (place) ON places FROM reader");
    keep();
    session().rows("SET ROLE reader");
    EXPECT_EQ(session().sqlstate(digest_of("SELECT id, place FROM places")), "42501");
    session().rows("RESET ROLE");
    EXPECT_FALSE(is_scanned());
    // Of a view, the rights of its owner count.
    session().rows("CREATE VIEW shown AS SELECT id, place FROM places");
    session().rows("GRANT SELECT ON shown TO reader");
    session().rows("SET ROLE reader");
    EXPECT_FALSE(is_scanned("shown"));
    session().rows("RESET ROLE");
    session().rows("DROP VIEW shown");
    session().rows("GRANT SELECT ON places TO reader");
    session().rows("ALTER TABLE places ENABLE ROW LEVEL SECURITY");
    session().rows("CREATE POLICY two_thirds ON places TO reader USING (kind <> 1)");
    keep();
    // The rows of the role's own policy are remembered apart.
    session().rows("SET ROLE reader");
    EXPECT_TRUE(is_scanned());
    keep();
    session().rows("RESET ROLE");
    EXPECT_FALSE(is_scanned());
    session().rows("ALTER POLICY two_thirds ON places USING (kind <> 1 AND current_user <> 'one')");
    session().rows("SET ROLE reader");
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(is_scanned());
    session().rows("RESET ROLE");
    session().rows("DROP OWNED BY reader");
    session().rows("DROP ROLE reader");
}

TEST_F(KeptScans, KeepsToItsMemory) {
    keep();
    set("gputext.scan_memory = 0");
    EXPECT_TRUE(is_scanned());
    EXPECT_TRUE(is_scanned());
    set("gputext.scan_memory = '50kB'");
    EXPECT_TRUE(is_scanned());
    EXPECT_TRUE(is_scanned());
    set("gputext.scan_memory = '120kB'");
    keep();
    // There is room for one table.
    session().rows("DROP TABLE IF EXISTS more");
    make_places("more");
    session().rows("VACUUM more");
    keep("more", "more");
    EXPECT_TRUE(is_scanned());
    EXPECT_TRUE(is_scanned("more", "more"));
    set("gputext.scan_memory = '400kB'");
    keep("more", "more");
    keep();
    EXPECT_FALSE(is_scanned("more", "more"));
    session().rows("DROP TABLE more");
    // What the session must not hold in memory it reads again.
    set("gputext.host_memory_limit = '8MB'");
    EXPECT_TRUE(is_scanned());
    set("gputext.host_memory_limit = '1GB'");
    keep();
    set("gputext.scan_memory = '64MB'");
}

TEST_F(KeptScans, NeedsWhatGputextdKeeps) {
    keep();
    session().rows("SELECT gputext_evict('places')");
    EXPECT_TRUE(is_scanned());
    EXPECT_FALSE(is_scanned());
    set("gputext.device = cpu");
    for (const char* fault : {"take_values:out_of_memory", "take_values:crash",
                              "take_values:no_reply", "take_values:unsealed_file"}) {
        SCOPED_TRACE(fault);
        const std::string right = expected(session(), "places");
        inject(fault);
        EXPECT_EQ(answer(session(), "places"), right);
        inject("");
        ASSERT_TRUE(eventually([&] { return !is_scanned(); }));
    }
    end_supervisor();
    EXPECT_TRUE(is_scanned());
    ASSERT_TRUE(eventually([&] { return !is_scanned(); }));
    // An update, whose values gputextd copies behind the statement
    set("gputext.device = gpu");
    session().rows("UPDATE places SET place = array_fill(id::real, ARRAY[600]) WHERE id % 100 = 3");
    session().rows("VACUUM places");
    inject("fill_values:slow:500");
    for (int i = 0; i < 3; ++i)
        EXPECT_EQ(answer(session(), "places"), expected(session(), "places"));
    inject("");
    keep();
    expect_others_untouched();
}

/// Two sessions read, one of them in transactions with one snapshot, while a third one changes
/// rows, and the readers do sometimes, too.
TEST_F(KeptScans, GivesTheSameRowsWhateverHappens) {
    std::mt19937 random(history_seed(7));
    const auto some = [&](unsigned most) { return std::to_string(random() % most); };
    Session reader(server().connection()), old(server().connection());
    bool old_runs = false;
    std::string old_answer;
    long taken = 0;
    const int steps = testing::rounds(30, 60);
    for (int step = 0; step < steps; ++step) {
        Session& writer = random() % 4 == 0 ? reader : other();
        const auto place = "array_fill(" + some(50) + ", ARRAY[600])::real[]";
        switch (random() % 9) {
            case 0:
                writer.rows("UPDATE places SET place = " + place + " WHERE id = " + some(kRows));
                break;
            case 1:
                writer.rows("DELETE FROM places WHERE id = " + some(kRows));
                break;
            case 2:
                writer.rows("INSERT INTO places VALUES (" + std::to_string(100000 + step) +
                            ", 1, " + place + ")");
                break;
            case 3:
                writer.rows("BEGIN");
                writer.rows("UPDATE places SET place = " + place + " WHERE id = " + some(kRows));
                EXPECT_EQ(answer(writer, "places"), expected(writer, "places")) << step;
                EXPECT_EQ(answer(reader, "places"), expected(reader, "places")) << step;
                writer.rows(random() % 2 == 0 ? "COMMIT" : "ROLLBACK");
                break;
            case 4:
                if (old_runs) {
                    EXPECT_EQ(answer(old, "places"), old_answer) << step;
                    old.rows("COMMIT");
                } else {
                    old.rows("BEGIN ISOLATION LEVEL REPEATABLE READ");
                    old_answer = expected(old, "places");
                }
                old_runs = !old_runs;
                break;
            default:
                other().rows("VACUUM places");
        }
        if (old_runs) {
            EXPECT_EQ(answer(old, "places"), old_answer) << step;
        }
        taken += !is_scanned(reader, "places");
    }
    EXPECT_GE(taken, steps / 12) << "of " << steps;
    RecordProperty("taken", static_cast<int>(taken));
}

}  // namespace
}  // namespace gputext::live
