// Many short histories of small tables: whatever sessions do to a table, answers of rows that a
// session or gputextd remembers are those of a scan. The long histories of single kinds are in
// changed_rows_test.cpp and beside it.
//
// GPUTEXT_HISTORIES says how many there are, and GPUTEXT_TEST_SEED gives others.

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <thread>
#include <vector>

#include "tests/live/dice.hpp"
#include "tests/live/resident_use.hpp"
#include "tests/support/test_size.hpp"

namespace gputext::live {
namespace {

/// A statement whose answer may be of remembered rows, and one whose answer is not, each with a
/// value of gputext.plan_nearest.
struct Question {
    std::string asked, right, asked_with, right_with;

    std::string answer(Session& session) const { return answer(session, asked, asked_with); }
    std::string expected(Session& session) const { return answer(session, right, right_with); }

private:
    static std::string answer(Session& session, const std::string& query, const std::string& with) {
        session.rows("SET gputext.plan_nearest = " + with);
        return session.value(query);
    }
};

/// A table places(id, kind, name, place), and what is asked of it.
struct Kind {
    std::string name;
    std::string type;     // of places.place
    std::string made;     // its value by a number, an expression
    std::string storage;  // of the column
    std::string same;     // the value of `place` as one without a pointer, which nobody keeps
    unsigned likely;      // in proportion to the others
    int rows;
    bool unlogged = false;
    bool text = false;
};

constexpr int kMade = 300;  // different values
constexpr const char* kNoLimit = "100000";

std::string numbers(int count, int modulus) {
    return "(SELECT array_agg((i * 31 + j * 17 + i * j) % " + std::to_string(modulus) +
           ") FROM generate_series(1, " + std::to_string(count) + ") AS j)::real[]";
}

std::vector<Kind> kinds(bool with_pgvector) {
    const std::string reals = "place || '{}'::real[]", text = "place || ''";
    const std::string words =
        "(SELECT string_agg('w' || (i * j * j + 7 * j) % 97, ' ') FROM generate_series(1, ";
    const std::string few =
        "(SELECT array_agg(1 + abs(hashint4(i * 1000 + j)::bigint) % 4) FROM generate_series(1, "
        "600) AS j)::real[]";
    std::vector<Kind> all{
        {"real[] out of line", "real[]", numbers(530, 101), "EXTERNAL", reals, 20, 50},
        {"real[] in rows", "real[]", numbers(60, 101), "PLAIN", reals, 14, 70},
        {"real[] compressed", "real[]", few, "EXTENDED", reals, 8, 50},
        {"real[] unlogged", "real[]", numbers(530, 101), "EXTERNAL", reals, 12, 50, true},
        {"real[], many rows", "real[]", numbers(530, 101), "EXTERNAL", reals, 1, 1300},
        {"texts out of line", "text", words + "560) AS j)", "EXTERNAL", text, 8, 40, false, true},
        {"texts in rows", "text", words + "60) AS j)", "MAIN", text, 8, 40, false, true},
        {"tsvector", "tsvector", "to_tsvector('simple', " + words + "60) AS j))", "EXTERNAL",
         "place || ''::tsvector", 4, 40, false, true},
    };
    if (with_pgvector)
        for (const std::string type : {"vector", "halfvec"}) {
            const std::string same = "(place::real[] || '{}'::real[])::" + type;
            const int in_rows = type == "vector" ? 60 : 120, longer = type == "vector" ? 530 : 1060;
            all.push_back({type + " out of line", type + "(" + std::to_string(longer) + ")",
                           numbers(longer, 101) + "::" + type, "EXTERNAL", same, 8, 50});
            all.push_back({type + " in rows", type + "(" + std::to_string(in_rows) + ")",
                           numbers(in_rows, 101) + "::" + type, "PLAIN", same, 8, 70});
        }
    return all;
}

std::string digest_of(const std::string& set) {
    return "SELECT count(*) || ' ' || coalesce(sum(hashtextextended(s::text, 0)), 0) FROM " + set +
           " AS s";
}

/// Calls of functions on these inner queries; `place` is in the place of the value.
std::vector<Question> questions_by_function(const Kind& kind) {
    std::vector<Question> all;
    const auto add = [&](const std::string& before, const std::string& items,
                         const std::string& behind, bool with_themselves = false) {
        const auto query = [&](const std::string& value) {
            const std::string inner = "$$SELECT id, " + value;
            return digest_of(before + (with_themselves ? inner + " FROM places$$, " : "") + inner +
                             items + "$$" + behind + ")");
        };
        all.push_back({query("place"),
                       query("CASE WHEN place IS NOT NULL THEN " + kind.same + " END"), "off",
                       "off"});
    };
    const std::string from = " FROM places";
    if (kind.text) {
        const std::string asked = "gpu_knn($$SELECT id, place FROM asked$$, ";
        const std::string config = "config => 'simple'";
        add(asked, from, ", 3, " + config);
        add(asked, from + " WHERE kind <> 1", ", 1000, " + config);
        add(asked, from, ", 3, metric => 'bm25', " + config);
        add("gpu_knn_within($$SELECT id, place FROM asked$$, ", from, ", 0.7, " + config);
        add("tfidf(", from, ", " + config);
        if (kind.type != "text") return all;
        add(asked, from, ", 3, metric => 'edit_rate'");
        add("near_duplicates(", from, ", threshold => 0.2");
        return all;
    }
    const std::string asked = "gpu_knn($$SELECT id, place FROM asked$$, ";
    add(asked, from, ", 3");
    add(asked, from, std::string(", ") + kNoLimit);
    add(asked, from + " WHERE kind <> 1", std::string(", ") + kNoLimit);
    add(asked, from + " WHERE kind = 1", ", 4, 'euclidean'");
    add(asked, from, ", 3, 'euclidean', exclude_self => true");
    add("gpu_knn(", from, ", 2, exclude_self => true", true);
    add("gpu_knn_within($$SELECT id, place FROM asked$$, ", from, ", 0.1");
    const std::string by_kind = "gpu_knn($$SELECT id, place, kind FROM asked$$, ";
    const std::string by_name = "gpu_knn($$SELECT id, place, name FROM asked$$, ";
    add(by_kind, ", kind FROM places", ", 3");
    add(by_kind, ", kind FROM places WHERE kind <> 2", ", 3, exclude_key => true");
    add(by_name, ", name FROM places", ", 100");
    add(by_name, ", name FROM places", ", 2, exclude_key => true");
    if (kind.type == "real[]")
        add("cosine_similarities((SELECT place FROM asked WHERE id = 1), ", from, "");
    return all;
}

/// The nearest rows in plain SQL, or all of them without a limit. Of rows that are equally far it
/// is not known which come. So the answer has the distances, and whether each row has its vector
/// and fulfils the condition; of all rows, their ids, too.
Question in_plain_sql(const std::string& limit, const std::string& condition,
                      const std::string& one_vector) {
    const bool one = !one_vector.empty();
    const std::string query = one ? one_vector : "q.place";
    const auto holds = [&](const std::string& row) {
        return condition.empty() ? "true" : row + condition;
    };
    const std::string sql =
        "SELECT count(*) || ' ' || coalesce(sum(hashtextextended(n.far::text, 0)), 0) || ' ' || "
        "count(*) FILTER (WHERE (n.place <=> " +
        query + ") = n.far AND " + holds("n.") + ") || ' ' || " +
        (limit == kNoLimit ? "coalesce(sum(hashint8extended(n.id, 0)), 0)" : "''") + " FROM " +
        (one ? "" : "asked AS q CROSS JOIN LATERAL ") + "(SELECT id, kind, place, place <=> " +
        query + " AS far FROM places AS p WHERE " + holds("p.") + " ORDER BY place <=> " + query +
        " LIMIT " + limit + ") AS n";
    return {sql, sql, "force", "off"};
}

/// `vector` is one as a constant.
std::vector<Question> questions(const Kind& kind, const std::string& vector) {
    std::vector<Question> all = questions_by_function(kind);
    if (kind.text) return all;
    for (const char* limit : {"3", kNoLimit})
        for (const char* condition : {"", "kind <> 1"})
            for (const std::string& one : {std::string(), vector})
                all.push_back(in_plain_sql(limit, condition, one));
    return all;
}

/// How often something was done, for the report.
class Counts {
public:
    void add(const std::string& what, long count = 1) { counts_[what] += count; }
    void print() const {
        for (const auto& [what, count] : counts_)
            if (count > 0) std::printf("%10ld  %s\n", count, what.c_str());
    }
    long of(const std::string& what) const {
        const auto found = counts_.find(what);
        return found == counts_.end() ? 0 : found->second;
    }

private:
    std::map<std::string, long> counts_;
};

class Histories : public ::testing::Test {
protected:
    struct Writer {
        std::unique_ptr<Session> session;
        bool open = false, saved = false, prepared = false;
    };

