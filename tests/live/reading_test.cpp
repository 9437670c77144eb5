// Rows are read in parallel workers: the answer does not depend on how many there are, whatever
// the statement runs in, and nothing stays behind when it, or one of them, ends early.

#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <sstream>

#include "tests/live/interruption.hpp"
#include "tests/live/live_test.hpp"

namespace gputext::live {
namespace {

/// A session that hears what gputext says about the workers that read for it.
class ReadingSession {
public:
    explicit ReadingSession(const ConnectionString& where = {})
        : connection_(PQconnectdb(where.text.c_str())) {
        if (PQstatus(connection_) != CONNECTION_OK)
            throw std::runtime_error(PQerrorMessage(connection_));
        PQsetNoticeProcessor(connection_, take_notice, this);
        run("SET gputext.device = cpu");
        run("SET gputext.cpu_threads = 2");
        run("SET statement_timeout = '60s'");
        run("LOAD 'gputext'");
        run("SET gputext.read_workers = 4");
    }
    ~ReadingSession() { PQfinish(connection_); }
    ReadingSession(const ReadingSession&) = delete;

    int pid() const { return PQbackendPID(connection_); }

    /// As Session's, of one statement or several.
    std::string sqlstate(const std::string& sql) {
        notices_.clear();
        value_.clear();
        PQsendQuery(connection_, sql.c_str());
        bool first_error = true;
        std::string state = "ok";
        while (PGresult* result = PQgetResult(connection_)) {
            if (PQresultStatus(result) == PGRES_FATAL_ERROR && first_error) {
                const char* field = PQresultErrorField(result, PG_DIAG_SQLSTATE);
                state = field == nullptr ? "gone" : field;
                message_ = PQresultErrorMessage(result);
                first_error = false;
            }
            if (PQntuples(result) > 0) value_ = PQgetvalue(result, 0, 0);
            PQclear(result);
        }
        return state;
    }
    void run(const std::string& sql) {
        if (sqlstate(sql) != "ok") throw std::runtime_error(sql + ": " + message_);
    }
    /// The first column of the first row, of the last statement that gives any.
    std::string value(const std::string& sql) {
        run(sql);
        return value_;
    }
    /// As value(), with the messages of a DEBUG level to be counted.
    std::string watched(const std::string& sql) {
        run("SET client_min_messages = debug1");
        const std::string found = value(sql);
        const std::string heard = notices_;
        run("RESET client_min_messages");
        notices_ = heard;
        return found;
    }

    const std::string& message() const { return message_; }

    /// What the last statement said about its readings: workers that came, and that were wanted,
    /// of the one with the most.
    struct Workers {
        int came = 0, wanted = 0;
    };
    Workers workers() const {
        Workers most;
        std::istringstream lines(notices_);
        for (std::string line; std::getline(lines, line);) {
            Workers one;
            const std::size_t begin = line.find("reading rows in ");
            if (begin != std::string::npos &&
                std::sscanf(line.c_str() + begin, "reading rows in %d of %d parallel", &one.came,
                            &one.wanted) == 2 &&
                one.wanted >= most.wanted)
                most = one;
        }
        return most;
    }
    bool says(const std::string& words) const { return notices_.find(words) != std::string::npos; }

private:
    static void take_notice(void* self, const char* message) {
        static_cast<ReadingSession*>(self)->notices_ += message;
    }

    PGconn* connection_;
    std::string notices_, message_, value_;
};

/// Rows of any order as one value.
std::string digest_of(const std::string& call) {
    return "SELECT count(*) || ' ' || md5(coalesce(string_agg(t::text, ';' ORDER BY t::text), '')) "
           "FROM " +
           call + " AS t";
}

// Rows in another order than their ids: vectors out of line, and compressed texts, enough of each
// for several workers
const std::string kTables = R"(
    CREATE UNLOGGED TABLE places (id bigint, place real[]);
    ALTER TABLE places ALTER place SET STORAGE EXTERNAL;
    WITH begins AS (SELECT i, ARRAY(SELECT ((i * 31 + j * 17 + i * j) % 101)::real
                                    FROM generate_series(1, 595) AS j) AS elements
                    FROM generate_series(0, 100) AS i)
    INSERT INTO places
    SELECT n * 7919 % 15013, elements || ARRAY[n, n % 7, n % 11, n % 13, n % 17]::real[]
    FROM generate_series(1, 15000) AS n JOIN begins ON i = n % 101;
    CREATE TABLE texts AS
    SELECT i * 31 % 103 AS id,
           repeat(format('to be %s or not %s that ', i, i % 17), 4000) AS body
    FROM generate_series(1::bigint, 102) AS i)";

const char* const kSimilarities =
    "cosine_similarities(array_fill(0.5, ARRAY[600]), 'TABLE places')";
const char* const kTerms = "tfidf('TABLE texts')";
const std::string kNeighbors =
    "gpu_knn('SELECT id, place FROM places WHERE id < 3', 'TABLE places', k => 50)";

class Reading : public LiveTest {
protected:
    void SetUp() override {
        LiveTest::SetUp();
        if (HasFatalFailure()) return;
        if (oldest_ == nullptr) {
            // gputextd keeps nothing of rows that are younger than this transaction, so that each
            // statement reads them.
            oldest_ = std::make_unique<Session>();
            oldest_->rows("BEGIN");
            oldest_->rows("SELECT pg_current_xact_id()");
        }
        make("tables", kTables);
        session().rows(path());
        other().rows(path());
        reconnect();
    }
    void TearDown() override {
        reader_.reset();
        LiveTest::TearDown();
    }

