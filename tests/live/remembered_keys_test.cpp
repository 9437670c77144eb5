// Rows with keys that a session remembers: gpu_knn within equal keys, and without those of equal
// keys, gives the rows that a scan gives, whatever sessions have done to the tables meanwhile.

#include <random>
#include <vector>

#include "tests/live/dice.hpp"
#include "tests/live/resident_use.hpp"
#include "tests/support/test_size.hpp"

namespace gputext::live {
namespace {

class RememberedKeys : public ResidentTest {
protected:
    /// As many rows of each table as are worth a question to gputextd.
    static constexpr int kPlaces = 7000;

    void SetUp() override {
        DaemonTest::SetUp();
        if (HasFailure()) return;
        session().rows("DROP TABLE IF EXISTS places, asked");
        session().rows("DROP COLLATION IF EXISTS ignoring_case");
        session().rows(
            "CREATE COLLATION ignoring_case (provider = icu, locale = 'und-u-ks-level2', "
            "deterministic = false)");
        session().rows("DROP TYPE IF EXISTS color; CREATE TYPE color AS ENUM ('red', 'blue')");
        for (const char* table : {"places", "asked"}) {
            session().rows("CREATE TABLE " + std::string(table) +
                           " (id bigint, kind int, name text, folded text COLLATE ignoring_case, "
                           "exact numeric, day date, share float8, shade color, tags int[], "
                           "place real[], filler text) "
                           "WITH (toast_tuple_target = 128, fillfactor = 90)");
            session().rows("ALTER TABLE " + std::string(table) +
                           " ALTER place SET STORAGE EXTERNAL");
            fill(table);
        }
        session().rows("VACUUM places, asked");
        set("gputext.device = cpu");
    }
    static void fill(Session& session, const std::string& table) {
        session.rows("INSERT INTO " + table + " SELECT i, " + row("i") +
                     " FROM generate_series(1, " + std::to_string(kPlaces) + ") AS i");
    }
    void fill(const std::string& table) { fill(session(), table); }

    /// The keys of a row and the rest of it, by a number. A row that is long before it is stored
    /// has its vector out of line.
    static std::string keys(const std::string& number) {
        const std::string n = "((" + number + ") % 9973)";
        return "nullif(" + n + " % 300, 7), nullif('n' || " + n + " % 211, 'n5'), " + "CASE WHEN " +
               n + " % 2 = 0 THEN 'aa' ELSE 'Aa' END || " + n + " % 150, " + "round((" + n +
               " % 200)::numeric / 4, 2 + (" + n + " % 3)::int), date '2026-01-01' + (" + n +
               " % 400)::int, CASE WHEN " + n + " % 250 = 0 AND " + n +
               " % 4 = 0 THEN '-0'::float8 ELSE (" + n +
               " % 250) / 2.0 END, (ARRAY['red', 'blue', NULL])[1 + (" + n +
               " % 3)::int]::color, ARRAY[" + n + " % 100, NULL, " + n + " % 2]::int[]";
    }
    static std::string row(const std::string& number) {
        const std::string n = "((" + number + ") % 9973)";
        return keys(number) + ", (SELECT array_agg((" + n + " * 31 + j * 17 + " + n +
               " * j) % 101) FROM generate_series(1, 40) AS j)::real[], repeat('x', 2100)";
    }

    /// Keys, as columns of both inner queries, and what follows the inner queries.
    struct Question {
        std::string keys, options;
        std::string queries = "asked", items = "places";