    void SetUp() override {
        try {
            server_.configure("max_prepared_transactions = 4\n");
            server_.start();
            Session first(server_.connection());
            first.rows("CREATE EXTENSION gputext");
            first.rows(
                "CREATE FUNCTION ask_from(float8) RETURNS void STRICT LANGUAGE c AS "
                "'$libdir/gputext', 'gputext_ask_from'");
            first.rows("CREATE ROLE limited");
            const bool with_pgvector =
                first.value("SELECT count(*) FROM pg_available_extensions WHERE name = 'vector'") ==
                "1";
            if (with_pgvector) first.rows("CREATE EXTENSION vector");
            kinds_ = kinds(with_pgvector);
            for (std::size_t k = 0; k < kinds_.size(); ++k) make_values(first, k);
            standby_ = PrivateServer::standby_of(server_);
            standby_->configure("wal_retrieve_retry_interval = 100ms\n");
            standby_->start();
            connect();
            connect_to_standby();
        } catch (const std::exception& error) {
            FAIL() << error.what();
        }
    }
    void TearDown() override {
        if (!HasFailure()) return;
        std::string text;
        for (const std::string& statement : said_) text += statement + "\n";
        std::printf("The history:\n%s\n", text.c_str());
        const std::string log = server_.log();
        std::puts(log.substr(log.size() - std::min<std::size_t>(log.size(), 3000)).c_str());
    }