    /// Tables that tests only read, in a schema of their own: to make them takes longer than most
    /// tests.
    void make(const std::string& name, const std::string& definition) {
        const std::string schema = "reading_" + name;
        if (session().value("SELECT to_regnamespace('" + schema + "')") != "NULL") return;
        session().rows("CREATE SCHEMA " + schema);
        session().rows("SET search_path = " + schema);
        session().rows(definition);
        session().rows(path());
    }
    /// The same of this test's own, which it may change.
    void copy(const std::string& table) {
        session().rows("CREATE UNLOGGED TABLE " + schema() + "." + table +
                       " (LIKE reading_tables." + table + " INCLUDING ALL)");
        session().rows("INSERT INTO " + schema() + "." + table + " TABLE reading_tables." + table);
    }
    std::string path() const {
        return "SET search_path = " + schema() +
               ", reading_tables, reading_many, reading_long, public";
    }

    std::unique_ptr<ReadingSession> connected() {
        auto reader = std::make_unique<ReadingSession>();
        reader->run(path());
        return reader;
    }
    ReadingSession& reader() { return *reader_; }
    void reconnect() { reader_ = connected(); }

    /// The answer of the session alone.
    std::string expected(const std::string& call) {
        return other().value("SET gputext.read_workers = 0; " + digest_of(call));
    }
    /// With workers, which must have come.
    void expect_same(const std::string& call) {
        EXPECT_EQ(reader().watched(digest_of(call)), expected(call)) << call;
        EXPECT_GE(reader().workers().came, 1) << call;
    }

    std::string workers_of(int pid) {
        return other().value(
            "SELECT coalesce(string_agg(pid::text, ',' ORDER BY pid), '') "
            "FROM pg_stat_activity WHERE leader_pid = " +
            std::to_string(pid) + " AND pid <> leader_pid");
    }
    void expect_nothing_left_of(ReadingSession& session, const std::string& after) {
        expect_nothing_left(session.pid(), after);
        EXPECT_EQ(workers_of(session.pid()), "") << "after " << after;
    }

private:
    static inline std::unique_ptr<Session> oldest_;
    std::unique_ptr<ReadingSession> reader_;
};

// ---- Workers ----

TEST_F(Reading, HasAsManyWorkersAsAreAskedFor) {
    const std::string calls[] = {
        kSimilarities,
        kTerms,
        kNeighbors,
        "gpu_knn('SELECT id, body FROM texts WHERE id < 5', 'TABLE texts', k => 5)",
        "near_duplicate_groups('TABLE texts', mode => 'ctph')",
        "word_cooccurrences('SELECT id, left(body, 20000) FROM texts')",
        "word_similarity('SELECT id, left(body, 20000) FROM texts')",
        "word2vec('SELECT id, left(body, 20000) FROM texts', epochs => 1, dimensions => 4)",
    };
    for (const std::string& call : calls) {
        const std::string answer = expected(call);
        for (const char* most : {"0", "1", "8"}) {
            reader().run(std::string("SET gputext.read_workers = ") + most);
            EXPECT_EQ(reader().watched(digest_of(call)), answer) << call << " with " << most;
            const auto workers = reader().workers();
            EXPECT_LE(workers.came, workers.wanted);
            const int bound = std::atoi(most);
            EXPECT_LE(workers.wanted, bound) << call;
            EXPECT_GE(workers.came, std::min(1, bound)) << call << " with " << most;
        }
        expect_nothing_left_of(reader(), call);
    }
}

TEST_F(Reading, NeedsNoWorkers) {
    const std::string answer = expected(kSimilarities);
    reader().run("SET gputext.read_workers = 8; SET max_parallel_workers = 0");
    EXPECT_EQ(reader().watched(digest_of(kSimilarities)), answer);
    EXPECT_EQ(reader().workers().wanted, 0);
    reader().run("SET gputext.read_workers = -1");
    EXPECT_EQ(reader().watched(digest_of(kSimilarities)), answer);
    EXPECT_EQ(reader().workers().wanted, 0);
}

TEST_F(Reading, OfLittleIsNotWorthAWorker) {
    reader().watched(digest_of("tfidf('SELECT id, left(body, 1000) FROM texts')"));
    EXPECT_EQ(reader().workers().wanted, 0);
    EXPECT_TRUE(reader().says("tfidf: reading rows"));
}

// ---- Where the statement runs ----

TEST_F(Reading, InASubtransactionGoesOnAfterAnError) {
    copy("places");
    copy("texts");
    session().rows("INSERT INTO texts VALUES (1000, 'the last')");
    session().rows(R"(
        CREATE FUNCTION tried(query text) RETURNS text LANGUAGE plpgsql AS $$
        DECLARE found bigint;
        BEGIN
            SELECT count(*) INTO found FROM cosine_similarities(array_fill(0.5, ARRAY[600]), query);
            RETURN found;
        EXCEPTION WHEN OTHERS THEN RETURN SQLSTATE || ' ' || SQLERRM;
        END $$)");
    session().rows("INSERT INTO places VALUES (14500, '{1,2}'), (14000, '{3}')");
    reader().run("BEGIN");
    for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(reader().watched("SELECT tried('TABLE places')"),
                  "22000 the vectors of item 1 and item 14000 have different numbers of elements: "
                  "600 and 1");
        EXPECT_GE(reader().workers().came, 1);
        EXPECT_EQ(workers_of(reader().pid()), "");
        EXPECT_EQ(reader().value("SELECT tried('SELECT * FROM places WHERE id < 14000')"),
                  other().value("SELECT count(*) FROM places WHERE id < 14000"));
        reader().run("CREATE TABLE IF NOT EXISTS written AS SELECT 1");  // no parallel mode is left
    }
    reader().run("COMMIT");
    expect_nothing_left_of(reader(), "errors in subtransactions");
}

