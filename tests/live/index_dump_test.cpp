// pg_dump and pg_restore of a table with an index, its options and an exclusion constraint, in a
// schema that no search_path of theirs has, as the extension has one of its own; and of
// materialized views over inner queries.
//
// pg_upgrade copies the files of indexes; index_standby_test.cpp has an index from copied files.

#include "tests/live/index_use.hpp"
#include "tests/live/private_server.hpp"

namespace gputext::live {
namespace {

constexpr std::size_t kPool = 200;

class IndexDump : public ::testing::Test {
protected:
    void SetUp() override {
        try {
            server_.start();
            Session(server_.connection()).rows("CREATE DATABASE source");
            Session(server_.connection()).rows("CREATE DATABASE target");
        } catch (const std::exception& error) {
            FAIL() << error.what();
        }
    }

    void TearDown() override {
        if (HasFailure()) std::puts(server_.log().c_str());
    }

    void run(const std::string& name, const std::string& arguments) {
        const std::string words = server_.root() / "words";
        const std::string command = environment("GPUTEXT_PG_BIN") + "/" + name + " -h " +
                                    server_.root().string() + " -p 5432 -U gputext " + arguments +
                                    " >" + words + " 2>&1";
        EXPECT_EQ(std::system(command.c_str()), 0) << command << "\n" << contents(words);
    }

    /// Of the database source, by pg_restore with these options.
    void copy(const std::string& options) {
        // Written where the test may write; read by the same.
        const std::string file =
            fs::temp_directory_path() / ("gputext-dump-" + std::to_string(getpid()));
        run("pg_dump", "-Fc -f " + file + " source");
        if (options == "-C -d postgres")
            Session(server_.connection()).rows("ALTER DATABASE source RENAME TO former");
        run("pg_restore", "-e " + options + " " + file);
        fs::remove(file);
    }

    Session open(const char* database) { return Session(server_.connection(database)); }

    static constexpr const char* kDefinitions =
        "SELECT pg_get_indexdef(indexrelid), reloptions FROM pg_index JOIN pg_class ON oid = "
        "indexrelid JOIN pg_am a ON a.oid = relam WHERE amname = 'gputext' UNION ALL "
        "SELECT pg_get_constraintdef(oid), NULL FROM pg_constraint WHERE contype = 'x' ORDER BY 1";