    void make_values(Session& session, std::size_t k) {
        const std::string table = "made_" + std::to_string(k);
        session.rows("CREATE TABLE " + table + " (number int PRIMARY KEY, place " + kinds_[k].type +
                     ")");
        session.rows("ALTER TABLE " + table + " ALTER place SET STORAGE EXTERNAL");
        session.rows("INSERT INTO " + table + " SELECT i, " + kinds_[k].made +
                     " FROM generate_series(0, " + std::to_string(kMade - 1) + ") AS i");
    }

    static std::unique_ptr<Session> session_of(const PrivateServer& server) {
        auto session = std::make_unique<Session>(server.connection());
        session->rows("SELECT ask_from(0)");
        session->rows("SET gputext.cpu_threads = 1");
        return session;
    }
    void connect() {
        reader_ = session_of(server_);
        other_ = session_of(server_);
        limited_ = session_of(server_);
        limited_->rows("SET ROLE limited");
        old_ = session_of(server_);
        racer_ = std::make_unique<Session>(server_.connection());
        for (Writer& writer : writers_) writer = {session_of(server_)};
        old_runs_ = false;
    }
    void disconnect() {
        for (auto* session : {&reader_, &other_, &limited_, &old_, &racer_}) session->reset();
        for (Writer& writer : writers_) writer = {};
    }
    void connect_to_standby() { on_standby_ = session_of(*standby_); }

    // ---- What is said ----

    void say(Session& session, const std::string& who, const std::string& sql) {
        said_.push_back(who + ": " + sql);
        session.rows(sql);
    }
    void say(const std::string& sql) { say(*other_, "other", sql); }
    std::string number() { return std::to_string(dice_->below(kMade)); }
    std::string value_of(const std::string& number) const {
        return "(SELECT m.place FROM made_" + std::to_string(kind_number_) +
               " AS m WHERE m.number = (" + number + ") % " + std::to_string(kMade) + ")";
    }
    std::string insert(long first, long last, const std::string& number,
                       const std::string& where = "") const {
        return "INSERT INTO places SELECT i, i % 4, 'n' || i % 9, " +
               value_of("i * 7 + " + number) + " FROM generate_series(" + std::to_string(first) +
               ", " + std::to_string(last) + ") AS i" + where;
    }

