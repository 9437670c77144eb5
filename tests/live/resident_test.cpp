// gputextd keeps the values that statements have read: a later statement reads only what is new,
// and gives the rows that it would give if it read everything, whatever has happened to the table,
// the server, or gputextd meanwhile.

#include <array>
#include <thread>
#include <vector>

#include "tests/live/interruption.hpp"
#include "tests/live/next_oid.hpp"
#include "tests/live/places_test.hpp"

namespace gputext::live {
namespace {

class Resident : public PlacesTest {
protected:
    /// Gives the right answer, and finds and reads so many values, which a superuser's session
    /// counts.
    void expect_use(Session& session, Session& counting, const std::string& from, const Use& wanted,
                    const std::string& table = "places") {
        const Use before = use_of(counting, table);
        const std::string right = expected(session, from);
        EXPECT_EQ(answer(session, from), right) << from;
        const Use after = use_of(counting, table);
        EXPECT_EQ(after - before, wanted) << from;
    }
    void expect_use(Session& session, const std::string& from, const Use& wanted,
                    const std::string& table = "places") {
        expect_use(session, this->session(), from, wanted, table);
    }
    void expect_use(const std::string& from, const Use& wanted) {
        expect_use(session(), from, wanted);
    }
    void keep_all() { expect_use("places", {0, kRows}); }
};

/// Vectors out of line, and within their rows.
class ResidentAnywhere : public Resident, public ::testing::WithParamInterface<const char*> {
protected:
    std::string storage() const override { return GetParam(); }
};

INSTANTIATE_TEST_SUITE_P(Stored, ResidentAnywhere, ::testing::Values("EXTERNAL", "PLAIN"),
                         [](const auto& storage) { return std::string(storage.param); });

TEST_P(ResidentAnywhere, ReadsOnce) {
    keep_all();
    expect_use("places", {kRows, 0});
    expect_use("places ORDER BY id DESC", {kRows, 0});
    Session another(server().connection());
    for (const char* device : {"cpu", "gpu", "auto"}) {
        another.rows(std::string("SET gputext.device = ") + device);
        expect_use(another, "places", {kRows, 0});
    }
    expect_use("places WHERE id % 6 > 0", {kRows / 6 * 5, 0});
    expect_nothing_left_when_forgotten();
}

TEST_P(ResidentAnywhere, ReadsWhatIsNew) {
    keep_all();
    session().rows("UPDATE places SET place = place || '{}'::real[], kind = 5 WHERE id % 100 = 0");
    expect_use("places", {kRows - kRows / 100, kRows / 100});
    expect_use("places", {kRows, 0});
    insert("places", kRows + 1, kRows + 500, 3);
    session().rows("DELETE FROM places WHERE id <= 1000");
    expect_use("places", {kRows - 1000, 500});
    // The values are the same, but the rows are younger than what is known of them.
    session().rows("UPDATE places SET kind = 7 WHERE id <= 2000");
    expect_use("places", {kRows - 1500, 1000});
    expect_use("places", {kRows - 500, 0});
}

TEST_P(ResidentAnywhere, FollowsTheSnapshot) {
    keep_all();
    Session old(server().connection());
    old.rows("BEGIN ISOLATION LEVEL REPEATABLE READ");
    const std::string before = answer(old, "places");
    session().rows("UPDATE places SET place = array_fill(id::real, ARRAY[600]) WHERE id % 3 = 0");
    session().rows("DELETE FROM places WHERE id % 3 = 1");
    const std::string after = expected(session(), "places");
    for (int i = 0; i < 2; ++i) {
        EXPECT_EQ(answer(session(), "places"), after);
        EXPECT_EQ(answer(old, "places"), before);
    }
    old.rows("ROLLBACK");
    // A transaction's own rows, which may never have been
    session().rows("BEGIN");
    session().rows("UPDATE places SET place = array_fill(2, ARRAY[600])::real[] WHERE id % 6 = 0");
    EXPECT_EQ(answer(session(), "places"), expected(session(), "places"));
    EXPECT_EQ(answer(session(), "places"), expected(session(), "places"));
    session().rows("ROLLBACK");
    EXPECT_EQ(answer(session(), "places"), after);
}

TEST_P(ResidentAnywhere, DoesNotKeepWhatIsYoungerThanTheOldestTransaction) {
    Session open(server().connection());
    open.rows("BEGIN");
    open.rows("CREATE TEMPORARY TABLE holds_a_transaction_id ()");
    insert("places", kRows + 1, kRows + kRows / 2, 1);
    expect_use("places", {0, kRows});
    expect_use("places", {kRows, 0});
    open.rows("COMMIT");
    expect_use("places", {kRows, kRows / 2});
    expect_use("places", {kRows + kRows / 2, 0});
}

TEST_P(ResidentAnywhere, SurvivesWhatRewritesTheTable) {
    session().rows("CREATE INDEX ON places (id)");
    for (const char* change :
         {"VACUUM FULL places", "CLUSTER places USING places_id_idx", "VACUUM FREEZE places",
          "ALTER TABLE places ADD COLUMN more float DEFAULT random()",
          "ALTER TABLE places ALTER kind TYPE text",
          "BEGIN; DELETE FROM places WHERE id % 4 = 0; VACUUM places", "REINDEX TABLE places"}) {
        EXPECT_EQ(answer(session(), "places"), expected(session(), "places")) << change;
        if (std::string(change).rfind("BEGIN", 0) == 0) {
            session().rows("DELETE FROM places WHERE id % 4 = 0");
            session().rows("VACUUM places");
            insert("places", kRows + 1, kRows + kRows / 4, 9);
        } else {
            session().rows(change);
        }
        for (int i = 0; i < 2; ++i)
            EXPECT_EQ(answer(session(), "places"), expected(session(), "places")) << change;
    }
    session().rows("TRUNCATE places");
    session().rows("ALTER TABLE places ALTER kind TYPE int USING 1");
    session().rows("ALTER TABLE places DROP COLUMN more");
    insert("places", 1, kRows, 77);
    EXPECT_EQ(answer(session(), "places"), expected(session(), "places"));
    EXPECT_EQ(answer(session(), "places"), expected(session(), "places"));
}

TEST_F(Resident, KeepsDocuments) {
    session().rows("DROP TABLE IF EXISTS pages");
    session().rows(
        "CREATE TABLE pages AS SELECT i::bigint AS id, CASE WHEN i % 50 = 0 THEN '' ELSE "
        "(SELECT string_agg(md5(((i / 2) * 1000 + j)::text), ' ') "
        "FROM generate_series(1, 250) AS j) END AS body FROM generate_series(2, 3001) i");
    const auto pairs = [&](const std::string& body) {
        return session().value(
            "SELECT count(*) || ' ' || md5(string_agg(p::text, ';')) FROM "
            "near_duplicates($$SELECT id, " +
            body + " FROM pages$$) AS p");
    };
    const std::string right = pairs("body || ''");
    for (const char* device : {"cpu", "gpu"}) {
        set(std::string("gputext.device = ") + device);
        session().value("SELECT gputext_evict('pages')");
        for (int i = 0; i < 2; ++i) EXPECT_EQ(pairs("body"), right) << device << i;
        EXPECT_EQ(use_of(session(), "pages").hits, 2940) << device;
    }
    session().rows("UPDATE pages SET body = body || ' and more' WHERE id % 7 = 0");
    const std::string right_now = pairs("body || ''");
    for (int i = 0; i < 2; ++i) EXPECT_EQ(pairs("body"), right_now);
    session().rows("DROP TABLE pages");
    expect_nothing_left_when_forgotten();
}

TEST_F(Resident, KeepsNewAndOldDocuments) {
    session().rows("DROP TABLE IF EXISTS old_pages, new_pages");
    const auto make = [&](const char* name, const char* ids) {
        session().rows(std::string("CREATE TABLE ") + name +
                       " AS SELECT i::bigint AS id, (SELECT string_agg(md5(((i / 2) * 1000 + "
                       "j)::text), ' ') FROM generate_series(1, 250) AS j) AS body "
                       "FROM generate_series(" +
                       ids + ") i");
    };
    make("old_pages", "1, 3000");
    make("new_pages", "2900, 3500");
    const auto pairs = [&](const std::string& new_body, const std::string& old_body) {
        return session().value(
            "SELECT count(*) || ' ' || md5(string_agg(p::text, ';')) FROM "
            "near_duplicates_between($$SELECT id, " +
            new_body + " FROM new_pages$$, $$SELECT id, " + old_body + " FROM old_pages$$) AS p");
    };
    const std::string right = pairs("body || ''", "body || ''");
    EXPECT_EQ(right.substr(0, 4), "202 ");
    for (const char* device : {"cpu", "gpu"}) {
        set(std::string("gputext.device = ") + device);
        session().value("SELECT gputext_evict('old_pages')");
        session().value("SELECT gputext_evict('new_pages')");
        for (int i = 0; i < 2; ++i) EXPECT_EQ(pairs("body", "body"), right) << device << i;
        EXPECT_EQ(use_of(session(), "old_pages").hits, 3000) << device;
        EXPECT_EQ(use_of(session(), "new_pages").hits, 601) << device;
        // One side only.
        EXPECT_EQ(pairs("body || ''", "body"), right) << device;
        EXPECT_EQ(pairs("body", "body || ''"), right) << device;
    }
    session().rows("UPDATE new_pages SET body = body || ' and more' WHERE id % 7 = 0");
    EXPECT_EQ(pairs("body", "body"), pairs("body || ''", "body || ''"));
    EXPECT_EQ(pairs("body", "body"), pairs("body || ''", "body || ''"));
    session().rows("DROP TABLE old_pages, new_pages");
    expect_nothing_left_when_forgotten();
}

TEST_F(Resident, ServesViewsJoinsAndPartitions) {
    session().rows("DROP TABLE IF EXISTS parts, kinds CASCADE");
    session().rows("CREATE TABLE parts (id bigint, kind int, place real[]) PARTITION BY HASH (id)");
    for (int i = 0; i < 3; ++i) {
        const std::string name = "part" + std::to_string(i);
        session().rows("CREATE TABLE " + name +
                       " PARTITION OF parts FOR VALUES WITH (MODULUS 3, "
                       "REMAINDER " +
                       std::to_string(i) + ")");
        session().rows("ALTER TABLE " + name + " ALTER place SET STORAGE EXTERNAL");
    }
    session().rows("INSERT INTO parts SELECT * FROM places");
    session().rows("CREATE TABLE kinds AS SELECT i AS kind FROM generate_series(0, 1) i");
    session().rows(
        "CREATE VIEW chosen AS SELECT p.id, p.place FROM parts p JOIN kinds USING (kind)");
    const auto hits = [&] {
        return use_of(session(), "part0").hits + use_of(session(), "part1").hits +
               use_of(session(), "part2").hits;
    };
    for (const char* from : {"parts", "chosen", "(SELECT * FROM parts OFFSET 10) AS p"}) {
        EXPECT_EQ(answer(session(), from), expected(session(), from)) << from;
        const long before = hits();
        EXPECT_EQ(answer(session(), from), expected(session(), from)) << from;
        EXPECT_GE(hits() - before, kRows / 2) << from;
    }
    EXPECT_GE(std::stol(session().value("SELECT gputext_evict('parts')")), kRows / 2);
    EXPECT_EQ(use_of(session(), "part1"), Use());
    session().rows("DROP TABLE parts, kinds CASCADE");
}

// ---- Searches among values that are still being copied ----

/// After an update gputextd copies the values behind the statement.
class ResidentCopying : public Resident {
protected:
    void SetUp() override {
        Resident::SetUp();
        if (HasFailure()) return;
        set("gputext.cpu_threads = 1");
        set("gputext.scan_memory = 0");  // so that all values are asked for
    }
    static std::string nearest(const std::string& items, const std::string& metric,
                               const std::string& queries) {
        return "SELECT count(*) || ' ' || md5(string_agg(n::text, ';')) FROM gpu_knn("
               "$$SELECT id, place || '{}'::real[] FROM places WHERE " +
               queries + "$$, $$SELECT id, " + items + " FROM places$$, 5, '" + metric + "') AS n";
    }
    /// To a session that may choose and has one thread, one query is worth a device.
    static std::string queries_for(const std::string& device) {
        return device == "auto" ? "id = 7" : "id % 1200 = 7";
    }
    std::string expected_nearest(const std::string& metric, const std::string& queries) {
        return other().value(nearest("place || '{}'::real[]", metric, queries));
    }
    /// All values are kept, and another hundredth of them is missing.
    void update() {
        session().value("SELECT gputext_evict('places')");
        inject("");
        keep_all();
        update_kept();
    }
    void update_kept() {
        session().rows(
            "UPDATE places SET place = array_fill(id::real, ARRAY[600]) WHERE id % 100 = " +
            std::to_string(updates_++));
    }
    /// The right answer, with what gputextd has of the values.
    void expect_nearest(const std::string& metric, const std::string& queries) {
        const std::string right = expected_nearest(metric, queries);
        const Use before = use_of(session(), "places");
        EXPECT_EQ(session().value(nearest("place", metric, queries)), right);
        const Use after = use_of(session(), "places");
        EXPECT_EQ(after.hits - before.hits, kRows - kRows / 100);
        EXPECT_EQ(after.misses - before.misses, kRows / 100);
        EXPECT_EQ(session().value(nearest("place", metric, queries)), right);
        EXPECT_EQ(use_of(session(), "places").hits - after.hits, kRows);
    }

private:
    int updates_ = 0;
};

TEST_F(ResidentCopying, GivesTheSameAnswerEverywhere) {
    for (const char* metric : {"cosine", "euclidean"})
        for (const char* device : {"gpu", "auto", "cpu"})
            for (const char* fault : {"", "fill_values:slow:200"}) {
                SCOPED_TRACE(std::string(metric) + " " + device + " " + fault);
                set(std::string("gputext.device = ") + device);
                update();
                const long jobs = counter("gpu_jobs");
                inject(fault);
                expect_nearest(metric, queries_for(device));
                EXPECT_EQ(counter("gpu_jobs") - jobs, device == std::string("cpu") ? 0 : 2);
            }
    expect_nothing_left_when_forgotten();
}

/// Queries in blocks, of which each is a part of values that may still be copied.
TEST_F(ResidentCopying, IsAwaitedWhereItemsAreQueriesToo) {
    session().rows("CREATE TABLE hashes (id integer, hash bit varying)");
    session().rows("ALTER TABLE hashes ALTER hash SET STORAGE EXTERNAL");
    session().rows(
        "INSERT INTO hashes SELECT i, (SELECT string_agg(('x' || md5(i || 'th' || j))::bit(128)::"
        "text, '') FROM generate_series(1, 128) AS j)::bit varying FROM generate_series(1, 5600) "
        "AS i");
    session().rows("VACUUM hashes");
    set("gputext.host_memory_limit = '32MB'");
    const auto nearest = [](const std::string& queries, const std::string& items) {
        return "SELECT count(*) || ' ' || sum(query_id * item_id * rank) FROM gpu_knn('" + queries +
               "', '" + items + "', 300, 'hamming')";
    };
    const std::string all = "SELECT id, hash FROM hashes", some = all + " WHERE id % 8 <> 2";
    session().rows(nearest(all + " WHERE id < 3", all));
    ASSERT_EQ(use_of(session(), "hashes").misses, 5600);
    inject("fill_values:slow:1000");
    const std::string once = session().value(nearest(some, some));
    inject("");
    EXPECT_EQ(once, session().value(nearest(some + " ", some)));
    session().rows("DROP TABLE hashes");
}

TEST_F(ResidentCopying, ReadsValuesItselfWhereItFails) {
    for (const char* fault : {"fill_values:out_of_memory", "fill_values:crash",
                              "take_values:no_reply", "take_values:unsealed_file"})
        for (const char* device : {"auto", "cpu"}) {
            SCOPED_TRACE(std::string(device) + " " + fault);
            set(std::string("gputext.device = ") + device);
            ASSERT_TRUE(eventually([&] {
                session().value("SELECT gputext_evict('places')");
                inject("");
                answer(session(), "places");
                return use_of(session(), "places").misses > 0;
            }));
            update_kept();
            const std::string queries = queries_for(device);
            const std::string right = expected_nearest("cosine", queries);
            inject(fault);
            EXPECT_EQ(session().value(nearest("place", "cosine", queries)), right);
            inject("");
            EXPECT_EQ(session().value(nearest("place", "cosine", queries)), right);
        }
    expect_others_untouched();
}

TEST_F(ResidentCopying, ComputesOnTheCpuWhereTheCopyOfAJobFails) {
    set("gputext.device = auto");
    update();
    const std::string queries = "id % 20 = 7";
    const std::string right = expected_nearest("cosine", queries);
    const long lost = fallbacks("gputextd ended");
    inject("fill_values:out_of_memory");
    EXPECT_EQ(session().value(nearest("place", "cosine", queries)), right);
    EXPECT_EQ(fallbacks("gputextd ended"), lost + 1);
    set("gputext.device = gpu");
    update();
    inject("fill_values:out_of_memory");
    EXPECT_NE(session().sqlstate(nearest("place", "cosine", queries)), "ok");
    inject("");
    EXPECT_EQ(session().value(nearest("place", "cosine", queries)),
              expected_nearest("cosine", queries));
    expect_others_untouched();
}

TEST_F(ResidentCopying, IsCancelledWhileItWaits) {
    for (const char* device : {"gpu", "auto", "cpu"}) {
        SCOPED_TRACE(device);
        set(std::string("gputext.device = ") + device);
        update();
        inject("fill_values:hang");
        const std::string queries = queries_for(device);
        expect_in_time([&] {
            Control control(server().connection());
            Running call(session(), nearest("place", "cosine", queries));
            EXPECT_TRUE(eventually([&] { return is_active(other(), session().pid()); }));
            std::this_thread::sleep_for(500ms);
            EXPECT_FALSE(call.done());
            const double late = control.cancel(other(), call, session().pid());
            EXPECT_EQ(call.wait(), "57014");
            return late;
        });
        end_supervisor();
        inject("");
        const std::string right = expected_nearest("cosine", queries);
        EXPECT_EQ(session().value(nearest("place", "cosine", queries)), right);
        ASSERT_TRUE(eventually([&] {
            answer(session(), "places");
            return use_of(session(), "places").misses > 0;
        }));
    }
}

// ---- Numbers that come again ----

/// Gives other values the numbers of those that gputextd keeps.
class ResidentReuse : public Resident {
protected:
    void SetUp() override {
        Resident::SetUp();
        if (HasFailure()) return;
        session().rows(create_set_next_oid(server()));
        toast_ = session().value(
            "SELECT reltoastrelid::regclass FROM pg_class WHERE oid = 'places'::regclass");
    }