        static std::string inner(const std::string& place, const std::string& keys,
                                 const std::string& from) {
            return "$$SELECT id, " + place + ", " + keys + " FROM " + from + "$$";
        }
        std::string statement(const std::string& place) const {
            return "SELECT count(*) || ' ' || coalesce(sum(hashtextextended(s::text, 0)), 0) "
                   "FROM " +
                   std::string(options.find("radius") == std::string::npos ? "gpu_knn("
                                                                           : "gpu_knn_within(") +
                   inner(place, keys, queries) + ", " + inner(place, keys, items) + ", " + options +
                   ") AS s";
        }
        std::string answer(Session& session) const { return session.value(statement("place")); }
        /// Of values without a pointer, which nobody keeps
        std::string expected(Session& session) const {
            return session.value(
                statement("CASE WHEN place IS NOT NULL THEN place || '{}'::real[] END"));
        }
    };
    static std::vector<Question> questions() {
        std::vector<Question> all;
        for (const char* key : {"kind", "name", "folded", "exact", "day", "share", "shade", "tags"})
            all.push_back({key, "k => 3"});
        all.push_back({"kind", "k => 100000"});
        all.push_back({"kind", "radius => 0.01"});
        all.push_back({"folded", "k => 4, metric => 'euclidean', exclude_self => true"});
        all.push_back({"kind", "k => 2, exclude_key => true"});
        all.push_back({"name", "k => 2, exclude_key => true, exclude_self => true"});
        all.push_back({"shade, name", "k => 3, exclude_key => true"});
        all.push_back({"exact, kind", "k => 3, exclude_key => true, exclude_self => true"});
        all.push_back({"kind", "k => 3, exclude_self => true", "places", "places"});
        all.push_back({"name", "k => 3", "asked WHERE kind <> 1", "places WHERE kind <> 1"});
        return all;
    }

