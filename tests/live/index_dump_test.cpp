// pg_dump and pg_restore of a table with an index, its options and an exclusion constraint, in a
// schema that no search_path of theirs has, as the extension has one of its own.
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
    // Written where the test may write; read by the same.
    const std::string file =
        fs::temp_directory_path() / ("gputext-dump-" + std::to_string(getpid()));
    run("pg_dump", "-Fc -f " + file + " source");
    run("pg_restore", "-e -d target " + file);
    fs::remove(file);

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

}  // namespace
}  // namespace gputext::live