TEST_F(Reading, InASerializableTransaction) {
    copy("texts");
    reader().run("BEGIN ISOLATION LEVEL SERIALIZABLE");
    expect_same(kSimilarities);
    expect_same(kTerms);
    reader().run("INSERT INTO texts VALUES (5000, 'new')");
    reader().run("COMMIT");
}

TEST_F(Reading, InACursor) {
    const std::string answer = expected(kNeighbors);
    reader().run("BEGIN");
    reader().run("DECLARE answer CURSOR FOR " + digest_of(kNeighbors));
    EXPECT_EQ(reader().watched("FETCH answer"), answer);
    EXPECT_GE(reader().workers().came, 1);
    reader().run("DECLARE held CURSOR WITH HOLD FOR SELECT count(*) FROM " + kNeighbors);
    reader().run("DECLARE half CURSOR FOR SELECT * FROM " + kNeighbors);
    reader().run("FETCH 10 FROM half; SAVEPOINT one; CLOSE half; ROLLBACK TO one");
    reader().run("COMMIT");
    EXPECT_EQ(reader().value("FETCH held"), other().value("SELECT count(*) FROM " + kNeighbors));
    reader().run("CLOSE held");
    expect_nothing_left_of(reader(), "cursors");
}

TEST_F(Reading, SeesWhatTheTransactionHasWritten) {
    reader().run("BEGIN");
    reader().run("CREATE TABLE fresh (LIKE places INCLUDING ALL)");
    reader().run("INSERT INTO fresh SELECT id, place FROM places");
    reader().run("UPDATE fresh SET place[1] = 1000 WHERE id % 3 = 0");
    reader().run(
        "SAVEPOINT one; UPDATE fresh SET place[2] = 2000 WHERE id % 5 = 0; "
        "ROLLBACK TO one");
    reader().run("DELETE FROM fresh WHERE id % 7 = 0");
    const std::string call = "cosine_similarities(array_fill(0.5, ARRAY[600]), 'TABLE fresh')";
    const std::string found = reader().watched(digest_of(call));
    EXPECT_GE(reader().workers().came, 1);
    reader().run("COMMIT");
    EXPECT_EQ(found, expected(call));
    EXPECT_EQ(found, expected("cosine_similarities(array_fill(0.5, ARRAY[600]), $$SELECT id, CASE "
                              "WHEN id % 3 = 0 THEN 1000::real || place[2:] ELSE place END "
                              "FROM places WHERE id % 7 <> 0$$)"));
}

TEST_F(Reading, OfATemporaryTable) {
    reader().run("CREATE TEMP TABLE mine (LIKE places INCLUDING ALL)");
    reader().run("INSERT INTO mine TABLE places");
    reader().run("CREATE TEMP TABLE my_texts AS TABLE texts");
    EXPECT_EQ(reader().watched(digest_of("tfidf('TABLE my_texts')")), expected(kTerms));
    EXPECT_GE(reader().workers().came, 1);
    EXPECT_EQ(reader().value(digest_of("cosine_similarities(array_fill(0.5, ARRAY[600]), "
                                       "'TABLE mine')")),
              expected(kSimilarities));
}

TEST_F(Reading, UnderRowLevelSecurity) {
    copy("places");
    copy("texts");
    const std::string alice = new_role("alice");
    session().rows("GRANT SELECT ON places TO " + alice);
    session().rows("ALTER TABLE places ENABLE ROW LEVEL SECURITY");
    session().rows("CREATE POLICY even ON places TO " + alice + " USING (id % 2 = 0)");
    session().rows(
        "CREATE FUNCTION all_of_them() RETURNS text LANGUAGE sql SECURITY DEFINER "
        "SET gputext.read_workers = 3 AS $$" +
        digest_of(kSimilarities) + "$$");
    const std::string all = expected(kSimilarities);
    const std::string even = expected(
        "cosine_similarities(array_fill(0.5, ARRAY[600]), 'SELECT * FROM places WHERE id % 2 = "
        "0')");
    reader().run("SET ROLE " + alice);
    EXPECT_EQ(reader().watched(digest_of(kSimilarities)), even);
    EXPECT_GE(reader().workers().came, 1);
    EXPECT_EQ(reader().watched("SELECT all_of_them()"), all);
    EXPECT_GE(reader().workers().came, 1);
    EXPECT_LE(reader().workers().wanted, 3);
    EXPECT_EQ(reader().value(digest_of(kSimilarities)), even);
    EXPECT_EQ(reader().sqlstate(digest_of(kTerms)), "42501");
}