    // ---- The table ----

    void make_table() {
        const auto& storage = kind().storage;
        say("DROP TABLE IF EXISTS child, places, asked");
        say("CREATE " + std::string(kind().unlogged ? "UNLOGGED " : "") +
            "TABLE places (id bigint, kind int, name text, place " + kind().type +
            ") WITH (fillfactor = " + std::to_string(50 + 25 * dice_->below(3)) +
            ", toast_tuple_target = 128)");
        say("ALTER TABLE places ALTER place SET STORAGE " + storage);
        if (dice_->percent(50)) say("CREATE INDEX ON places (id)");
        if (dice_->percent(20)) say("CREATE INDEX ON places (kind)");
        say("CREATE TABLE asked (id bigint, kind int, name text, place " + kind().type + ")");
        say("INSERT INTO asked SELECT i, i % 4, 'n' || i % 9, " + value_of("i * 11 + " + number()) +
            " FROM generate_series(1, 3) AS i");
        say("GRANT SELECT ON places, asked TO limited");
        if (dice_->percent(25)) {
            say("CREATE POLICY most ON places TO limited USING (id % 5 <> 3)");
            say("ALTER TABLE places ENABLE ROW LEVEL SECURITY");
        }
        table_of_kind_ = static_cast<int>(kind_number_);
    }
    void fill() {
        say(insert(1, kind().rows, number()));
        next_ = kind().rows + 1;
    }
    void begin_table() {
        if (table_of_kind_ != static_cast<int>(kind_number_) || dice_->percent(10))
            make_table();
        else
            say(dice_->percent(50) ? "TRUNCATE places" : "DELETE FROM places");
        fill();
        if (dice_->percent(70)) say("VACUUM places, asked");
        const std::string vector = kind().text ? "" : other_->value("SELECT " + value_of(number()));
        ask_of_all_ = questions(kind(), "'" + vector + "'::" + kind().type);
    }
    const Kind& kind() const { return kinds_[kind_number_]; }

    // ---- Questions ----

    const Question& question() { return dice_->of(favorites_); }

    /// How often the transaction has scanned the table so far.
    static long scans(Session& session) {
        return std::stol(session.value("SELECT pg_stat_get_xact_numscans('places'::regclass)"));
    }
    void expect_right(Session& session, const std::string& who, const Question& question) {
        said_.push_back(who + ": ? " + question.asked);
        const std::string right = question.expected(session);
        const long before = scans(session), hits = hits_of_texts();
        EXPECT_EQ(question.answer(session), right) << who << ": " << question.asked;
        for (const std::string& of : {std::string(), " of " + kind().name}) {
            counts_.add("answers" + of);
            counts_.add("answers without a scan" + of, scans(session) == before);
            counts_.add("answers with terms that gputextd had" + of, hits_of_texts() > hits);
        }
    }
    long hits_of_texts() { return kind().text ? use_of(*reader_, "places").hits : 0; }
    void ask(Session& session, const std::string& who) {
        session.rows("BEGIN ISOLATION LEVEL REPEATABLE READ");
        expect_right(session, who, question());
        session.rows("COMMIT");
    }
    void ask_on_standby() {
        // Its commit is on the standby when this one is.
        other_->rows("SELECT pg_logical_emit_message(true, 'histories', '')");
        const std::string written = other_->value("SELECT pg_current_wal_flush_lsn()");
        ASSERT_TRUE(eventually([&] {
            return on_standby_->value("SELECT pg_last_wal_replay_lsn() >= '" + written +
                                      "'::pg_lsn") == "t";
        }));
        ask(*on_standby_, "standby");
        counts_.add("answers of the standby");
    }

    // ---- What changes ----