    /// The numbers of all values, and the first of them.
    std::string numbers() {
        return session().value("SELECT md5(string_agg(DISTINCT chunk_id::text, ',')) FROM " +
                               toast_);
    }
    void begin_again_with(const std::string& first) {
        session().rows("SELECT set_next_oid(" + first + ")");
    }
    std::string first() { return session().value("SELECT min(chunk_id) FROM " + toast_); }

    /// Other values have the numbers, and are read.
    void expect_read(const std::string& numbers_before, const std::string& answer_before) {
        EXPECT_EQ(numbers(), numbers_before) << "the numbers did not come again";
        EXPECT_NE(answer(session(), "places"), answer_before);
        EXPECT_EQ(answer(session(), "places"), expected(session(), "places"));
        EXPECT_EQ(answer(session(), "places"), expected(session(), "places"));
    }

private:
    std::string toast_;
};

TEST_F(ResidentReuse, IsSeenAfterDeleteAndVacuum) {
    keep_all();
    const std::string before = numbers(), kept = answer(session(), "places"), number = first();
    session().rows("DELETE FROM places");
    session().rows("VACUUM places");
    begin_again_with(number);
    insert("places", 1, kRows, 50);
    expect_read(before, kept);
}

TEST_F(ResidentReuse, IsSeenAfterTruncate) {
    keep_all();
    const std::string before = numbers(), kept = answer(session(), "places"), number = first();
    session().rows("TRUNCATE places");
    begin_again_with(number);
    insert("places", 1, kRows, 50);
    expect_read(before, kept);
    session().rows("VACUUM FREEZE places");
    EXPECT_EQ(answer(session(), "places"), expected(session(), "places"));
}

TEST_F(ResidentReuse, IsSeenWhereAnOlderTransactionMakesTheRows) {
    Session old(server().connection());
    old.rows("BEGIN");
    old.rows("SELECT pg_current_xact_id()");
    keep_all();
    const std::string before = numbers(), kept = answer(session(), "places"), number = first();
    session().rows("TRUNCATE places");
    begin_again_with(number);
    insert("places", 1, kRows, 50);
    old.rows("UPDATE places SET kind = 9");
    old.rows("COMMIT");
    expect_read(before, kept);
}

/// Rows have the places of those that gputextd keeps, at times with ids of transactions that are
/// older.
class ResidentPlaces : public Resident {
protected:
    std::string storage() const override { return "PLAIN"; }