// Values that a function gives, and whose table it empties before they are read
TEST_F(Reading, OfWhatAFunctionTakesAway) {
    copy("texts");
    session().rows("CREATE TABLE numbers AS SELECT id FROM texts");
    session().rows("ALTER TABLE texts ALTER body SET STORAGE EXTERNAL");
    session().rows("UPDATE texts SET body = body || 'or not'");
    session().rows(R"(
        CREATE FUNCTION taken(number bigint) RETURNS text LANGUAGE plpgsql AS $$
        DECLARE found text;
        BEGIN
            SELECT body INTO found FROM texts WHERE id = number;
            IF number = 102 THEN found := found || ''; TRUNCATE texts; END IF;
            RETURN found;
        END $$)");
    const std::string same = expected(kTerms);
    reader().run("BEGIN");
    EXPECT_EQ(reader().watched(digest_of("tfidf('SELECT id, taken(id) FROM numbers ORDER BY id')")),
              same);
    EXPECT_GE(reader().workers().came, 1);
    EXPECT_EQ(reader().value("SELECT count(*) FROM texts"), "0");
    reader().run("ROLLBACK");
}

// ---- Pages of TOAST tables ----

/// Partitions with vectors out of line, in another order than that of their ids, and dead ones
/// between them; some are compressed, and some have a header of their own.
const char* const kScattered = R"(
    CREATE TABLE scattered (id bigint, place real[], part int) PARTITION BY LIST (part);
    CREATE TABLE scattered_1 PARTITION OF scattered FOR VALUES IN (1);
    CREATE TABLE scattered_2 PARTITION OF scattered FOR VALUES IN (2);
    ALTER TABLE scattered_1 ALTER place SET STORAGE EXTERNAL;
    ALTER TABLE scattered_2 ALTER place SET STORAGE EXTERNAL;
    INSERT INTO scattered SELECT id, place, 1 + id % 2 FROM places;
    UPDATE scattered SET place[2] = id WHERE id % 5 = 0;
    DELETE FROM scattered WHERE id % 7 = 1;
    UPDATE scattered SET part = 3 - part WHERE id % 11 = 0;
    UPDATE scattered SET place = ('[-3:596]=' || place::text)::real[] WHERE id % 13 = 0;
    ALTER TABLE scattered_1 ALTER place SET STORAGE EXTENDED;
    UPDATE scattered_1 SET place = array_fill(id, ARRAY[600]) WHERE id % 17 = 0)";

std::string similarities_of(const std::string& rows) {
    return "cosine_similarities(array_fill(0.5, ARRAY[600]), 'SELECT id, " + rows + "')";
}

TEST_F(Reading, OfPagesOfToastTables) {
    session().rows(kScattered);
    for (const std::string rows : {" FROM scattered", " FROM scattered WHERE id % 8 < 5",
                                   " FROM scattered WHERE part = 2 ORDER BY md5(id::text)"}) {
        // An expression makes the same vectors in the session.
        const std::string made = expected(similarities_of("place || ''{}''::real[]" + rows));
        const std::string call = digest_of(similarities_of("place" + rows));
        for (const char* most : {"4", "0"}) {
            reader().run(std::string("SET gputext.read_workers = ") + most);
            EXPECT_EQ(reader().watched(call), made) << rows;
            EXPECT_TRUE(reader().says("pages of TOAST tables")) << rows;
            EXPECT_GE(reader().workers().came, std::min(1, std::atoi(most))) << rows;
        }
    }
    expect_nothing_left_of(reader(), "pages");
}

TEST_F(Reading, OfFewValuesOrOfOneAgainTakesNoPages) {
    for (const char* rows :
         {"place FROM places WHERE id % 20 = 0", "place FROM places, generate_series(1, 4)"}) {
        EXPECT_EQ(reader().watched(digest_of(similarities_of(rows))),
                  expected(similarities_of(rows)));
        EXPECT_FALSE(reader().says("pages of TOAST tables")) << rows;
    }
}

/// Its pages may be of another form than a heap's, and so may those of its TOAST table.
TEST_F(Reading, OfATableOfAnotherAccessMethodTakesNoPages) {
    session().rows("DROP ACCESS METHOD IF EXISTS other_heap CASCADE");
    session().rows("CREATE ACCESS METHOD other_heap TYPE TABLE HANDLER heap_tableam_handler");
    session().rows("CREATE TABLE others (LIKE places INCLUDING STORAGE) USING other_heap");
    session().rows("INSERT INTO others TABLE places");
    EXPECT_EQ(session().value("SELECT amname FROM pg_class AS c JOIN pg_class AS t ON t.oid = "
                              "c.reltoastrelid JOIN pg_am AS a ON a.oid = t.relam WHERE c.oid = "
                              "'others'::regclass"),
              "other_heap");
    for (const auto& [table, takes_pages] :
         {std::pair("places", true), std::pair("others", false)}) {
        EXPECT_EQ(reader().watched(digest_of(similarities_of(std::string("place FROM ") + table))),
                  expected(kSimilarities));
        EXPECT_EQ(reader().says("pages of TOAST tables"), takes_pages) << table;
    }
    session().rows("DROP ACCESS METHOD other_heap CASCADE");
}

TEST_F(Reading, OfPagesTellsWhichVectorIsWrong) {
    copy("places");
    const std::pair<const char*, const char*> changes[] = {
        {"place[600] = 'NaN'", "item 700 has an element that is NaN or infinite"},
        {"place[1] = '-Infinity'", "item 700 has an element that is NaN or infinite"},
        {"place[300] = NULL", "item 700 has an element that is null"},
        {"place = place || 1::real", "different numbers of elements: 600 and 601"},
        // As large as the others
        {"place = (SELECT array_agg(ARRAY[i, i]) FROM generate_series(1, 299) AS i)::real[]",
         "item 700 is an array of several dimensions"},
    };
    for (const auto& [change, message] : changes) {
        reader().run("BEGIN");
        reader().run(std::string("UPDATE places SET ") + change + " WHERE id IN (700, 9000)");
        reader().run("SET LOCAL client_min_messages = debug1");
        EXPECT_NE(reader().sqlstate(digest_of(kSimilarities)), "ok") << change;
        EXPECT_NE(reader().message().find(message), std::string::npos) << reader().message();
        EXPECT_TRUE(reader().says("2 of 15000 vectors are not in them as usual")) << change;
        reader().run("ROLLBACK");
    }
    expect_nothing_left_of(reader(), "wrong vectors");
}

