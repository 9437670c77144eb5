// After a few rows have changed, gpu_knn and the node of gputext.plan_nearest read the pages that
// have changed and not the table, and give the rows that a scan gives, whatever sessions have done
// to the table meanwhile.

#include <libpq-fe.h>

#include <atomic>
#include <memory>
#include <numeric>
#include <random>
#include <thread>
#include <vector>

#include "tests/live/dice.hpp"
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
        make_places("");
        session().rows("CREATE TABLE asked AS SELECT i AS id, " + place("i * 131") +
                       " AS place FROM generate_series(1, 3) AS i");
        fill();
        session().rows("VACUUM places, asked");
        set("gputext.device = cpu");
        is_scanned();
        is_scanned();
        ASSERT_FALSE(is_scanned());
    }
    /// Of a row that is long before it is stored, the vector is stored out of line.
    void make_places(const std::string& persistence) {
        session().rows("CREATE " + persistence +
                       " TABLE places (id bigint, kind int, place real[], filler text) "
                       "WITH (toast_tuple_target = 128, fillfactor = 90)");
        session().rows("ALTER TABLE places ALTER place SET STORAGE EXTERNAL");
    }
    void fill() { fill(rows_); }
    void fill(int rows) {
        session().rows("INSERT INTO places SELECT i, 0, " + row("i") + " FROM generate_series(1, " +
                       std::to_string(rows) + ") AS i");
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
    /// One of few that are equal to no row
    inline static const std::string kOneVector = [] {
        std::string vector = "0.5";
        for (int i = 1; i < 40; ++i) vector += "," + std::to_string(i * 37 % 101);
        return vector;
    }();

    /// What is asked in two ways: by what a session remembers, if it does, and by a scan.
    struct Question {
        std::string asked, right;
        std::string asked_with, right_with;  // values of gputext.plan_nearest

        std::string answer(Session& session) const { return value(session, asked, asked_with); }
        std::string expected(Session& session) const { return value(session, right, right_with); }
        static std::string value(Session& session, const std::string& query,
                                 const std::string& setting) {
            session.rows("SET gputext.plan_nearest = " + setting);
            return session.value(query);
        }
    };
    static Question by_function(const std::string& options, const std::string& where = "") {
        return {search(kItems + where, options), search(kComputed + where, options), "off", "off"};
    }
    /// The nearest rows of each of `asked`, or of the first one alone, in plain SQL. Of rows that
    /// are equally far it is not known which come. So the answer has the distances, and whether
    /// each row has its vector, fulfils the condition, and comes once.
    static Question in_plain_sql(const std::string& limit, const std::string& condition = "true",
                                 const std::string& one_vector = "") {
        const bool one = !one_vector.empty();
        const std::string query = one ? one_vector : "q.place";
        const std::string sql =
            "SELECT count(*) || ' ' || coalesce(sum(hashtextextended(n.far::text, 0)), 0) || ' ' "
            "|| "
            "count(*) FILTER (WHERE (n.place <=> " +
            query + ") = n.far AND (" + condition + ")) || ' ' || count(DISTINCT (" +
            (one ? "0" : "q.id") + ", n.id)) FROM " +
            (one ? "" : "asked AS q CROSS JOIN LATERAL ") + "(SELECT id, kind, place, place <=> " +
            query + " AS far FROM places AS p WHERE " + condition + " ORDER BY place <=> " + query +
            " LIMIT " + limit + ") AS n";
        return {sql, sql, "force", "off"};
    }
    static std::vector<Question> questions() {
        return {by_function("5"),
                by_function(kAll),
                by_function(kAll, kSome),
                in_plain_sql("5"),
                in_plain_sql("4000"),
                in_plain_sql("5", kSomeRows),
                in_plain_sql("5", "true", "'{" + kOneVector + "}'::real[]"),
                in_plain_sql("300", kSomeRows, "'{" + kOneVector + "}'::real[]")};
    }
    static std::vector<Question> questions_of_pgvector() {
        return {in_plain_sql("5"), in_plain_sql("4000"), in_plain_sql("5", kSomeRows),
                in_plain_sql("5", "true", "'[" + kOneVector + "]'::vector")};
    }
    /// Most rows
    static constexpr const char* kSome = " WHERE kind <> 1";
    static constexpr const char* kSomeRows = "kind <> 1";

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
    static bool is_scanned_for(Session& session, const Question& question) {
        session.rows("BEGIN ISOLATION LEVEL REPEATABLE READ");
        const std::string right = question.expected(session);
        const long before = scans(session);
        EXPECT_EQ(question.answer(session), right) << question.asked;
        const long after = scans(session);
        session.rows("COMMIT");
        return after > before;
    }
    static void expect_right(Session& session, const Question& question) {
        const std::string right = question.expected(session);
        EXPECT_EQ(question.answer(session), right) << question.asked;
    }
    void run_history(const std::vector<Question>& all, unsigned history, int answers);
    static void expect_right_in_transaction(Session& session, const Question& question) {
        session.rows("BEGIN ISOLATION LEVEL REPEATABLE READ");
        expect_right(session, question);
        session.rows("COMMIT");
    }
    /// Until a session of a standby sees all that this one has written.
    void wait_until_replayed(Session& standby) {
        const std::string written = session().value("SELECT pg_current_wal_insert_lsn()");
        EXPECT_TRUE(eventually([&] {
            return standby.value("SELECT pg_last_wal_replay_lsn() >= '" + written + "'::pg_lsn") ==
                   "t";
        }));
    }
    /// A table that is vacuumed is scanned once.
    void keep() {
        session().rows("VACUUM places");
        is_scanned();
        is_scanned();
        ASSERT_FALSE(is_scanned());
    }

    int rows_ = kPlaces;
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
void ChangedRows::run_history(const std::vector<Question>& all, unsigned history, int answers) {
    std::mt19937 random(history_seed(history));
    const auto below = [&](unsigned most) { return static_cast<unsigned>(random()) % most; };
    Session old(server().connection());
    Session writers[] = {Session(server().connection()), Session(server().connection())};
    bool open[2] = {}, saved[2] = {}, old_runs = false;
    std::vector<std::string> old_answers;
    int next = 10000;
    std::vector<int> asked(all.size()), taken(all.size());
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
                if (!old_runs) break;
                old_answers.clear();
                for (const Question& question : all) old_answers.push_back(question.expected(old));
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
                expect_right(session(), all[below(static_cast<unsigned>(all.size()))]);
                session().rows(below(2) == 0 ? "ROLLBACK TO here" : "SAVEPOINT there");
                expect_right(session(), all[below(static_cast<unsigned>(all.size()))]);
                session().rows(below(2) == 0 ? "ROLLBACK" : "COMMIT");
                break;
            }
            case 6:
                session().rows("BEGIN");
                {
                    const Question& question = all[below(static_cast<unsigned>(all.size()))];
                    session().rows("SET gputext.plan_nearest = " + question.asked_with);
                    session().rows("DECLARE early CURSOR FOR " + question.asked);
                    const std::string right = question.expected(session());
                    change(writers[w], w);
                    expect_right(session(), all[below(static_cast<unsigned>(all.size()))]);
                    if (!open[w]) other().rows("VACUUM places");
                    EXPECT_EQ(session().value("FETCH early"), right) << question.asked;
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
                        other().rows("DELETE FROM places WHERE id > " + std::to_string(rows_));
                        break;
                    default:
                        session().rows("BEGIN; TRUNCATE places");
                        fill(rows_ + 1000);
                        session().rows("COMMIT");
                }
                break;
            default:
                change(writers[w], w);
        }
        if (step % 3 != 0) continue;
        if (old_runs) {
            const std::size_t n = below(static_cast<unsigned>(all.size()));
            EXPECT_EQ(all[n].answer(old), old_answers[n]) << all[n].asked;
        }
        const std::size_t n = below(static_cast<unsigned>(all.size()));
        ++asked[n];
        taken[n] += !is_scanned_for(session(), all[n]);
        ++found;
    }
    end_all();
    for (std::size_t n = 0; n < all.size(); ++n) {
        // Of few, it is chance.
        EXPECT_GE(taken[n], (asked[n] - 20) / 4) << "of " << asked[n] << ": " << all[n].asked;
        RecordProperty("taken_" + std::to_string(n), taken[n]);
        RecordProperty("asked_" + std::to_string(n), asked[n]);
    }
    EXPECT_GE(std::accumulate(taken.begin(), taken.end(), 0), answers / 6);
}