    /// Of rows of the writer's own, so that none waits for another one.
    void change(Session& session, const std::string& who, unsigned writer) {
        const std::string own = " AND id % 3 = " + std::to_string(writer);
        const std::string first =
            std::to_string(dice_->below(static_cast<std::size_t>(next_) + 20));
        const std::string some = " WHERE id BETWEEN " + first + " AND " + first + " + " +
                                 std::to_string(dice_->percent(20) ? 40 : 4) + own;
        switch (dice_->below(11)) {
            case 0:
                counts_.add("DELETE");
                return say(session, who, "DELETE FROM places" + some);
            case 1:
            case 2:
                counts_.add("UPDATE of another column");
                return say(session, who, "UPDATE places SET kind = (kind + 1) % 4" + some);
            case 3:
                counts_.add("UPDATE of a key");
                return say(session, who,
                           "UPDATE places SET name = 'n' || (id + " + number() + ") % 11" + some);
            case 4:
                counts_.add("UPDATE to NULL");
                return say(session, who, "UPDATE places SET place = NULL" + some);
            case 5:
                counts_.add("SELECT FOR UPDATE or SHARE");
                return say(session, who,
                           "SELECT FROM places" + some +
                               (dice_->percent(50) ? " FOR UPDATE" : " FOR KEY SHARE"));
            case 6:
            case 7: {
                counts_.add("INSERT");
                const long begin = next_;
                next_ += 9;
                return say(
                    session, who,
                    insert(begin, begin + 8, number(), " WHERE i % 3 = " + std::to_string(writer)));
            }
            case 8: {
                // Of ids that other rows may have
                counts_.add("INSERT of old ids");
                const auto begin = static_cast<long>(dice_->below(static_cast<std::size_t>(next_)));
                return say(
                    session, who,
                    insert(begin, begin + 4, number(), " WHERE i % 3 = " + std::to_string(writer)));
            }
            default:
                counts_.add("UPDATE of the value");
                return say(
                    session, who,
                    "UPDATE places SET place = " + value_of("places.id + " + number()) + some);
        }
    }
    void end(Writer& writer, const std::string& who) {
        if (!writer.open) return;
        const bool commits = dice_->percent(60);
        counts_.add(commits ? "COMMIT" : "ROLLBACK");
        say(*writer.session, who, commits ? "COMMIT" : "ROLLBACK");
        writer.open = writer.saved = false;
    }
    void end_prepared(Writer& writer, const std::string& who) {
        if (!writer.prepared) return;
        say(*writer.session, who,
            (dice_->percent(60) ? "COMMIT PREPARED '" : "ROLLBACK PREPARED '") + who + "'");
        writer.prepared = false;
    }
    void end_old() {
        if (old_runs_) say(*old_, "old", "COMMIT");
        old_runs_ = false;
    }
    /// Before what locks the table
    void end_all() {
        for (unsigned w = 0; w < 2; ++w) {
            end(writers_[w], name_of(w));
            end_prepared(writers_[w], name_of(w));
        }
        end_old();
    }
    static std::string name_of(unsigned writer) { return writer == 0 ? "writer" : "second writer"; }