/// Documents within their rows, plain and compressed, for several workers; those of `copied` are
/// made by an expression, and so are copied in the session.
const char* const kPages = R"(
    CREATE TABLE pages AS
    SELECT i * 31 % 4001 AS id, CASE WHEN i % 2 = 0 THEN t ELSE repeat(left(t, 700), 20) END AS body
    FROM generate_series(1::bigint, 4000) AS i,
         LATERAL (SELECT string_agg(md5((i / 4 * 1000 + j)::text), ' ')
                  FROM generate_series(1, 40) AS j) AS made(t);
    INSERT INTO pages VALUES (9000, NULL), (9001, ''), (9002, 'short');
    ANALYZE pages;
    CREATE VIEW copied AS SELECT id, body || '' AS body FROM pages)";

/// The call, of another table in place of each %.
std::string call_of(std::string call, const std::string& table) {
    for (std::size_t at; (at = call.find('%')) != std::string::npos;) call.replace(at, 1, table);
    return digest_of(call);
}

const std::string kPageCalls[] = {
    "near_duplicates('TABLE %', mode => 'ctph')",
    "near_duplicate_groups('SELECT id, body::varchar FROM % ORDER BY id DESC', mode => 'ctph')",
    "near_duplicates_between('SELECT * FROM % WHERE id < 50', 'TABLE %', mode => 'ctph')",
};

void expect_same_where_copied(ReadingSession& reader) {
    for (const std::string& call : kPageCalls) {
        const std::string answer = reader.watched(call_of(call, "pages"));
        EXPECT_GE(reader.workers().came, 1) << call;
        EXPECT_EQ(answer, reader.value(call_of(call, "copied"))) << call;
    }
}

TEST_F(Reading, OfDocumentsWithinTheirRows) {
    session().rows(kPages);
    expect_same_where_copied(reader());
    expect_nothing_left_of(reader(), "documents within their rows");
}

// The second query calls a function that empties the table in which documents of the first lie.
TEST_F(Reading, OfDocumentsThatTheSecondQueryTakesAway) {
    session().rows(kPages);
    session().rows("CREATE TABLE others AS SELECT id + 10000 AS id, body FROM pages WHERE id < 40");
    session().rows(R"(
        CREATE FUNCTION emptied(number bigint) RETURNS boolean LANGUAGE plpgsql AS $$
        BEGIN IF number = 10020 THEN TRUNCATE pages; END IF; RETURN true; END $$)");
    const std::string between =
        "near_duplicates_between('TABLE %', 'SELECT * FROM others WHERE emptied(id)', mode => "
        "'ctph')";
    const std::string same = other().value(
        call_of("near_duplicates_between('TABLE %', 'TABLE others', mode => 'ctph')", "copied"));
    reader().run("BEGIN");
    EXPECT_EQ(reader().value(call_of(between, "pages")), same);
    EXPECT_EQ(reader().value("SELECT count(*) FROM pages"), "0");
    reader().run("ROLLBACK");
}

TEST_F(Reading, WithinOneAnother) {
    copy("places");
    expect_same(
        "gpu_knn('SELECT id, place FROM places WHERE id < 4', $$SELECT p.id, p.place FROM "
        "places AS p JOIN cosine_similarities(array_fill(0.5, ARRAY[600]), 'TABLE places') "
        "AS s ON s.id = p.id$$, k => 3)");
    reader().run(
        "SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; "
        "SET min_parallel_table_scan_size = 0; ALTER TABLE places SET (parallel_workers = 2)");
    expect_same(kSimilarities);
    const std::string forced = std::stoi(other().value("SHOW server_version_num")) >= 160000
                                   ? "debug_parallel_query"
                                   : "force_parallel_mode";
    for (const char* mode : {"on", "regress"}) {
        reader().run("SET " + forced + " = " + mode);
        expect_same(kSimilarities);
        expect_same(kTerms);
        // A function that is said to be safe in a worker, and reads rows there
        reader().run(
            "CREATE OR REPLACE FUNCTION digest() RETURNS text LANGUAGE plpgsql PARALLEL "
            "SAFE AS $$ DECLARE found text; BEGIN " +
            digest_of(kTerms).replace(0, 6, "SELECT INTO found") + "; RETURN found; END $$");
        EXPECT_EQ(reader().value("SELECT digest()"), expected(kTerms)) << mode;
    }
}

// ---- Rows in bundles ----

/// Many rows, such that workers scan the table and hand its rows on in bundles.
const std::string kMany = R"(
    CREATE TABLE many AS
    SELECT i * 7919 % 100003 AS id, i % 1000 AS key,
           ARRAY[i % 101, i % 103, i % 107, i % 109, i % 113, i % 127]::real[] AS v, repeat('x', 200) AS rest
    FROM generate_series(1::bigint, 100000) AS i;
    ANALYZE many)";
const std::string kOfMany =
    "gpu_knn('SELECT id, v, key FROM many WHERE id < 50', 'SELECT id, v, key FROM many', k => 3)";