TEST_F(ChangedRows, AreThoseOfAScanWhateverHappens) {
    run_history(questions(), 11, testing::rounds(80, 10000));
}

TEST_F(ChangedRows, OfAnUnloggedTableAreThoseOfAScanWhateverHappens) {
    session().rows("DROP TABLE places");
    make_places("UNLOGGED");
    fill();
    run_history(questions(), 12, testing::rounds(60, 10000));
}

/// The vectors lie within their rows: more of them are worth a question.
TEST_F(ChangedRows, WithVectorsInThemAreThoseOfAScanWhateverHappens) {
    session().rows("DROP TABLE places");
    session().rows("CREATE TABLE places (id bigint, kind int, place real[], filler text)");
    session().rows("ALTER TABLE places ALTER place SET STORAGE PLAIN");
    rows_ = 45000;
    fill();
    keep();
    run_history(
        {by_function("5"), by_function("7", kSome), in_plain_sql("5"), in_plain_sql("9", kSomeRows),
         in_plain_sql("5", "true", "'{" + kOneVector + "}'::real[]")},
        15, testing::rounds(40, 10000));
}

/// The distances are pgvector's, of which the search finds bounds.
TEST_F(ChangedRows, OfPgvectorAreThoseOfAScanWhateverHappens) {
    if (session().value("SELECT count(*) FROM pg_available_extensions WHERE name = 'vector'") ==
        "0")
        GTEST_SKIP() << "without pgvector";
    session().rows("CREATE EXTENSION IF NOT EXISTS vector");
    for (const char* table : {"places", "asked"})
        session().rows("ALTER TABLE " + std::string(table) +
                       " ALTER place TYPE vector(40) USING place::vector");
    // Rows that are rewritten are short before they are stored: the vectors lie within them, and
    // are too few to be kept.
    session().rows("TRUNCATE places");
    fill();
    session().rows("VACUUM places, asked");
    run_history(questions_of_pgvector(), 14, testing::rounds(40, 5000));
}