    void turn_transaction(unsigned w) {
        Writer& writer = writers_[w];
        const std::string who = name_of(w);
        if (!writer.open) {
            say(*writer.session, who, "BEGIN");
            writer.open = true;
        } else if (dice_->percent(15)) {
            counts_.add("PREPARE TRANSACTION");
            say(*writer.session, who, "PREPARE TRANSACTION '" + who + "'");
            writer.open = writer.saved = false;
            writer.prepared = true;
        } else {
            end(writer, who);
        }
    }
    void turn_savepoint(unsigned w) {
        Writer& writer = writers_[w];
        if (!writer.open) return;
        if (writer.saved) {
            counts_.add("ROLLBACK TO or RELEASE");
            say(*writer.session, name_of(w),
                dice_->percent(50) ? "ROLLBACK TO here" : "RELEASE here");
        } else {
            say(*writer.session, name_of(w), "SAVEPOINT here");
        }
        writer.saved = !writer.saved;
    }
    void turn_old() {
        if (old_runs_) return end_old();
        counts_.add("old snapshots");
        say(*old_, "old", "BEGIN ISOLATION LEVEL REPEATABLE READ");
        old_runs_ = true;
        old_answers_.clear();
        for (const Question& question : favorites_)
            old_answers_.push_back(question.expected(*old_));
    }
    /// It would wait until nobody else holds a lock before it cuts pages off.
    void vacuum() {
        counts_.add("VACUUM");
        say(dice_->percent(20) ? "VACUUM (FREEZE, TRUNCATE false) places"
                               : "VACUUM (TRUNCATE false) places");
    }
    void change_in_own_transaction() {
        counts_.add("changes by the reader");
        say(*reader_, "reader", "BEGIN");
        say(*reader_, "reader", "SAVEPOINT here");
        change(*reader_, "reader", 2);
        expect_right(*reader_, "reader", question());
        say(*reader_, "reader", dice_->percent(50) ? "ROLLBACK TO here" : "SAVEPOINT there");
        expect_right(*reader_, "reader", question());
        say(*reader_, "reader", dice_->percent(50) ? "ROLLBACK" : "COMMIT");
    }
    void fetch_late(unsigned w) {
        counts_.add("cursors");
        const Question& asked = question();
        reader_->rows("BEGIN");
        reader_->rows("SET gputext.plan_nearest = " + asked.asked_with);
        say(*reader_, "reader", "DECLARE early CURSOR FOR " + asked.asked);
        const std::string right = asked.expected(*reader_);
        change(*writers_[w].session, name_of(w), w);
        expect_right(*reader_, "reader", question());
        vacuum();
        EXPECT_EQ(reader_->value("FETCH early"), right) << asked.asked;
        reader_->rows("COMMIT");
    }
    /// Another session changes the table while the reader asks.
    void race(unsigned w) {
        if (writers_[w].open) return;
        counts_.add("changes while a statement runs");
        std::vector<std::string> statements;
        for (int i = 0; i < 6; ++i) {
            const std::string id = std::to_string(dice_->below(static_cast<std::size_t>(next_)));
            const std::string own =
                " WHERE id BETWEEN " + id + " AND " + id + " + 9 AND id % 3 = " + std::to_string(w);
            const std::string value = value_of("places.id + " + number());
            statements.push_back(dice_->of<std::string>(
                {"VACUUM (TRUNCATE false) places", "DELETE FROM places" + own,
                 "UPDATE places SET place = " + value + own,
                 "UPDATE places SET kind = 1 - kind" + own,
                 "BEGIN; UPDATE places SET place = " + value + own + "; ROLLBACK"}));
            said_.push_back("meanwhile: " + statements.back());
        }
        std::string failed;
        std::thread racing([&] {
            for (const std::string& statement : statements)
                if (racer_->sqlstate(statement) != "ok") failed = racer_->message();
        });
        try {
            for (int i = 0; i < 3; ++i) ask(*reader_, "reader");
        } catch (...) {
            racing.join();
            throw;
        }
        racing.join();
        EXPECT_EQ(failed, "");
    }
    void change_table() {
        end_all();
        const std::vector<std::string> changes{
            "VACUUM FULL places",
            "VACUUM places",
            "DELETE FROM places WHERE id > 20",
            "BEGIN; TRUNCATE places; " + insert(1, kind().rows, number()) + "; COMMIT",
            "BEGIN; TRUNCATE places; ROLLBACK",
            "BEGIN; DELETE FROM places; ROLLBACK",
            "ALTER TABLE places ALTER kind TYPE bigint; ALTER TABLE asked ALTER kind TYPE bigint",
            "ALTER TABLE places ALTER kind TYPE int; ALTER TABLE asked ALTER kind TYPE int",
            "ALTER TABLE places ADD more int DEFAULT 3; ALTER TABLE places DROP more",
            "BEGIN; ALTER TABLE places RENAME place TO gone; ALTER TABLE places ADD place " +
                kind().type +
                "; UPDATE places SET place = gone WHERE id % 5 > 0; ALTER TABLE places DROP gone; "
                "ALTER TABLE "
                "places ALTER place SET STORAGE " +
                kind().storage + "; COMMIT",
            "ALTER TABLE places SET (fillfactor = 60)",
            "ALTER TABLE places ALTER place SET STORAGE " +
                std::string(dice_->percent(50) ? "EXTERNAL" : "EXTENDED"),
            "CREATE INDEX by_id ON places (id); CLUSTER places USING by_id; DROP INDEX by_id",
            "DROP TABLE IF EXISTS child; CREATE TABLE child () INHERITS (places); INSERT INTO "
            "child SELECT * FROM "
            "places WHERE id % 9 = 1",
            "DROP TABLE IF EXISTS child",
            "ALTER TABLE places " + std::string(dice_->percent(50) ? "ENABLE" : "DISABLE") +
                " ROW LEVEL SECURITY",
            "UPDATE asked SET place = " + value_of("asked.id + " + number()),
            "SELECT gputext_evict('places')",
            "ANALYZE places",
        };
        const std::string& done = dice_->of(changes);
        counts_.add("other: " + done.substr(0, 24));
        say(done);
        if (dice_->percent(30)) say("VACUUM places");
    }
    void set_something() {
        counts_.add("other settings of the reader");
        say(*reader_, "reader",
            "SET " + dice_->of<std::string>(
                         {"gputext.device = cpu", "gputext.device = cpu", "gputext.device = gpu",
                          "gputext.scan_memory = '64MB'", "gputext.scan_memory = '64MB'",
                          "gputext.scan_memory = '20kB'", "gputext.scan_memory = 0",
                          "gputext.cpu_threads = 1", "gputext.cpu_threads = 2"}));
    }