class Bundled : public Reading {
protected:
    void SetUp() override {
        Reading::SetUp();
        if (HasFatalFailure()) return;
        make("many", kMany);
        reader().run("SET gputext.read_workers = 2");
    }
    void expect_bundles(const std::string& call, const std::string& answer) {
        ASSERT_EQ(reader().watched(digest_of(call)), answer) << call;
        EXPECT_TRUE(reader().says("bundled rows in 1 of") || reader().says("bundled rows in 2 of"))
            << call;
    }
};

TEST_F(Bundled, AreRead) {
    expect_bundles(kOfMany, expected(kOfMany));
    reader().run("SET max_parallel_workers = 0");
    EXPECT_EQ(reader().watched(digest_of(kOfMany)), expected(kOfMany));
    EXPECT_FALSE(reader().says("bundled rows in "));
}

TEST_F(Bundled, AreReducedForAMerge) {
    for (const char* rows :
         {"SELECT key, id, (id % 977)::float8 FROM many",
          "SELECT key, id, (id % 977)::float8 FROM many WHERE id >= 10",
          "SELECT key, id, 1::float8 FROM many UNION ALL SELECT key, id + 1000000, 2::float8 FROM "
          "many",
          "SELECT m.key, n.id, m.v[1]::float8 FROM many AS m JOIN many AS n USING (id)"}) {
        const std::string call = "knn_merge('" + std::string(rows) + "', k => 3)";
        reader().run("SET gputext.read_workers = 0");
        const std::string answer = reader().watched(digest_of(call));
        EXPECT_FALSE(reader().says("reduced rows in ")) << call;
        reader().run("SET gputext.read_workers = 2");
        EXPECT_EQ(reader().watched(digest_of(call)), answer) << call;
        EXPECT_TRUE(reader().says("reduced rows in 1 of") || reader().says("reduced rows in 2 of"))
            << call;
        expect_nothing_left_of(reader(), call.c_str());
    }
}

TEST_F(Bundled, WhereverAStatementRuns) {
    const std::string answer = expected(kOfMany);
    reader().run("BEGIN ISOLATION LEVEL SERIALIZABLE");
    expect_bundles(kOfMany, answer);
    reader().run("SAVEPOINT one");
    EXPECT_EQ(
        reader().sqlstate("SELECT count(*) FROM gpu_knn('SELECT id, v FROM many WHERE id < 5', "
                          "'SELECT id / (id - 777), v FROM many', k => 3)"),
        "22012");
    EXPECT_EQ(workers_of(reader().pid()), "");
    reader().run("ROLLBACK TO one");
    expect_bundles(kOfMany, answer);
    reader().run("DECLARE answer CURSOR FOR " + digest_of(kOfMany));
    EXPECT_EQ(reader().watched("FETCH answer"), answer);
    EXPECT_TRUE(reader().says("bundled rows in "));
    // Other tests have fewer rows from here on.
    reader().run("DELETE FROM many WHERE id >= 50 AND key = 7");
    expect_bundles(kOfMany, expected("gpu_knn('SELECT id, v, key FROM many WHERE id < 50', 'SELECT "
                                     "id, v, key FROM many WHERE id < 50 OR key <> 7', k => 3)"));
    reader().run("COMMIT");
    expect_nothing_left_of(reader(), "bundles in a transaction");
}

TEST_F(Bundled, BesideOtherParallelWork) {
    reader().run(
        "SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; "
        "SET min_parallel_table_scan_size = 0");
    expect_bundles(
        "gpu_knn('SELECT id, v FROM many WHERE id < 50', $$SELECT m.id, m.v FROM many AS m "
        "JOIN many AS n USING (id)$$, k => 3)",
        expected("gpu_knn('SELECT id, v FROM many WHERE id < 50', 'SELECT id, v FROM many', "
                 "k => 3)"));
    EXPECT_EQ(reader().value("SELECT count(*) FROM many AS m WHERE id IN (SELECT item_id FROM " +
                             kOfMany + ")"),
              other().value("SELECT count(DISTINCT item_id) FROM " + kOfMany));
}

// ---- Locks ----

TEST_F(Reading, KeepsTheTableFromBeingChanged) {
    copy("places");
    reader().run("BEGIN");
    expect_same(kSimilarities);
    other().rows("SET lock_timeout = '50ms'");
    for (const char* statement : {"DROP TABLE places", "TRUNCATE places", "VACUUM FULL places",
                                  "ALTER TABLE places ALTER place TYPE double precision[]"})
        EXPECT_EQ(other().sqlstate(statement), "55P03") << statement;
    other().rows("RESET lock_timeout");  // autovacuum may have the table for a while
    other().rows("UPDATE places SET place = place || 1::real");
    other().rows("VACUUM places");
    EXPECT_EQ(reader().sqlstate(digest_of(kSimilarities)), "22000");  // of 49 elements now
    reader().run("ROLLBACK");
    other().rows("VACUUM FULL places");
}

// ---- Ends before the end ----

