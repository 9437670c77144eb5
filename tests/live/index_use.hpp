// tests/live/index_use.hpp - documents that are edits of each other, changes of a table of them,
// and searches of it: through its index, and without

#pragma once

#include <algorithm>
#include <map>

#include "tests/live/dice.hpp"
#include "tests/live/server.hpp"
#include "tests/support/random_strings.hpp"

namespace gputext::live {

// ---- Documents ----

/// Documents in families, whose members are a few edits apart: of random characters of one to four
/// bytes, or of words. Lengths from 0 to 20,000 characters, half of them below 130.
inline std::vector<std::string> related_documents(std::size_t count) {
    const std::u32string_view letters = U"abcdefghijklmnopqrstuvwxyz    ABC.ä€漢\U0001F600";
    testing::RandomStrings random;
    std::vector<std::u32string> words;
    for (int i = 0; i < 300; ++i)
        words.push_back(random.string<std::u32string>(1 + random.below(9), letters) + U' ');
    std::vector<std::string> documents;
    for (std::size_t family = 0; documents.size() < count; ++family) {
        const std::size_t length =
            family == 0 ? 20000 : random.below(std::size_t{1} << random.below(15));
        std::u32string text;
        if (family % 2 == 0)
            while (text.size() < length) text += words[random.below(words.size())];
        else
            text = random.string<std::u32string>(length, letters);
        for (std::size_t member = random.below(20) + 1; member > 0; --member) {
            documents.push_back(testing::utf8_of(text));
            text = random.edited(text, random.below(text.size() / 15 + 3), letters);
        }
    }
    documents.resize(count);
    return documents;
}

/// The table pool: ids from 0, where the document 0 is null, and documents as text and as bytea.
inline void create_pool(Session& session, std::size_t count) {
    session.rows("CREATE TABLE pool (id integer PRIMARY KEY, body text, data bytea)");
    std::string values = "(0, NULL)";
    const std::vector<std::string> documents = related_documents(count - 1);
    for (std::size_t i = 0; i < documents.size(); ++i)
        values += ", (" + std::to_string(i + 1) + ", '" + documents[i] + "')";
    session.rows("INSERT INTO pool(id, body) VALUES " + values);
    session.rows("UPDATE pool SET data = convert_to(body, 'UTF8')");
    session.rows("ANALYZE pool");
}

/// The document `number` as SQL. Of three kinds, in hexadecimal digits, in letters and in signs, of
/// which each has models of its own; four documents in a row are near to each other, and two are
/// equal.
inline std::string kind_of_document(const std::string& number) {
    const std::string family = number + " / 4", digits = "'0123456789abcdef'";
    const std::string hashes = "md5((" + family + ")::text) || md5((" + family +
                               " + 1)::text) || md5((" + family + " + 2)::text)";
    return "left(CASE " + family + " % 3 WHEN 0 THEN " + hashes + " WHEN 1 THEN translate(" +
           hashes + ", " + digits + ", ' etaoinsrhldcumf') ELSE translate(" + hashes + ", " +
           digits + ", '<>/=\"ABCDEFGHI()') END, 60 + " + family + " % 40) || " + number +
           " % 4 / 2";
}

/// So many documents of several kinds that an index of them has several models.
inline constexpr int kRowsOfKinds = 61000;

/// The table docs with documents of several kinds.
inline void create_kinds(Session& session) {
    session.rows("CREATE TABLE docs (id integer, part integer, body text, seen integer)");
    session.rows("INSERT INTO docs SELECT i, i % 3, " + kind_of_document("i") +
                 ", 0 FROM generate_series(1, " + std::to_string(kRowsOfKinds) + ") AS i");
    session.rows("ANALYZE docs");
}

/// Documents for searches in that table, of all kinds, as the table pool.
inline void create_pool_of_kinds(Session& session, std::size_t count) {
    session.rows("CREATE TABLE pool AS SELECT i AS id, " + kind_of_document("(i * 97)") +
                 " AS body FROM generate_series(0, " + std::to_string(count - 1) + ") AS i");
    session.rows("ANALYZE pool");
}

/// How many models an index has, by its meta page (extension/index/format.hpp).
inline int models_of(Session& session, const std::string& index = "docs_index") {
    session.rows("CHECKPOINT");
    return std::stoi(session.value("SELECT get_byte(pg_read_binary_file(pg_relation_filepath('" +
                                   index + "'), 8186, 1), 0)"));
}

// ---- Changes ----

/// Random changes of the table docs (id integer, part integer, body text or bytea, seen integer)
/// by statements of many rows. Several of them, with the same step and different first ids, change
/// different rows.
class RandomChanges {
public:
    RandomChanges(Session& session, Dice& dice, std::size_t pool, std::size_t rows,
                  const std::string& column = "body", std::size_t first = 0, std::size_t step = 1)
        : session_(session),
          dice_(dice),
          pool_(pool),
          rows_(rows),
          column_(column),
          first_(first),
          step_(step) {}