    std::string places() {
        return session().value("SELECT md5(string_agg(ctid::text, ',' ORDER BY ctid)) FROM places");
    }
    /// Other rows have the places that rows had, and are read.
    void expect_read(const std::string& places_before, const std::string& answer_before) {
        EXPECT_EQ(places(), places_before) << "the places did not come again";
        EXPECT_NE(answer(session(), "places"), answer_before);
        EXPECT_EQ(answer(session(), "places"), expected(session(), "places"));
        EXPECT_EQ(answer(session(), "places"), expected(session(), "places"));
    }
};

TEST_F(ResidentPlaces, AreThoseOfOtherRowsAfterDeleteAndVacuum) {
    keep_all();
    const std::string before = places(), kept = answer(session(), "places");
    session().rows("DELETE FROM places");
    session().rows("VACUUM places");
    insert("places", 1, kRows, 50);
    expect_read(before, kept);
}

TEST_F(ResidentPlaces, AreThoseOfRowsThatAnOlderTransactionMakes) {
    Session old(server().connection());
    old.rows("BEGIN");
    old.rows("SELECT pg_current_xact_id()");
    keep_all();
    const std::string before = places(), kept = answer(session(), "places");
    session().rows("CREATE TABLE others AS SELECT * FROM places");
    session().rows("TRUNCATE places");
    old.rows("INSERT INTO places SELECT id, kind, array_append(place[2:], 1) FROM others");
    old.rows("COMMIT");
    session().rows("DROP TABLE others");
    expect_read(before, kept);
    session().rows("VACUUM FREEZE places");
    EXPECT_EQ(answer(session(), "places"), expected(session(), "places"));
}

/// VACUUM FULL and CLUSTER move rows, which keep the ids of their transactions.
TEST_F(ResidentPlaces, AreThoseOfOldRowsAfterTheTableWasRewritten) {
    session().rows("CREATE INDEX backwards ON places ((-id))");
    for (const char* rewrite : {"VACUUM FULL places", "CLUSTER places USING backwards"}) {
        for (int i = 0; i < 2; ++i) answer(session(), "places");
        session().rows("DELETE FROM places WHERE id % 3 = 0");
        const std::string right = expected(session(), "places WHERE id % 3 <> 0");
        for (int i = 0; i < 2; ++i) EXPECT_EQ(answer(session(), "places"), right) << rewrite;
        session().rows(rewrite);
        for (int i = 0; i < 2; ++i) EXPECT_EQ(answer(session(), "places"), right) << rewrite;
        insert("places", kRows + 3, kRows + 6000, 3);
        session().rows("DELETE FROM places WHERE id % 3 = 0 AND id > " + std::to_string(kRows));
        session().rows("VACUUM places");
        EXPECT_EQ(answer(session(), "places"), expected(session(), "places")) << rewrite;
    }
}

/// After its columns were chosen, and before it is planned, the query gets the rows of a child, at
/// the places of rows of the table.
TEST_F(ResidentPlaces, AreThoseOfAChildThatComesWhileTheQueryIsPlanned) {
    session().rows("CREATE TABLE parts (LIKE places) PARTITION BY LIST (kind)");
    session().rows("CREATE TABLE child (LIKE places INCLUDING STORAGE)");
    session().rows("CREATE TABLE part (LIKE places INCLUDING STORAGE)");
    session().rows("INSERT INTO part SELECT * FROM places WHERE kind = 1");
    insert("child", 1, kRows, 50);
    // The planner computes it, and looks then at what has changed.
    session().rows(
        "CREATE FUNCTION held() RETURNS int IMMUTABLE PARALLEL SAFE LANGUAGE plpgsql AS $$BEGIN "
        "PERFORM "
        "pg_advisory_lock(7), pg_advisory_unlock(7); PERFORM FROM asked; RETURN 1; END$$");
    session().rows("CREATE TABLE asked ()");
    session().rows(
        "CREATE FUNCTION row_places(query text, OUT id bigint, OUT relation regclass, OUT place "
        "tid) RETURNS SETOF record LANGUAGE c STRICT AS '$libdir/gputext', 'gputext_row_places'");
    keep_all();
    const std::string attach = "ALTER TABLE parts ATTACH PARTITION part FOR VALUES IN (1)";
    for (const auto& [table, change, tables] : std::vector<std::array<std::string, 3>>{
             {"places", "ALTER TABLE child INHERIT places", "child places"},
             {"parts", attach, "part"}}) {
        other().rows("SELECT pg_advisory_lock(7)");
        std::string found;
        std::thread asking([&] {
            found = session().value(
                "SELECT string_agg(DISTINCT relation::text, ' ') FROM row_places('SELECT id, place "
                "FROM " +
                table + ", held()')");
        });
        EXPECT_TRUE(eventually([&] {
            return other().value(
                       "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT "
                       "granted") == "1";
        }));
        other().rows(change);
        other().rows("SELECT pg_advisory_unlock(7)");
        asking.join();
        EXPECT_EQ(found, tables) << change;
        for (int i = 0; i < 2; ++i)
            EXPECT_EQ(answer(session(), table), expected(session(), table)) << change;
    }
    session().rows("DROP TABLE parts, child, asked");
    session().rows("DROP FUNCTION held, row_places");
}

/// Two columns of one table, and one that rows do not have, as it was added after them.
TEST_F(ResidentPlaces, HaveSeveralColumns) {
    session().rows(
        "ALTER TABLE places ADD another real[] DEFAULT array_fill(3, ARRAY[600])::real[]");
    session().rows("ALTER TABLE places ALTER another SET STORAGE PLAIN");
    const auto digest = [&](const std::string& column) {
        return session().value(
            "SELECT count(*) || ' ' || sum(hashtextextended(s::text, 0)) FROM "
            "cosine_similarities(array_fill(0.5, ARRAY[600]), $$SELECT id, " +
            column + " FROM places$$) AS s");
    };
    for (int i = 0; i < 2; ++i)
        for (const char* column : {"place", "another"})
            EXPECT_EQ(digest(column), digest(std::string(column) + " || '{}'::real[]")) << column;
    session().rows(
        "ALTER TABLE places ALTER another SET DEFAULT array_fill(4, ARRAY[600])::real[]");
    session().rows("UPDATE places SET another = place, place = another WHERE id % 5 = 0");
    for (int i = 0; i < 2; ++i)
        for (const char* column : {"place", "another"})
            EXPECT_EQ(digest(column), digest(std::string(column) + " || '{}'::real[]")) << column;
}

// ---- Rights ----

TEST_F(Resident, ShowsAndForgetsOnlyWhatTheUserMay) {
    keep_all();
    session().rows("DROP ROLE IF EXISTS reader, stranger");
    session().rows("CREATE ROLE reader LOGIN");
    session().rows("CREATE ROLE stranger LOGIN");
    const auto as = [&](const std::string& role) {
        Session found(server().connection());
        found.rows("SET SESSION AUTHORIZATION " + role);
        return found.table("SELECT relation, rows FROM gputext_resident");
    };
    // The numbers tell of all rows and columns.
    session().rows("GRANT SELECT (id, place) ON places TO reader");
    EXPECT_EQ(as("reader"), "");
    session().rows("GRANT SELECT ON places TO reader");
    EXPECT_EQ(as("reader"), "places|12000\n");
    EXPECT_EQ(as("stranger"), "");
    session().rows("ALTER TABLE places ENABLE ROW LEVEL SECURITY");
    session().rows("CREATE POLICY two_thirds ON places TO reader USING (kind <> 1)");
    EXPECT_EQ(as("reader"), "");
    Session reader(server().connection());
    reader.rows("SET SESSION AUTHORIZATION reader");
    expect_use(reader, "places", {kRows / 3 * 2, 0});
    EXPECT_EQ(reader.sqlstate("SELECT gputext_evict('places')"), "42501");
    EXPECT_EQ(reader.sqlstate("SELECT gputext_evict()"), "42501");
    EXPECT_EQ(session().value("SELECT gputext_evict('places')"), std::to_string(kRows));
    EXPECT_EQ(session().value("SELECT gputext_evict('places')"), "0");
    expect_use(reader, "places", {0, kRows / 3 * 2});
    session().rows("DROP OWNED BY reader");
    session().rows("DROP ROLE reader, stranger");
}

// ---- Memory ----

TEST_F(Resident, KeepsToItsMemory) {
    keep_all();
    session().rows("ALTER SYSTEM SET gputext.resident_memory = '20MB'");
    session().rows("SELECT pg_reload_conf()");
    const std::string right = expected(session(), "places");
    ASSERT_TRUE(eventually([&] { return use_of(session(), "places") == Use(); }));
    for (int i = 0; i < 3; ++i) EXPECT_EQ(answer(session(), "places"), right);
    EXPECT_EQ(use_of(session(), "places").hits, 0);
    EXPECT_EQ(session().value("SELECT coalesce(sum(bytes), 0) <= 20000000 FROM gputext_resident"),
              "t");
    session().rows("ALTER SYSTEM SET gputext.resident_memory = 0");
    session().rows("SELECT pg_reload_conf()");
    ASSERT_TRUE(eventually([&] { return session().value("SHOW gputext.resident_memory") == "0"; }));
    EXPECT_EQ(answer(session(), "places"), right);
    EXPECT_EQ(session().value("SELECT count(*) FROM gputext_resident"), "0");
    session().rows("ALTER SYSTEM RESET gputext.resident_memory");
    session().rows("SELECT pg_reload_conf()");
}

TEST_F(Resident, IsServedWithoutDevices) {
    session().rows("ALTER SYSTEM SET gputext.fake_devices = 0");
    session().rows("SELECT pg_reload_conf()");
    end_supervisor();
    Session cpu(server().connection());
    const std::string right = expected(cpu, "places");
    EXPECT_EQ(answer(cpu, "places"), right);  // has gputextd started
    ASSERT_TRUE(eventually([&] {
        answer(cpu, "places");
        return use_of(cpu, "places").hits == kRows;
    }));
    EXPECT_EQ(answer(cpu, "places"), right);
    EXPECT_EQ(server().daemons().size(), 1u);
    EXPECT_EQ(cpu.sqlstate("SET gputext.device = gpu"), "ok");
    EXPECT_EQ(cpu.sqlstate(kJob), on_real_gpus() ? "ok" : "55000");
    session().rows("ALTER SYSTEM RESET gputext.fake_devices");
    session().rows("SELECT pg_reload_conf()");
}

// ---- Ends ----

TEST_F(Resident, StartsAnewAfterACrash) {
    keep_all();
    const pid_t daemon = server().daemon();
    send_signal(session().pid(), SIGKILL);
    ASSERT_TRUE(eventually([&] { return !alive(daemon); }));
    disconnect();
    const std::string where = server().connection().text;
    ASSERT_TRUE(eventually([&] { return PQping(where.c_str()) == PQPING_OK; }));
    connect();
    expect_job_on_device();
    keep_all();
    expect_use("places", {kRows, 0});
}

TEST_F(Resident, GoesOnWithoutGputextd) {
    keep_all();
    const std::string right = expected(session(), "places");
    set("gputext.device = cpu");
    send_signal(server().daemon(), SIGKILL);
    EXPECT_EQ(answer(session(), "places"), right);
    send_signal(server().daemon() > 0 ? server().daemon() : server().supervisor(), SIGSTOP);
    EXPECT_EQ(answer(session(), "places"), right);
    for (const pid_t pid : server().daemons()) send_signal(pid, SIGCONT);
    for (const pid_t pid : server().supervisors()) send_signal(pid, SIGCONT);
    ASSERT_TRUE(eventually([&] {
        answer(session(), "places");
        return use_of(session(), "places").hits > 0;
    }));
    EXPECT_EQ(answer(session(), "places"), right);
    expect_others_untouched();
}

TEST_F(Resident, IsCancelledWhileItWaits) {
    keep_all();
    const pid_t daemon = server().daemon();
    send_signal(daemon, SIGSTOP);
    expect_in_time([&] {
        Control control(server().connection());
        Running call(session(), digest_of("SELECT id, place FROM places"));
        EXPECT_TRUE(reaches(session().pid(), "asking for values that gputextd keeps"));
        const double late = control.cancel(other(), call, session().pid());
        EXPECT_EQ(call.wait(), "57014");
        return late;
    });
    send_signal(daemon, SIGCONT);
    expect_use("places", {kRows, 0});
    expect_nothing_left_when_forgotten();
}

TEST_P(ResidentAnywhere, ServesAStandbyAndItsPromotion) {
    const auto standby = PrivateServer::standby_of(server());
    standby->start();
    {
        Session reader(standby->connection());
        reader.rows("SET gputext.device = gpu");
        EXPECT_EQ(reader.value(kJob), kAnswer);  // has gputextd started
        expect_use(reader, reader, "places", {0, kRows});
        expect_use(reader, reader, "places", {kRows, 0});
        session().rows(
            "UPDATE places SET place = array_fill(id::real, ARRAY[600]) WHERE id % 3 = 0");
        session().rows("VACUUM places");
        const std::string written = session().value("SELECT pg_current_wal_flush_lsn()");
        ASSERT_TRUE(eventually([&] {
            return reader.value("SELECT pg_last_wal_replay_lsn() >= '" + written + "'::pg_lsn") ==
                   "t";
        }));
        expect_use(reader, reader, "places", {kRows - kRows / 3, kRows / 3});
        EXPECT_TRUE(promote(reader));
        expect_use(reader, reader, "places", {kRows, 0});
        reader.rows("UPDATE places SET place = array_fill(1, ARRAY[600])::real[] WHERE id % 5 = 0");
        expect_use(reader, reader, "places", {kRows - kRows / 5, kRows / 5});
    }
}

}  // namespace
}  // namespace gputext::live