/// Texts that take long to parse, however fast the machine is: each has a word of its own, which
/// the dictionary of the configuration "slow" waits for (tests/module/parser_checks.cpp). Their
/// words are such that PostgreSQL's parser, which hears of interrupts, has nothing to do.
const std::string kSlowTexts = R"(
    CREATE FUNCTION slow_lexize(internal, internal, internal, internal) RETURNS internal
    STRICT LANGUAGE c AS 'gputext', 'gputext_slow_lexize';
    CREATE TEXT SEARCH TEMPLATE slow (LEXIZE = slow_lexize);
    CREATE TEXT SEARCH DICTIONARY slow (TEMPLATE = slow);
    CREATE TEXT SEARCH CONFIGURATION slow (COPY = pg_catalog.simple);
    ALTER TEXT SEARCH CONFIGURATION slow ALTER MAPPING FOR asciiword WITH slow;
    CREATE UNLOGGED TABLE slow_texts AS
    SELECT i AS id, translate(i::text, '0123456789', 'abcdefghij') || ' ' || repeat('to be or not ', 300) AS body
    FROM generate_series(1::bigint, 6000) AS i)";
const std::string kSlowTerms =
    "tfidf('SELECT id, body || body FROM slow_texts', 'slow'::regconfig)";

/// A statement whose workers read for at least ten seconds, and one that they read for without
/// delay.
struct LongReading {
    const char* name;
    std::string slow, quick;
};

void PrintTo(const LongReading& reading, std::ostream* out) {
    *out << reading.name;
}

class Ended : public Reading, public ::testing::WithParamInterface<LongReading> {
protected:
    void SetUp() override {
        Reading::SetUp();
        if (HasFatalFailure()) return;
        make("long", kSlowTexts);
        make("many", kMany);
    }

    /// Waits until workers read for the session.
    bool reading(Running& statement) {
        return eventually(
                   [&] { return statement.done() || !workers_of(reader().pid()).empty(); }) &&
               !statement.done();
    }

    /// Interrupts the statement so long after its workers have begun; returns as Control's.
    double interrupt(Clock::duration place, const std::string& interruption,
                     const std::vector<std::string>& states) {
        Control control;
        Running statement(reader(), digest_of(GetParam().slow));
        EXPECT_TRUE(reading(statement)) << "no workers, and " << statement.wait();
        std::this_thread::sleep_for(place);
        const double late = control.interrupt(other(), statement, interruption);
        EXPECT_NE(std::find(states.begin(), states.end(), statement.wait()), states.end())
            << statement.wait() << ' ' << reader().message();
        return late;
    }

    /// At several places of the reading.
    void expect_ends(const std::string& interruption, const std::vector<std::string>& states,
                     const std::string& after) {
        for (const auto place : {0ms, 70ms, 200ms}) {
            expect_in_time([&] {
                const double late = interrupt(place, interruption, states);
                expect_nothing_left_of(reader(), after);
                return late;
            });
            if (HasFailure()) return;  // the statement may take half a minute each time
        }
    }
    void expect_goes_on() {
        EXPECT_EQ(reader().value(digest_of(GetParam().quick)), expected(GetParam().quick));
    }
};

TEST_P(Ended, ByACancel) {
    expect_ends("pg_cancel_backend(" + std::to_string(reader().pid()) + ")", {"57014"}, "a cancel");
    expect_goes_on();
}

// The times are such that some are before there are workers, and the last one is when they read.
TEST_P(Ended, ByATimeout) {
    bool has_read = false;
    for (auto timeout = 100ms; !has_read && timeout < 10s && !HasFailure(); timeout *= 2) {
        reader().run("SET statement_timeout = " + std::to_string(timeout.count()));
        expect_in_time([&] {
            Control control({}, timeout);
            Running statement(reader(), digest_of(GetParam().slow));
            has_read = reading(statement) || has_read;
            EXPECT_EQ(statement.wait(), "57014") << reader().message();
            expect_nothing_left_of(reader(), "a timeout");
            return control.time_out(statement);
        });
    }
    EXPECT_TRUE(has_read);
    reader().run("SET statement_timeout = '60s'");
    expect_goes_on();
}

TEST_P(Ended, ByTheEndOfAWorker) {
    expect_ends("(SELECT pg_terminate_backend(min(pid)) FROM pg_stat_activity WHERE leader_pid = " +
                    std::to_string(reader().pid()) + " AND pid <> leader_pid)",
                {"57P01"}, "the end of a worker");
    expect_goes_on();
}

TEST_P(Ended, ByTheEndOfTheSession) {
    expect_in_time([&] {
        const int pid = reader().pid();
        const double late =
            interrupt(0ms, "pg_terminate_backend(" + std::to_string(pid) + ")", {"57P01", "gone"});
        EXPECT_TRUE(eventually([&] { return workers_of(pid).empty(); }));
        EXPECT_TRUE(eventually([&] { return temporary_files(pid).empty(); }));
        reconnect();
        return late;
    });
    expect_goes_on();
}

INSTANTIATE_TEST_SUITE_P(
    While, Ended,
    ::testing::Values(LongReading{"ParsingTexts", kSlowTerms, kTerms},
                      LongReading{
                          "BundlingRows",
                          "gpu_knn('SELECT id, v FROM many WHERE id < 5', "
                          "'SELECT id, v FROM many WHERE pg_sleep(0.001) IS NOT NULL', k => 3)",
                          kOfMany}),
    [](const auto& test) { return std::string(test.param.name); });

// Several sessions share the server's workers, and some go without.
TEST_F(Reading, InManySessions) {
    const std::string answer = expected(kTerms);
    std::vector<std::unique_ptr<ReadingSession>> sessions;
    std::vector<std::unique_ptr<Running>> running;
    const std::string check = "DO $$ BEGIN FOR i IN 1..3 LOOP IF (" + digest_of(kTerms) + ") <> '" +
                              answer + "' THEN RAISE 'another answer'; END IF; END LOOP; END $$";
    for (int i = 0; i < 4; ++i) {
        sessions.push_back(connected());
        running.push_back(std::make_unique<Running>(*sessions.back(), check));
    }
    for (std::size_t i = 0; i < running.size(); ++i) {
        EXPECT_EQ(running[i]->wait(), "ok") << sessions[i]->message();
        expect_nothing_left_of(*sessions[i], "its statement among others");
    }
}