    PrivateServer server_;
};

TEST_F(IndexDump, RestoresIndexesAndConstraints) {
    std::string definitions;
    {
        Session source = open("source");
        source.rows("CREATE SCHEMA extensions");
        source.rows("CREATE EXTENSION gputext SCHEMA extensions");
        source.rows("CREATE SCHEMA texts");
        source.rows("SET search_path = texts, extensions");
        create_pool(source, kPool);
        source.rows("CREATE TABLE docs (id integer, part integer, body text, seen integer)");
        source.rows("CREATE INDEX docs_index ON docs USING gputext (body) WITH (bins = 512)");
        source.rows("CREATE INDEX part_index ON docs USING gputext (lower(body)) WHERE part = 1");
        source.rows("INSERT INTO docs SELECT id, id % 2, body, 0 FROM pool");
        source.rows(
            "CREATE TABLE kept (id integer, body text, data bytea, CONSTRAINT no_near_duplicates "
            "EXCLUDE USING gputext (body WITH ~=) WITH (bins = 64) WHERE (id > 0), CONSTRAINT "
            "no_near_data EXCLUDE USING gputext (data WITH ~=))");
        source.rows("INSERT INTO kept SELECT id, body, data FROM pool ON CONFLICT DO NOTHING");
        definitions = source.table(kDefinitions);
        EXPECT_EQ(std::count(definitions.begin(), definitions.end(), '\n'), 6) << definitions;
    }
    copy("-d target");

    Session source = open("source"), target = open("target");
    for (Session* session : {&source, &target})
        session->rows("SET search_path = texts, extensions");
    EXPECT_EQ(target.table(kDefinitions), definitions);
    EXPECT_EQ(target.table("SELECT id FROM kept ORDER BY id"),
              source.table("SELECT id FROM kept ORDER BY id"));
    Dice dice(testing::seed());
    std::size_t found = 0;
    for (int i = 0; i < 5; ++i) {
        found += expect_index_finds_all(target, dice, kPool);
        found += expect_index_finds_all(target, dice, kPool,
                                        {.index = "part_index",
                                         .document = "lower(d.body)",
                                         .query = "lower(p.body)",
                                         .condition = " AND d.part = 1"});
    }
    EXPECT_GT(found, 0u);
    for (const char* index : {"docs_index", "part_index", "no_near_duplicates", "no_near_data"})
        expect_sound(target, index);
    EXPECT_EQ(target.sqlstate("INSERT INTO kept SELECT id, body FROM kept WHERE id > 0 AND "
                              "length(body) > 100 LIMIT 1"),
              "23P01");
    EXPECT_EQ(target.sqlstate("INSERT INTO kept SELECT -1, NULL, data FROM kept WHERE "
                              "length(data) > 100 LIMIT 1"),
              "23P01");
}

// What the database says of the threshold of queries is nothing to a constraint, here and there.
class IndexDumpOf : public IndexDump, public ::testing::WithParamInterface<const char*> {};

TEST_P(IndexDumpOf, KeepsThresholds) {
    {
        Session source = open("source");
        source.rows("CREATE EXTENSION gputext");
        source.rows("ALTER DATABASE source SET gputext.near_duplicate_threshold = 0.3");
        source.rows(
            "CREATE TABLE docs (id integer, body text, CONSTRAINT few EXCLUDE USING gputext "
            "(body WITH ~=) WITH (threshold = 0.01))");
        source.rows(
            "CREATE TABLE others (id integer, body text, CONSTRAINT usual EXCLUDE USING gputext "
            "(body WITH ~=))");
        source.rows(
            "INSERT INTO docs VALUES (1, repeat('one two three ', 5)), (2, repeat('one two three "
            "', 5) || 'four')");
        source.rows(
            "INSERT INTO others VALUES (1, repeat('one two three ', 5)), (2, repeat('one two three "
            "', 5) || 'four five six')");
    }
    const std::string options = GetParam();
    copy(options);
    Session target = open(options == "-d target" ? "target" : "source");
    EXPECT_EQ(target.table(kDefinitions),
              "CREATE INDEX few ON public.docs USING gputext (body) WITH (threshold='0.01')|"
              "{threshold=0.01}\n"
              "CREATE INDEX usual ON public.others USING gputext (body)|\n"
              "EXCLUDE USING gputext (body WITH ~=)|\n"
              "EXCLUDE USING gputext (body WITH ~=) WITH (threshold='0.01')|\n");
    EXPECT_EQ(target.value("SELECT count(*) FROM docs"), "2");
    target.rows("SET gputext.near_duplicate_threshold = 0");
    EXPECT_EQ(target.sqlstate("INSERT INTO docs SELECT 3, body || '!' FROM docs WHERE id = 1"),
              "23P01");
    EXPECT_EQ(target.sqlstate("INSERT INTO docs SELECT 3, body || '!!!' FROM docs WHERE id = 1"),
              "ok");
    EXPECT_EQ(
        target.sqlstate("INSERT INTO others SELECT 3, body || '!!!' FROM others WHERE id = 1"),
        "23P01");
    for (const char* index : {"few", "usual"}) expect_sound(target, index);
}

INSTANTIATE_TEST_SUITE_P(Restores, IndexDumpOf, ::testing::Values("-d target", "-C -d postgres"));

// docs/materialized-views.md says how they are written: the names of the views are in the order in
// which pg_dump would fill them if it did not know what they read.
TEST_F(IndexDump, RestoresMaterializedViews) {
    {
        Session source = open("source");
        source.rows("CREATE SCHEMA extensions");
        source.rows("CREATE EXTENSION gputext SCHEMA extensions");
        source.rows("CREATE SCHEMA texts");
        source.rows("CREATE TABLE texts.docs (id integer PRIMARY KEY, body text)");
        source.rows(
            "INSERT INTO texts.docs SELECT i, repeat('text ' || i / 2, 10) FROM "
            "generate_series(1, 10) AS i");
        source.rows("CREATE MATERIALIZED VIEW texts.z_bodies AS SELECT * FROM texts.docs");
        source.rows(
            "CREATE MATERIALIZED VIEW texts.m_pairs AS SELECT * FROM extensions.near_duplicates("
            "format('SELECT id, body FROM %s', 'texts.z_bodies'::regclass))");
        source.rows(
            "CREATE MATERIALIZED VIEW texts.a_groups AS SELECT * FROM extensions.groups_of("
            "format('SELECT id1, id2 FROM %s', 'texts.m_pairs'::regclass))");
    }
    copy("-d target");
    Session source = open("source"), target = open("target");
    EXPECT_EQ(target.value("SELECT count(*) FROM pg_matviews WHERE NOT ispopulated"), "0");
    for (const char* view : {"texts.m_pairs", "texts.a_groups"}) {
        const std::string rows = "SELECT v::text FROM " + std::string(view) + " AS v ORDER BY 1";
        EXPECT_EQ(target.table(rows), source.table(rows));
        EXPECT_NE(target.table(rows), "");
    }
    EXPECT_EQ(target.sqlstate("DROP MATERIALIZED VIEW texts.m_pairs"), "2BP01");
}

}  // namespace
}  // namespace gputext::live