    static long scans(Session& session, const std::string& table) {
        return std::stol(
            session.value("SELECT pg_stat_get_xact_numscans('" + table + "'::regclass)"));
    }
    /// How many of the tables the answer takes a scan of. It has to be right.
    static long scanned(Session& session, const Question& question) {
        session.rows("BEGIN ISOLATION LEVEL REPEATABLE READ");
        const std::string right = question.expected(session);
        const auto count = [&] { return scans(session, "places") + scans(session, "asked"); };
        const long before = count();
        EXPECT_EQ(question.answer(session), right) << question.statement("place");
        const long after = count();
        session.rows("COMMIT");
        return after - before;
    }
    long scanned(const Question& question) { return scanned(session(), question); }
    /// From here on nothing is scanned.
    void keep(const Question& question) {
        for (int i = 0; i < 3 && scanned(question) > 0; ++i) continue;
        ASSERT_EQ(scanned(question), 0) << question.statement("place");
    }
};

TEST_F(RememberedKeys, AreNotScannedAgain) {
    for (const Question& question : questions()) {
        SCOPED_TRACE(question.statement("place"));
        ASSERT_NO_FATAL_FAILURE(keep(question));
        set("gputext.device = gpu");
        EXPECT_EQ(scanned(question), 0);
        set("gputext.device = cpu");
    }
    // One side is remembered and the other one is not.
    for (const char* key : {"kind", "name"}) {
        keep({key, "k => 3"});
        EXPECT_EQ(scanned({key, "k => 3", "asked LIMIT 3000"}), 1);
        EXPECT_EQ(scanned({key, "k => 3", "asked", "places LIMIT 3000"}), 1);
    }
}

TEST_F(RememberedKeys, AreNumberedForEachTableOfItems) {
    // The queries' keys are those of one table of items, then of another one.
    session().rows("DROP TABLE IF EXISTS others");
    session().rows("CREATE TABLE others (LIKE places INCLUDING ALL)");
    session().rows("INSERT INTO others SELECT i, " + row("i * 3 + 1000") +
                   " FROM generate_series(1, 7000) AS i");
    session().rows("VACUUM others");
    for (const char* key : {"kind", "name", "folded", "share"}) {
        const Question one{key, "k => 2"}, two{key, "k => 2", "asked", "others"};
        for (int i = 0; i < 3; ++i) {
            scanned(one);
            scanned(two);
        }
        EXPECT_EQ(scanned(one), 0);
        EXPECT_EQ(scanned(two), 0);
        // As a key that excludes, and as one of another place
        scanned({key, "k => 2, exclude_key => true"});
        EXPECT_EQ(scanned({key, "k => 2, exclude_key => true"}), 0);
    }
    session().rows("DROP TABLE others");
}

TEST_F(RememberedKeys, AreOfPlainColumnsOfOwnTypes) {
    session().rows("CREATE DOMAIN short AS int");
    session().rows("ALTER TABLE places ADD small short DEFAULT 3");
    session().rows("ALTER TABLE asked ADD small short DEFAULT 3");
    session().rows("VACUUM places, asked");
    keep({"small", "k => 1"});
    for (const char* key : {"kind + 1", "ROW(kind, name)", "name COLLATE \"C\"", "lower(name)",
                            "kind::bigint", "NULL::int"})
        for (int i = 0; i < 2; ++i) EXPECT_EQ(scanned({key, "k => 1"}), 2) << key;
    if (session().value("SELECT count(*) FROM pg_available_extensions WHERE name = 'citext'") !=
        "0") {
        session().rows("CREATE EXTENSION IF NOT EXISTS citext");
        for (const char* table : {"places", "asked"})
            session().rows("ALTER TABLE " + std::string(table) + " ALTER name TYPE citext");
        session().rows("VACUUM places, asked");
        for (int i = 0; i < 3; ++i) EXPECT_EQ(scanned({"name", "k => 1"}), 2);
    }
    session().rows("ALTER TABLE places DROP small; ALTER TABLE asked DROP small");
    session().rows("DROP DOMAIN short");
}

TEST_F(RememberedKeys, FollowChangesOfItems) {
    for (const Question& question : std::vector<Question>{
             {"kind", "k => 3"},
             {"folded", "radius => 0.02, exclude_self => true"},
             {"share", "k => 2, exclude_key => true"},
             {"shade, name", "k => 3, exclude_key => true"},
             {"exact, kind", "k => 3, exclude_key => true, exclude_self => true"}}) {
        SCOPED_TRACE(question.statement("place"));
        ASSERT_NO_FATAL_FAILURE(keep(question));
        // Where both ids and keys exclude, the table is scanned.
        const bool taken = question.options.find("exclude_self") == std::string::npos ||
                           question.options.find("exclude_key") == std::string::npos;
        for (const char* change :
             {"UPDATE places SET (kind, name, folded, exact, day, share, shade, tags) = "
              "(SELECT p.kind, p.name, p.folded, p.exact, p.day, p.share, p.shade, p.tags FROM "
              "places AS p WHERE p.id = 18) WHERE id = 17",
              "UPDATE places SET kind = NULL, name = NULL, folded = NULL, exact = NULL WHERE id = "
              "20",
              "UPDATE places SET kind = 5000, name = 'new', day = 'infinity', share = 'NaN' WHERE "
              "id IN (21, 22)",
              "DELETE FROM places WHERE id BETWEEN 30 AND 33",
              "UPDATE places SET place = NULL WHERE id = 40"}) {
            other().rows(change);
            EXPECT_EQ(scanned(question) > 0, !taken) << change;
        }
        other().rows("BEGIN; DELETE FROM places; ROLLBACK");
        EXPECT_EQ(scanned(question), 0);
        other().rows("INSERT INTO places SELECT 9000 + i, " + row("i * 77") +
                     " FROM generate_series(1, 9) AS i");
        EXPECT_EQ(scanned(question) > 0, !taken);
        // Keys that no item had
        other().rows("UPDATE asked SET kind = 5000, name = 'new', share = 'NaN' WHERE id = 21");
        EXPECT_EQ(scanned(question), 1);
        EXPECT_EQ(scanned(question), 0);
        other().rows("TRUNCATE places, asked");
        for (int i = 0; i < 2; ++i) scanned(question);
        for (const char* table : {"places", "asked"}) fill(other(), table);
        other().rows("VACUUM places, asked");
    }
}

TEST_F(RememberedKeys, FollowTheTable) {
    for (const char* key : {"kind", "name"}) {
        const Question question{key, "k => 3"};
        ASSERT_NO_FATAL_FAILURE(keep(question));
        for (const char* change :
             {"ALTER TABLE places ALTER kind TYPE bigint; ALTER TABLE asked ALTER kind TYPE bigint",
              "ALTER TABLE places RENAME name TO gone; ALTER TABLE places RENAME folded TO name; "
              "ALTER TABLE places ALTER name TYPE text COLLATE \"default\"",
              "ALTER TABLE places RENAME name TO folded; ALTER TABLE places RENAME gone TO name",
              "ALTER TABLE places ALTER name TYPE text COLLATE ignoring_case; ALTER TABLE asked "
              "ALTER name TYPE text COLLATE ignoring_case",
              "ALTER TABLE places ALTER name TYPE text; ALTER TABLE asked ALTER name TYPE text",
              "VACUUM FULL places", "TRUNCATE asked"}) {
            SCOPED_TRACE(change);
            for (int i = 0; i < 2; ++i) scanned(question);
            other().rows(change);
            for (int i = 0; i < 2; ++i) scanned(question);
            other().rows("VACUUM places, asked");
            for (int i = 0; i < 2; ++i) scanned(question);
        }
        fill("asked");
        session().rows("VACUUM asked");
    }
}

TEST_F(RememberedKeys, NeedTheRights) {
    session().rows("DROP ROLE IF EXISTS reader");
    session().rows("CREATE ROLE reader");
    session().rows("GRANT SELECT (id, place, kind) ON places, asked TO reader");
    const Question question{"kind", "k => 3"}, other_key{"name", "k => 3"};
    keep(question);
    keep(other_key);
    session().rows("SET ROLE reader");
    EXPECT_EQ(scanned(question), 0);
    EXPECT_EQ(session().sqlstate(other_key.statement("place")), "42501");
    session().rows("RESET ROLE");
    session().rows("GRANT SELECT ON places, asked TO reader");
    session().rows("ALTER TABLE places ENABLE ROW LEVEL SECURITY");
    session().rows("CREATE POLICY most ON places TO reader USING (kind <> 1)");
    keep(question);
    const std::string all = question.answer(session());
    session().rows("SET ROLE reader");
    EXPECT_EQ(scanned(question), 1);
    keep(question);
    EXPECT_NE(question.answer(session()), all);
    session().rows("RESET ROLE");
    EXPECT_EQ(question.answer(session()), all);
    session().rows("DROP OWNED BY reader");
    session().rows("DROP ROLE reader");
}

TEST_F(RememberedKeys, KeepToTheirMemory) {
    // A text that each row has for itself
    session().rows("UPDATE places SET name = repeat('long', 20) || id");
    session().rows("UPDATE asked SET name = repeat('long', 20) || id + 1");
    session().rows("VACUUM FULL places, asked");
    session().rows("VACUUM places, asked");
    const Question texts{"name", "k => 3"}, numbers{"kind", "k => 3"},
        both{"kind, name",
             "k => 3, "
             "exclude_key => true"};
    for (const char* memory : {"0", "60kB", "100kB", "200kB", "600kB", "1MB"}) {
        set(std::string("gputext.scan_memory = '") + memory + "'");
        for (const Question& question : {texts, numbers, both})
            for (int i = 0; i < 2; ++i) scanned(question);
    }
    set("gputext.scan_memory = '600kB'");
    keep(numbers);
    for (int i = 0; i < 3; ++i) EXPECT_GT(scanned(texts), 0);
    set("gputext.scan_memory = '4MB'");
    keep(texts);
    keep(both);
    EXPECT_EQ(scanned(texts), 0);
    // The keys of queries count against the limit only where they are remembered.
    set("gputext.scan_memory = '64MB'");
    set("gputext.host_memory_limit = '4MB'");
    scanned(texts);
    set("gputext.host_memory_limit = '1GB'");
}

/// Two sessions search, one of them in transactions with one snapshot, while these and another one
/// change rows of both tables.
TEST_F(RememberedKeys, GiveTheSameRowsWhateverHappens) {
    std::mt19937 random(history_seed(17));
    const auto below = [&](std::size_t most) { return random() % most; };
    const std::vector<Question> all = questions();
    Session old(server().connection()), writer(server().connection());
    bool open = false, old_runs = false;
    std::vector<std::string> old_answers(all.size());
    long taken = 0;
    const int steps = testing::rounds(50, 5000);
    const auto end_all = [&] {
        if (open) writer.rows(below(2) == 0 ? "COMMIT" : "ROLLBACK");
        if (old_runs) old.rows("COMMIT");
        open = old_runs = false;
    };
    const auto change = [&](Session& session, std::size_t part) {
        const std::string table = below(4) == 0 ? "asked" : "places";
        const std::string id = std::to_string(below(kPlaces));
        const std::string some =
            " WHERE id BETWEEN " + id + " AND " + id + " + 8 AND id % 3 = " + std::to_string(part);
        const std::string number = std::to_string(below(5000));
        switch (below(6)) {
            case 0:
                return session.rows("DELETE FROM " + table + some);
            case 1:
                return session.rows("UPDATE " + table + " SET place = NULL" + some);
            case 2:
                return session.rows("INSERT INTO " + table + " SELECT i, " + row("i * " + number) +
                                    " FROM generate_series(20000 + " + number + ", 20004 + " +
                                    number + ") AS i WHERE i % 3 = " + std::to_string(part) +
                                    " AND NOT EXISTS (SELECT FROM " + table +
                                    " AS t WHERE t.id = i)");
            default:
                return session.rows("UPDATE " + table +
                                    " SET (kind, name, folded, exact, day, share, shade, tags) = "
                                    "(SELECT " +
                                    keys(table + ".id + " + number) + ")" + some);
        }
    };
    for (int step = 0; step < steps && !HasFailure(); ++step) {
        SCOPED_TRACE(step);
        switch (below(12)) {
            case 0:
                writer.rows(open ? below(3) == 0 ? "ROLLBACK" : "COMMIT" : "BEGIN");
                open = !open;
                break;
            case 1:
                old.rows(old_runs ? "COMMIT" : "BEGIN ISOLATION LEVEL REPEATABLE READ");
                old_runs = !old_runs;
                if (!old_runs) break;
                for (std::size_t n = 0; n < all.size(); ++n) old_answers[n] = all[n].expected(old);
                break;
            case 2:
            case 3:
                other().rows("VACUUM places, asked");
                break;
            case 4: {
                session().rows("BEGIN");
                session().rows("SAVEPOINT here");
                change(session(), 2);
                const Question& question = all[below(all.size())];
                EXPECT_EQ(question.answer(session()), question.expected(session()));
                session().rows("ROLLBACK TO here");
                EXPECT_EQ(question.answer(session()), question.expected(session()));
                session().rows(below(2) == 0 ? "ROLLBACK" : "COMMIT");
                break;
            }
            case 5:
                if (below(4) != 0) break;
                end_all();
                other().rows(below(2) == 0 ? "TRUNCATE places" : "VACUUM FULL places");
                if (other().value("SELECT count(*) FROM places") == "0") fill(other(), "places");
                break;
            default:
                change(writer, below(2));
        }
        if (old_runs) {
            const std::size_t n = below(all.size());
            EXPECT_EQ(all[n].answer(old), old_answers[n]) << all[n].statement("place");
        }
        const Question& question = all[below(all.size())];
        taken += 2 - scanned(question);
        if (below(2) == 0) taken += 2 - scanned(question);
    }
    end_all();
    EXPECT_GE(taken, steps / 4) << "of " << steps;
    RecordProperty("taken", static_cast<int>(taken));
}

}  // namespace
}  // namespace gputext::live