    // ---- Crashes ----

    void crash() {
        counts_.add("crashes of the server");
        said_.push_back("crash");
        const bool prepared[] = {writers_[0].prepared, writers_[1].prepared};
        disconnect();
        server_.signal_server(SIGQUIT);
        ASSERT_TRUE(server_.ended());
        server_.start();
        connect();
        for (unsigned w = 0; w < 2; ++w) writers_[w].prepared = prepared[w];
        if (kind().unlogged) {
            EXPECT_EQ(other_->value("SELECT count(*) FROM ONLY places"), "0");
            end_all();
            fill();
        }
    }
    void crash_standby() {
        counts_.add("crashes of the standby");
        said_.push_back("crash of the standby");
        on_standby_.reset();
        standby_->signal_server(SIGQUIT);
        ASSERT_TRUE(standby_->ended());
        standby_->start();
        connect_to_standby();
    }
    void end_gputextd() {
        counts_.add("crashes of gputextd");
        said_.push_back("crash of gputextd");
        for (const pid_t daemon : server_.daemons()) send_signal(daemon, SIGKILL);
        // The next supervisor has forgotten how often gputextd has ended: else it would wait.
        for (const pid_t supervisor : server_.supervisors()) send_signal(supervisor, SIGTERM);
        ASSERT_TRUE(eventually([&] { return server_.supervisors().empty(); }));
    }

    // ---- A history ----