    /// One statement; the number of rows that it was to change.
    std::size_t change() {
        const std::size_t count = 1 + dice_.below(60);
        const std::size_t kind = dice_.below(100);
        if (kind < 45 || next_ == 0)
            insert(count);
        else if (kind < 65)
            session_.rows("UPDATE docs SET body = p." + column_ + " FROM " + pairs(count, false) +
                          " JOIN pool p ON p.id = pool WHERE docs.id = v.id");
        else if (kind < 75)
            session_.rows("UPDATE docs SET seen = seen + 1 WHERE id = ANY('{" + some(count) +
                          "}')");
        else if (kind < 80)
            session_.rows("UPDATE docs SET part = part + 1 WHERE id = ANY('{" + some(count) +
                          "}')");
        else if (kind < 97)
            session_.rows("DELETE FROM docs WHERE id = ANY('{" + some(count) + "}')");
        else if (next_ > rows_)
            session_.rows("DELETE FROM docs WHERE id < " + id_of(next_ - rows_) + " AND id % " +
                          std::to_string(step_) + " = " + std::to_string(first_));
        return count;
    }

    /// Several, with savepoints, of which one in three is rolled back, as is the whole now and
    /// then.
    std::size_t transaction() {
        std::size_t count = 0;
        session_.rows("BEGIN");
        for (std::size_t i = 1 + dice_.below(4); i > 0; --i) {
            session_.rows("SAVEPOINT point");
            count += change();
            if (dice_.percent(33)) session_.rows("ROLLBACK TO point");
            if (dice_.percent(50)) session_.rows("RELEASE point");
            count += change();
        }
        session_.rows(dice_.percent(70) ? "COMMIT" : "ROLLBACK");
        return count;
    }

private:
    void insert(std::size_t count) {
        session_.rows("INSERT INTO docs SELECT v.id, v.id / " + std::to_string(step_) + " % 3, p." +
                      column_ + ", 0 FROM " + pairs(count, true) + " JOIN pool p ON p.id = pool");
        next_ += count;
    }

    std::string id_of(std::size_t number) const { return std::to_string(first_ + number * step_); }

    /// Ids of rows, of which some may be gone.
    std::string some(std::size_t count) {
        std::string ids;
        for (; count > 0; --count)
            ids +=
                (ids.empty() ? "" : ",") + id_of(next_ - 1 - dice_.below(std::min(next_, rows_)));
        return ids;
    }
    /// v(id, pool): new ids or others.
    std::string pairs(std::size_t count, bool are_new) {
        std::string ids, pools;
        for (std::size_t i = 0; i < count; ++i) {
            if (are_new) ids += (i == 0 ? "" : ",") + id_of(next_ + i);
            pools += (i == 0 ? "" : ",") + std::to_string(dice_.below(pool_));
        }
        if (!are_new) ids = some(count);
        return "unnest('{" + ids + "}'::integer[], '{" + pools + "}'::integer[]) v(id, pool)";
    }

