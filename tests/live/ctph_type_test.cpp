// The type ctph in tables: binary COPY, generated columns, indexes, parallel plans, dumps.

#include <random>

#include "tests/live/live_test.hpp"

namespace gputext::live {
namespace {

class CtphType : public LiveTest {
protected:
    void SetUp() override {
        LiveTest::SetUp();
        if (HasFatalFailure()) return;
        session().rows(
            "CREATE TABLE d (id bigint PRIMARY KEY, body text, "
            "sig ctph GENERATED ALWAYS AS (ctph_signature(body)) STORED)");
        session().rows(
            "INSERT INTO d SELECT i, repeat(md5(i::text), i % 40) "
            "FROM generate_series(1, 5000) i");
        session().rows("ANALYZE d");
    }

    /// A file that the server may read and write, removed after the test.
    std::string file() { return (data_directory() / (schema() + ".copy")).string(); }

    void TearDown() override {
        if (!schema().empty()) std::filesystem::remove(file());
        LiveTest::TearDown();
    }

    std::string plan(const std::string& query) { return session().table("EXPLAIN " + query); }
};

TEST_F(CtphType, BinaryCopyGivesTheSameBack) {
    session().rows("COPY (SELECT id, sig FROM d) TO '" + file() + "' (FORMAT binary)");
    session().rows("CREATE TABLE back (id bigint, sig ctph)");
    session().rows("COPY back FROM '" + file() + "' (FORMAT binary)");
    EXPECT_EQ(session().value("SELECT count(*) FROM d JOIN back b USING (id) WHERE d.sig = b.sig "
                              "AND d.sig::text = b.sig::text"),
              "5000");
}

/// One row of one column in COPY's binary format.
std::string binary_row(const std::string& field) {
    const auto number = [](std::size_t value, int bytes) {
        std::string text;
        for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8)
            text += static_cast<char>(value >> shift);
        return text;
    };
    return std::string("PGCOPY\n\377\r\n\0", 11) + std::string(8, '\0') + number(1, 2) +
           number(field.size(), 4) + field + number(0xffff, 2);
}

TEST_F(CtphType, WrongBinaryValuesAreRefused) {
    session().rows("CREATE TABLE back (sig ctph)");
    session().rows("CREATE TABLE again (sig ctph)");
    std::mt19937 random(20261121);
    const auto below = [&](std::size_t bound) { return random() % bound; };
    const std::string letters = "AZaz09+/";
    int refused = 0;
    int taken = 0;
    for (int i = 0; i < 400; ++i) {
        std::string field;
        const std::size_t kind = below(4);
        if (kind == 0) {  // any bytes
            for (std::size_t n = below(40); n > 0; --n) field += static_cast<char>(below(256));
        } else {  // nearly a right value
            const std::size_t first = kind == 3 ? below(1030) : below(20);
            const std::size_t second = below(first + 2);
            field += static_cast<char>(below(36));
            field += static_cast<char>(first >> 8);
            field += static_cast<char>(first);
            for (std::size_t n = first + second; n > 0; --n) field += letters[below(8)];
            if (kind == 2) field[below(field.size())] = static_cast<char>(below(256));
            if (below(4) == 0) field.resize(below(field.size() + 1));
        }
        {
            std::ofstream out(file(), std::ios::binary | std::ios::trunc);
            out << binary_row(field);
        }
        std::filesystem::permissions(file(), std::filesystem::perms(0644));
        session().rows("TRUNCATE back, again");
        const std::string state =
            session().sqlstate("COPY back FROM '" + file() + "' (FORMAT binary)");
        if (state == "ok") {
            ++taken;
            // What is taken is a value like any other.
            session().rows("INSERT INTO again SELECT sig::text::ctph FROM back");
            EXPECT_EQ(
                session().value("SELECT count(*) FROM back, again WHERE back.sig = again.sig"),
                "1");
        } else {
            ++refused;
            EXPECT_EQ(state, "22P03") << session().message();
        }
    }
    EXPECT_GT(refused, 100);
    EXPECT_GT(taken, 50);
}

TEST_F(CtphType, IndexesAreUsed) {
    const std::string wanted = "'" + session().value("SELECT sig FROM d WHERE id = 77") + "'::ctph";
    const std::string equal = "SELECT id FROM d WHERE sig = " + wanted;
    const std::string found = session().table(equal + " ORDER BY id");
    for (const char* method : {"btree", "hash"}) {
        session().rows(std::string("CREATE INDEX by_sig ON d USING ") + method + " (sig)");
        EXPECT_NE(plan(equal).find("by_sig"), std::string::npos) << plan(equal);
        EXPECT_EQ(session().table(equal + " ORDER BY id"), found);
        session().rows("DROP INDEX by_sig");
    }
    session().rows("CREATE INDEX by_sig ON d (sig)");
    const std::string ordered = "SELECT sig FROM d ORDER BY sig LIMIT 10";
    EXPECT_NE(plan(ordered).find("by_sig"), std::string::npos) << plan(ordered);
    const std::string sorted = session().table(ordered);
    session().rows("DROP INDEX by_sig");
    EXPECT_EQ(session().table(ordered), sorted);
}

TEST_F(CtphType, SignaturesAreComputedByParallelWorkers) {
    session().rows("ALTER TABLE d SET (parallel_workers = 2)");
    session().rows("SET parallel_setup_cost = 0");
    session().rows("SET parallel_tuple_cost = 0");
    session().rows("SET min_parallel_table_scan_size = 0");
    const std::string query = "SELECT count(*) FROM d WHERE ctph_signature(body) = sig";
    EXPECT_NE(plan(query).find("Gather"), std::string::npos) << plan(query);
    const std::string run = session().table("EXPLAIN (ANALYZE, COSTS off, TIMING off) " + query);
    EXPECT_NE(run.find("Workers Launched: 2"), std::string::npos) << run;
    EXPECT_EQ(session().value(query), "5000");
}

TEST_F(CtphType, DumpAndRestoreGiveTheSameTable) {
    if (std::system("command -v pg_dump psql >/dev/null") != 0)
        GTEST_SKIP() << "no pg_dump at hand";
    const std::string digest = "SELECT md5(string_agg(d::text, ',' ORDER BY id)) FROM d";
    session().rows("CREATE INDEX ON d USING hash (sig)");
    const std::string before = session().value(digest);
    const std::string copy = schema() + "_copy";
    const std::string database = session().value("SELECT current_database()");
    const std::string dump = file() + ".dump";
    other().rows("CREATE DATABASE " + copy);
    other().rows("COMMENT ON DATABASE " + copy + " IS 'made by a test'");
    const std::string command =
        "pg_dump -d " + database + " -n " + schema() + " -f " + dump +
        " && psql -X -q -v ON_ERROR_STOP=1 -d " + copy + " -c 'CREATE EXTENSION gputext' -f " +
        dump + " >/dev/null && psql -X -A -t -q -d " + copy + " -c 'SET search_path = " + schema() +
        ", public' -c \"" + digest + "\" >" + dump + ".digest";
    EXPECT_EQ(std::system(command.c_str()), 0);
    std::string after;
    std::getline(std::ifstream(dump + ".digest") >> std::ws, after);
    EXPECT_EQ(after, before);
    std::filesystem::remove(dump);
    std::filesystem::remove(dump + ".digest");
    other().rows("DROP DATABASE " + copy);
}

}  // namespace
}  // namespace gputext::live
