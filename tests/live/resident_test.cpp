// gputextd keeps the values that statements have read: a later statement reads only what is new,
// and gives the rows that it would give if it read everything, whatever has happened to the table,
// the server, or gputextd meanwhile.

#include "tests/live/daemon_test.hpp"
#include "tests/live/next_oid.hpp"

namespace gputext::live {
namespace {

/// Values that were found at gputextd, and values that had to be read.
struct Use {
    long hits = 0, misses = 0;

    bool operator==(const Use&) const = default;
};

void PrintTo(const Use& use, std::ostream* out) {
    *out << use.hits << " hits, " << use.misses << " misses";
}

constexpr long kRows = 12000;

class Resident : public DaemonTest {
protected:
    void SetUp() override {
        DaemonTest::SetUp();
        if (HasFailure()) return;
        session().rows("DROP TABLE IF EXISTS places");
        make_places("places");
    }

    /// Vectors out of line, enough of them to be worth a question; ids from 1 to kRows.
    void make_places(const std::string& name) {
        session().rows("CREATE TABLE " + name + " (id bigint, kind int, place real[])");
        session().rows("ALTER TABLE " + name + " ALTER place SET STORAGE EXTERNAL");
        insert(name, 1, kRows, 0);
    }
    void insert(const std::string& name, long first, long last, int salt) {
        session().rows(
            "WITH begins AS MATERIALIZED (SELECT i, ARRAY(SELECT ((i * 31 + j * 17 + "
            "i * j + " +
            std::to_string(salt) +
            ") % 101)::real "
            "FROM generate_series(1, 595) AS j) AS elements "
            "FROM generate_series(0, 100) AS i) INSERT INTO " +
            name +
            " SELECT n, n % 3, elements || ARRAY[n, n % 7, n % 11, n % 13, n % 17]::real[] "
            "FROM generate_series(" +
            std::to_string(first) + ", " + std::to_string(last) +
            ") AS n JOIN begins ON i = n % 101");
    }

    static std::string digest_of(const std::string& inner) {
        return "SELECT count(*) || ' ' || md5(coalesce(string_agg(s::text, ';' ORDER BY s::text), "
               "'')) FROM cosine_similarities(array_fill(0.5, ARRAY[600]), $$" +
               inner + "$$) AS s";
    }
    /// The answer, with what gputextd has of the rows.
    static std::string answer(Session& session, const std::string& from) {
        return session.value(digest_of("SELECT id, place FROM " + from));
    }
    /// The answer of values that have no pointers.
    static std::string expected(Session& session, const std::string& from) {
        return session.value(digest_of("SELECT id, place || '{}'::real[] FROM " + from));
    }

    static Use use(Session& session, const std::string& table) {
        const auto rows = session.rows(
            "SELECT hits, misses FROM gputext_resident WHERE relation = '" + table + "'::regclass");
        if (rows.empty()) return {};
        return {rows[0][0].as<long>(), rows[0][1].as<long>()};
    }

    /// Gives the right answer, and finds and reads so many values.
    void expect_use(Session& session, const std::string& from, const Use& wanted,
                    const std::string& table = "places") {
        const Use before = use(session, table);
        const std::string right = expected(session, from);
        EXPECT_EQ(answer(session, from), right) << from;
        const Use after = use(session, table);
        EXPECT_EQ((Use{after.hits - before.hits, after.misses - before.misses}), wanted) << from;
    }
    void expect_use(const std::string& from, const Use& wanted) {
        expect_use(session(), from, wanted);
    }
    void keep_all() { expect_use("places", {0, kRows}); }