    Session& session_;
    Dice& dice_;
    const std::size_t pool_, rows_;
    const std::string column_;
    const std::size_t first_, step_;
    std::size_t next_ = 0;
};

// ---- Searches ----

/// What is searched, and how a row of the table pool, p, is written as a document to search for.
struct Searched {
    std::string table = "docs";
    std::string index = "docs_index";
    std::string document = "d.body";
    std::string query = "p.body";
    std::string condition = "";  // " AND ..."
};

/// How the rows are found: PostgreSQL's settings, and a word of the plan that uses the index.
struct Way {
    const char* name;
    const char* settings;
    const char* plan;
};

inline const Way kWithoutIndex = {
    "the table",
    "SET LOCAL enable_seqscan = on; SET LOCAL enable_indexscan = off; "
    "SET LOCAL enable_bitmapscan = off; ",
    "Seq Scan on "};
inline const std::vector<Way> kWithIndex = {
    {"an index scan",
     "SET LOCAL enable_seqscan = off; SET LOCAL enable_indexscan = on; "
     "SET LOCAL enable_bitmapscan = off; ",
     "Index Scan using "},
    {"a bitmap scan",
     "SET LOCAL enable_seqscan = off; SET LOCAL enable_indexscan = off; "
     "SET LOCAL enable_bitmapscan = on; ",
     "Bitmap Index Scan on "},
    {"the planner's choice",
     "SET LOCAL enable_seqscan = on; SET LOCAL enable_indexscan = on; "
     "SET LOCAL enable_bitmapscan = on; ",
     ""}};

/// A condition in one of the ways in which it can be written.
inline std::string condition_of(const Searched& searched, double threshold, std::size_t form) {
    const std::string& a = searched.document;
    const std::string& b = searched.query;
    const std::string number = std::to_string(threshold);
    switch (form % 5) {
        case 0:
            return "is_near_duplicate(" + a + ", " + b + ", " + number + ")";
        case 1:
            return "is_near_duplicate(" + b + ", " + a + ", " + number + ")";
        case 2:
            return a + " @~ near_duplicate_query(" + b + ", " + number + ")";
        case 3:
            return a + " ~= " + b;
        default:
            return b + " ~= " + a;
    }
}

/// The ids of the documents near each of these rows of the pool, from a statement that must not run
/// in a transaction that goes on, as it leaves settings behind.
inline std::string search_statement(const Searched& searched, const std::string& pools,
                                    double threshold, std::size_t form) {
    return "SELECT p.id, ARRAY(SELECT d.id FROM " + searched.table + " d WHERE " +
           condition_of(searched, threshold, form) + searched.condition +
           " ORDER BY d.id) FROM pool p WHERE p.id = ANY('{" + pools + "}') ORDER BY p.id";
}

/// Every search through the index finds what the table has under the same snapshot. In a
/// transaction of its own, or in the caller's, which is then of a level that keeps its snapshot or
/// alone. Returns the number of rows found.
inline std::size_t expect_index_finds_all(Session& session, Dice& dice, std::size_t pool,
                                          const Searched& searched = {}, std::size_t documents = 8,
                                          bool begin = true) {
    std::string pools;
    for (std::size_t i = 0; i < documents; ++i)
        pools += (i == 0 ? "" : ",") + std::to_string(dice.below(pool));
    static const std::vector<double> thresholds = {0, 0.004, 0.02, 0.05, 0.05, 0.1, 0.3};
    const double threshold = dice.of(thresholds);
    const std::string statement = search_statement(searched, pools, threshold, dice.below(5));
    session.rows(begin ? "BEGIN ISOLATION LEVEL REPEATABLE READ" : "SAVEPOINT search");
    session.rows("SET LOCAL gputext.near_duplicate_threshold = " + std::to_string(threshold));
    const std::string expected = session.table(kWithoutIndex.settings + statement);
    EXPECT_NE(
        session.table("EXPLAIN (COSTS OFF) " + statement).find(kWithoutIndex.plan + searched.table),
        std::string::npos);
    for (const Way& way : kWithIndex) {
        EXPECT_EQ(session.table(way.settings + statement), expected)
            << "by " << way.name << ": " << statement;
        if (*way.plan == '\0') continue;
        const std::string plan = session.table("EXPLAIN (COSTS OFF) " + statement);
        EXPECT_NE(plan.find(way.plan + searched.index), std::string::npos) << plan;
    }
    session.rows(begin ? "COMMIT" : "ROLLBACK TO search");
    return static_cast<std::size_t>(
        std::count_if(expected.begin(), expected.end(), [](char c) { return c == ','; }));
}

/// By the extension's own check of an index, and of its agreement with the table, where it has one.
inline void expect_sound(Session& session, const std::string& index = "docs_index") {
    if (session.value("SELECT to_regprocedure('gputext_index_check(regclass,boolean)')") == "NULL")
        return;
    EXPECT_EQ(session.sqlstate("SELECT gputext_index_check('" + index + "', true)"), "ok")
        << session.message();
}

/// After a crash or a promotion the index is sound and finds all, before and after so many more
/// transactions and a VACUUM.
inline void expect_index_goes_on(Session& session, Dice& dice, std::size_t pool, std::size_t rows,
                                 int transactions) {
    std::size_t found = 0;
    for (int i = 0; i < 3; ++i) found += expect_index_finds_all(session, dice, pool);
    expect_sound(session);
    RandomChanges changes(session, dice, pool, rows);
    for (int i = 0; i < transactions; ++i) changes.transaction();
    session.rows("VACUUM docs");
    for (int i = 0; i < 3; ++i) found += expect_index_finds_all(session, dice, pool);
    EXPECT_GT(found, 0u);
    expect_sound(session);
}

/// No process of a private server has died by a signal of its own, and no page was recovered other
/// than it had been.
inline void expect_no_crash(const std::string& log) {
    for (const char* sign : {"terminated by signal 1", "terminated by signal 4",
                             "terminated by signal 6", "terminated by signal 7",
                             "terminated by signal 8", "PANIC:", "TRAP:", "inconsistent page"})
        EXPECT_EQ(log.find(sign), std::string::npos) << sign;
}

}  // namespace gputext::live