/// While a session searches, another one changes rows at any time.
TEST_F(ChangedRows, AreThoseOfAScanWhileTheyChange) {
    std::atomic<bool> done{false};
    const std::string where = server().connection().text;
    std::thread writing([&] {
        Session writer{ConnectionString{where}};
        std::mt19937 random(history_seed(5));
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

/// The same on a standby, whose sessions see what it has replayed.
TEST_F(ChangedRows, OnAStandbyAreThoseOfAScan) {
    const std::unique_ptr<PrivateServer> standby = PrivateServer::standby_of(server());
    standby->start();
    {
        Session reader(standby->connection()), another(standby->connection());
        for (Session* each : {&reader, &another}) each->rows("SET gputext.device = cpu");
        std::mt19937 random(history_seed(13));
        const auto below = [&](std::size_t most) { return random() % most; };
        const std::vector<Question> all = questions();
        std::vector<int> asked(all.size()), taken(all.size());
        const int answers = testing::rounds(60, 3000);
        for (int step = 0; step < answers && !HasFailure(); ++step) {
            SCOPED_TRACE(step);
            const std::string id = std::to_string(below(kPlaces));
            const std::string some = " WHERE id BETWEEN " + id + " AND " + id + " + 3";
            const std::string number = std::to_string(below(50) * 131);
            switch (below(10)) {
                case 0:
                    session().rows("DELETE FROM places" + some);
                    break;
                case 1:
                    session().rows("BEGIN; DELETE FROM places" + some + "; ROLLBACK");
                    break;
                case 2:
                    session().rows("UPDATE places SET place = NULL" + some);
                    break;
                case 3:
                    session().rows("INSERT INTO places SELECT " + std::to_string(20000 + step) +
                                   ", 0, " + row(number));
                    break;
                case 4:
                    session().rows("UPDATE places SET kind = kind + 1" + some);
                    break;
                case 5:
                    session().rows("VACUUM places");
                    break;
                case 6:
                    if (below(20) != 0) break;
                    session().rows(below(2) == 0 ? "VACUUM FULL places" : "TRUNCATE places");
                    if (session().value("SELECT count(*) FROM places") == "0") fill();
                    break;
                default:
                    session().rows(update(number + " + places.id % 5") + some);
            }
            wait_until_replayed(reader);
            const std::size_t n = below(all.size());
            ++asked[n];
            taken[n] += !is_scanned_for(reader, all[n]);
            if (below(3) == 0) expect_right_in_transaction(another, all[below(all.size())]);
        }
        for (std::size_t n = 0; n < all.size(); ++n) {
            EXPECT_GE(taken[n], (asked[n] - 20) / 4) << "of " << asked[n] << ": " << all[n].asked;
            RecordProperty("taken_" + std::to_string(n), taken[n]);
        }
        EXPECT_GE(std::accumulate(taken.begin(), taken.end(), 0), answers / 6);
    }
    Session promoting(standby->connection());
    EXPECT_TRUE(promote(promoting));
    Session promoted(standby->connection());
    promoted.rows("SET gputext.device = cpu");
    for (int i = 0; i < 3; ++i) is_scanned(promoted);
    promoted.rows("DELETE FROM places WHERE id = 131");
    EXPECT_FALSE(is_scanned(promoted));
}

}  // namespace
}  // namespace gputext::live