// ---- Other servers ----

const std::string kExtension = "CREATE EXTENSION gputext; ";

TEST(ReadingElsewhere, WithoutAWorkerToSpare) {
    PrivateServer server("max_worker_processes = 0\n");
    server.start();
    ReadingSession reader(server.connection());
    reader.run(kExtension + kTables);
    for (const std::string call : {kSimilarities, kTerms}) {
        const std::string answer = reader.watched(digest_of(call));
        EXPECT_EQ(reader.workers().came, 0);
        EXPECT_GE(reader.workers().wanted, 1) << call;
        reader.run("SET gputext.read_workers = 0");
        EXPECT_EQ(reader.value(digest_of(call)), answer);
        reader.run("SET gputext.read_workers = 4");
    }
}

// Each worker has a file of the session's, which has most of its descriptors open for its tables.
TEST(ReadingElsewhere, BesideManyOpenTables) {
    rlimit usual;
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &usual), 0);
    rlimit few = usual;
    few.rlim_cur = 324;
    PrivateServer server(
        "max_worker_processes = 4\nmax_parallel_workers = 64\n"
        "max_files_per_process = 300\n");
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
    server.start();
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &usual), 0);
    ReadingSession reader(server.connection());
    reader.run(kExtension + kTables);
    reader.run(
        "CREATE TABLE many (id bigint) PARTITION BY RANGE (id);"
        "DO $$ BEGIN FOR i IN 1..400 LOOP EXECUTE format('CREATE TABLE many_%s PARTITION OF many "
        "FOR VALUES FROM (%s) TO (%s)', i, i, i + 1); END LOOP; END $$;"
        "INSERT INTO many SELECT generate_series(1, 400)");
    reader.run("SET gputext.read_workers = 63");
    for (const std::string& call :
         {std::string("tfidf('SELECT id, repeat(body, 3) FROM texts')"),
          std::string("cosine_similarities(array_fill(0.5, ARRAY[600]), 'SELECT id + 20000 * i, "
                      "place FROM places, generate_series(1, 4) AS i')")}) {
        EXPECT_EQ(reader.value("SELECT count(*) FROM many"), "400");
        const std::string answer = reader.watched(digest_of(call));
        EXPECT_GE(reader.workers().wanted, 12) << call;
        reader.run("SET gputext.read_workers = 0");
        EXPECT_EQ(reader.value(digest_of(call)), answer);
        reader.run("SET gputext.read_workers = 63");
    }
}

TEST(ReadingElsewhere, OfDocumentsWithinTheirRowsWhereNothingIsKept) {
    PrivateServer server("gputext.resident_memory = 0\n");
    server.start();
    ReadingSession reader(server.connection());
    reader.run(kExtension + kPages);
    expect_same_where_copied(reader);
}

TEST(ReadingElsewhere, OnAStandby) {
    PrivateServer server;
    server.start();
    ReadingSession primary(server.connection());
    std::string logged = kTables;
    while (logged.find("UNLOGGED ") != std::string::npos)
        logged.erase(logged.find("UNLOGGED "), std::strlen("UNLOGGED "));
    primary.run(kExtension + logged);
    const auto standby = PrivateServer::standby_of(server);
    standby->start();
    ReadingSession reader(standby->connection());
    EXPECT_EQ(reader.value("SELECT pg_is_in_recovery()"), "t");
    for (const std::string call : {kSimilarities, kTerms}) {
        EXPECT_EQ(reader.watched(digest_of(call)), primary.value(digest_of(call)));
        EXPECT_GE(reader.workers().came, 1) << call;
    }
    EXPECT_EQ(foreign_descriptors(reader.pid()), std::vector<std::string>());
}

// The postmaster ends all sessions when a worker is killed, as for any other process.
TEST(ReadingElsewhere, WithAWorkerThatIsKilled) {
    PrivateServer server("restart_after_crash = on\n");
    server.start();
    std::string answer;
    {
        ReadingSession reader(server.connection());
        reader.run(kExtension + kTables + ";" + kSlowTexts + "; CHECKPOINT");
        answer = reader.value(digest_of(kTerms));
        Session other(server.connection());
        const std::string worker =
            "SELECT coalesce(min(pid), 0) FROM pg_stat_activity WHERE "
            "leader_pid = " +
            std::to_string(reader.pid()) + " AND pid <> leader_pid";
        Running statement(reader, digest_of(kSlowTerms));
        pid_t pid = 0;
        ASSERT_TRUE(eventually([&] {
            pid = std::stoi(other.value(worker));
            return pid != 0 || statement.done();
        }));
        ASSERT_NE(pid, 0);
        send_signal(pid, SIGKILL);
        const std::string state = statement.wait();
        EXPECT_TRUE(state == "57P02" || state == "gone") << state;
    }
    EXPECT_TRUE(eventually([&] { return PQping(server.connection().text.c_str()) == PQPING_OK; }));
    ReadingSession reader(server.connection());
    EXPECT_EQ(reader.watched(digest_of(kTerms)), answer);
    EXPECT_GE(reader.workers().came, 1);
}

}  // namespace
}  // namespace gputext::live