    /// Of what it has kept, too.
    void expect_nothing_left_when_forgotten() {
        session().rows("SELECT gputext_forget()");
        expect_nothing_left();
    }
};

TEST_F(Resident, ReadsOnce) {
    keep_all();
    expect_use("places", {kRows, 0});
    expect_use("places ORDER BY id DESC", {kRows, 0});
    expect_use("places WHERE id % 2 = 0", {kRows / 2, 0});
    Session another(server().connection());
    for (const char* device : {"cpu", "gpu", "auto"}) {
        another.rows(std::string("SET gputext.device = ") + device);
        expect_use(another, "places", {kRows, 0});
    }
    expect_nothing_left_when_forgotten();
}

TEST_F(Resident, ReadsWhatIsNew) {
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

TEST_F(Resident, FollowsTheSnapshot) {
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

TEST_F(Resident, DoesNotKeepWhatIsYoungerThanTheOldestTransaction) {
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

TEST_F(Resident, SurvivesWhatRewritesTheTable) {
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
        session().value("SELECT gputext_forget('pages')");
        for (int i = 0; i < 3; ++i) EXPECT_EQ(pairs("body"), right) << device << i;
        EXPECT_EQ(use(session(), "pages").hits, 2 * 2940) << device;
    }
    session().rows("UPDATE pages SET body = body || ' and more' WHERE id % 7 = 0");
    EXPECT_EQ(pairs("body"), pairs("body || ''"));
    EXPECT_EQ(pairs("body"), pairs("body || ''"));
    session().rows("DROP TABLE pages");
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
        return use(session(), "part0").hits + use(session(), "part1").hits +
               use(session(), "part2").hits;
    };
    for (const char* from : {"parts", "chosen", "(SELECT * FROM parts OFFSET 10) AS p"}) {
        EXPECT_EQ(answer(session(), from), expected(session(), from)) << from;
        const long before = hits();
        EXPECT_EQ(answer(session(), from), expected(session(), from)) << from;
        EXPECT_GE(hits() - before, kRows / 2) << from;
    }
    EXPECT_GE(std::stol(session().value("SELECT gputext_forget('parts')")), kRows / 2);
    EXPECT_EQ(use(session(), "part1"), Use());
    session().rows("DROP TABLE parts, kinds CASCADE");
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

// ---- Rights ----

TEST_F(Resident, ShowsAndForgetsOnlyWhatTheUserMay) {
    keep_all();
    session().rows("DROP ROLE IF EXISTS reader, stranger");
    session().rows("CREATE ROLE reader LOGIN");
    session().rows("CREATE ROLE stranger LOGIN");
    session().rows("GRANT SELECT (id, place) ON places TO reader");
    session().rows("ALTER TABLE places ENABLE ROW LEVEL SECURITY");
    session().rows("CREATE POLICY two_thirds ON places TO reader USING (kind <> 1)");
    const auto as = [&](const std::string& role) {
        Session found(server().connection());
        found.rows("SET SESSION AUTHORIZATION " + role);
        return found.table("SELECT relation, rows FROM gputext_resident");
    };
    EXPECT_EQ(as("reader"), "places|12000\n");
    EXPECT_EQ(as("stranger"), "");
    Session reader(server().connection());
    reader.rows("SET SESSION AUTHORIZATION reader");
    expect_use(reader, "places", {kRows / 3 * 2, 0});
    EXPECT_EQ(reader.sqlstate("SELECT gputext_forget('places')"), "42501");
    EXPECT_EQ(reader.sqlstate("SELECT gputext_forget()"), "42501");
    EXPECT_EQ(session().value("SELECT gputext_forget('places')"), std::to_string(kRows));
    EXPECT_EQ(session().value("SELECT gputext_forget('places')"), "0");
    EXPECT_EQ(as("reader"), "");
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
    ASSERT_TRUE(eventually([&] { return use(session(), "places") == Use(); }));
    for (int i = 0; i < 3; ++i) EXPECT_EQ(answer(session(), "places"), right);
    EXPECT_EQ(use(session(), "places").hits, 0);
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
        return use(cpu, "places").hits == kRows;
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
        return use(session(), "places").hits > 0;
    }));
    EXPECT_EQ(answer(session(), "places"), right);
    expect_others_untouched();
}

TEST_F(Resident, IsCancelledWhileItWaits) {
    keep_all();
    const pid_t daemon = server().daemon();
    send_signal(daemon, SIGSTOP);
    Running call(session(), digest_of("SELECT id, place FROM places"));
    EXPECT_TRUE(reaches(session().pid(), "asking for values that gputextd keeps"));
    const auto begin = Clock::now();
    other().rows("SELECT pg_cancel_backend(" + std::to_string(session().pid()) + ")");
    EXPECT_EQ(call.wait(), "57014");
    EXPECT_LT(Milliseconds(call.end() - begin).count(), 200);
    send_signal(daemon, SIGCONT);
    expect_use("places", {kRows, 0});
    expect_nothing_left_when_forgotten();
}

TEST_F(Resident, ServesAStandbyAndItsPromotion) {
    const auto standby = PrivateServer::standby_of(server());
    standby->start();
    {
        Session reader(standby->connection());
        reader.rows("SET gputext.device = gpu");
        EXPECT_EQ(reader.value(kJob), kAnswer);  // has gputextd started
        expect_use(reader, "places", {0, kRows});
        expect_use(reader, "places", {kRows, 0});
        session().rows(
            "UPDATE places SET place = array_fill(id::real, ARRAY[600]) WHERE id % 3 = 0");
        session().rows("VACUUM places");
        const std::string written = session().value("SELECT pg_current_wal_flush_lsn()");
        ASSERT_TRUE(eventually([&] {
            return reader.value("SELECT pg_last_wal_replay_lsn() >= '" + written + "'::pg_lsn") ==
                   "t";
        }));
        expect_use(reader, "places", {kRows - kRows / 3, kRows / 3});
        EXPECT_EQ(reader.value("SELECT pg_promote()"), "t");
        expect_use(reader, "places", {kRows, 0});
        reader.rows("UPDATE places SET place = array_fill(1, ARRAY[600])::real[] WHERE id % 5 = 0");
        expect_use(reader, "places", {kRows - kRows / 5, kRows / 5});
    }
}

}  // namespace
}  // namespace gputext::live