    void step(bool with_standby) {
        auto w = static_cast<unsigned>(dice_->below(2));
        // The rows of its prepared transaction are locked for the writer, too.
        if (writers_[w].prepared) {
            if (dice_->percent(30)) end_prepared(writers_[w], name_of(w));
            w = 1 - w;
            if (writers_[w].prepared) end_prepared(writers_[w], name_of(w));
        }
        switch (dice_->below(20)) {
            case 0:
            case 1:
                turn_transaction(w);
                break;
            case 2:
                turn_savepoint(w);
                break;
            case 3:
                turn_old();
                break;
            case 4:
            case 5:
                vacuum();
                break;
            case 6:
                change_in_own_transaction();
                break;
            case 7:
                fetch_late(w);
                break;
            case 8:
                if (dice_->percent(60)) change_table();
                break;
            case 9:
                if (dice_->percent(40)) race(w);
                break;
            case 10:
                if (dice_->percent(30)) set_something();
                break;
            default:
                change(*writers_[w].session, name_of(w), w);
        }
        if (HasFailure()) return;
        if (old_runs_ && dice_->percent(50)) {
            const std::size_t n = dice_->below(favorites_.size());
            said_.push_back("old: ? " + favorites_[n].asked);
            EXPECT_EQ(favorites_[n].answer(*old_), old_answers_[n])
                << "old: " << favorites_[n].asked;
            counts_.add("answers by an old snapshot");
        }
        if (dice_->percent(50)) ask(*reader_, "reader");
        if (dice_->percent(10)) ask(*limited_, "limited");
        if (with_standby && !kind().unlogged && dice_->percent(25)) ask_on_standby();
    }
    void choose_kind() {
        unsigned all = 0;
        for (const Kind& kind : kinds_) all += kind.likely;
        std::size_t number = dice_->below(all);
        kind_number_ = 0;
        while (number >= kind().likely) number -= kinds_[kind_number_++].likely;
    }
    void run_history(std::uint64_t seed) {
        dice_.emplace(seed);
        said_.clear();
        if (dice_->percent(3)) connect();
        reader_->rows("SET gputext.device = cpu; RESET gputext.scan_memory");
        // Most histories go on with the table of another one.
        if (table_of_kind_ < 0 || dice_->percent(50)) choose_kind();
        begin_table();
        favorites_.clear();
        for (int i = 0; i < 2; ++i) favorites_.push_back(dice_->of(ask_of_all_));
        // After that rows are remembered, as a rule.
        for (int i = 0; i < 2; ++i)
            for (const Question& question : favorites_) question.answer(*reader_);
        const bool with_standby = dice_->percent(15);
        const std::size_t steps = 10 + dice_->below(11);
        for (std::size_t i = 0; i < steps && !HasFailure(); ++i) step(with_standby);
        // One in so many, as these take longest
        if (dice_->below(80) == 0) {
            crash();
            for (Writer& writer : writers_)
                end_prepared(writer, &writer == writers_ ? name_of(0) : name_of(1));
            for (int i = 0; i < 3 && !HasFailure(); ++i) {
                change(*writers_[0].session, name_of(0), 0);
                ask(*reader_, "reader");
                if (!kind().unlogged) ask_on_standby();
            }
        }
        if (dice_->below(200) == 0) crash_standby();
        if (dice_->below(80) == 0) {
            end_gputextd();
            for (int i = 0; i < 3; ++i) ask(*reader_, "reader");
        }
        end_all();
        for (int i = 0; i < 2 && !HasFailure(); ++i) ask(*reader_, "reader");
        if (with_standby && !kind().unlogged) ask_on_standby();
        counts_.add("histories");
        counts_.add("histories with a standby", with_standby && !kind().unlogged);
        counts_.add("histories of " + kind().name);
        counts_.add("steps", static_cast<long>(steps));
        if (counts_.of("histories") % 100 == 0) {
            std::printf("%ld histories\n", counts_.of("histories"));
            std::fflush(stdout);
        }
    }

    PrivateServer server_;
    std::unique_ptr<PrivateServer> standby_;
    std::unique_ptr<Session> reader_, other_, limited_, old_, racer_, on_standby_;
    Writer writers_[2];
    bool old_runs_ = false;
    std::vector<std::string> old_answers_;
    std::vector<Kind> kinds_;
    std::size_t kind_number_ = 0;
    int table_of_kind_ = -1;
    long next_ = 0;
    std::vector<Question> ask_of_all_, favorites_;
    std::optional<Dice> dice_;
    std::vector<std::string> said_;
    Counts counts_;
};

TEST_F(Histories, HaveTheAnswersOfScans) {
    const std::uint64_t count = number_from("GPUTEXT_HISTORIES", testing::rounds(20, 1000));
    const std::uint64_t first = 1'000'000 * number_from("GPUTEXT_TEST_SEED", 0);
    for (std::uint64_t history = first; history < first + count && !HasFailure(); ++history) {
        SCOPED_TRACE("history " + std::to_string(history));
        try {
            run_history(history);
        } catch (const std::exception& error) {
            ADD_FAILURE() << error.what();
        }
    }
    counts_.print();
    EXPECT_GT(counts_.of("answers without a scan"), counts_.of("answers") / 10);
}

}  // namespace
}  // namespace gputext::live
