// The recipe of docs/companion-server.md on two servers: a publication of a server without gputext,
// the nightly job of docs/scheduled-jobs.md on its companion, and the results back.

#include <sstream>

#include "tests/live/private_server.hpp"

namespace gputext::live {
namespace {

std::string statements(const std::string& page_name, const std::string& mark) {
    const std::string found = marked_sql(fs::path(GPUTEXT_SOURCE) / "docs" / page_name, mark);
    EXPECT_NE(found, "") << page_name << " has no block " << mark;
    return found;
}

class Companion : public testing::Test {
protected:
    void SetUp() override {
        production_server_ = std::make_unique<PrivateServer>("wal_level = logical\n");
        production_server_->start();
        companion_server_ = std::make_unique<PrivateServer>();
        companion_server_->start();
        production_ = std::make_unique<Session>(production_server_->connection());
        companion_ = std::make_unique<Session>(companion_server_->connection());
        production_->rows(statements("companion-server.md", "production"));
        companion_->rows("CREATE EXTENSION gputext");
        companion_->rows(statements("scheduled-jobs.md", "job"));
        // A subscription may not be created within a transaction, as statements sent together are.
        std::istringstream parts(at_production(statements("companion-server.md", "companion")));
        for (std::string statement; next_statement(parts, statement);) companion_->rows(statement);
    }

    /// With production's address in place of the page's.
    std::string at_production(std::string sql) const {
        const std::string name = "production.example";
        for (std::size_t at; (at = sql.find(name)) != std::string::npos;)
            sql.replace(at, name.size(), production_server_->root().string());
        return sql;
    }

    /// Statements end with a semicolon at the end of a line; a body between dollars is one.
    static bool next_statement(std::istream& sql, std::string& statement) {
        statement.clear();
        bool within_body = false;
        for (std::string line; std::getline(sql, line);) {
            statement += line + '\n';
            if (line.find("$$") != std::string::npos) within_body = !within_body;
            if (!within_body && !line.empty() && line.back() == ';') return true;
        }
        return false;
    }

    void night() {
        const std::string all = "SELECT id, trusted, body FROM docs ORDER BY id";
        ASSERT_TRUE(
            eventually([&] { return companion_->table(all) == production_->table(all); }, 60s))
            << companion_server_->log();
        std::istringstream job(statements("companion-server.md", "companion nightly"));
        for (std::string statement; next_statement(job, statement);) companion_->rows(statement);
    }

    std::string result() {
        return production_->table(statements("companion-server.md", "production result"));
    }

    std::unique_ptr<PrivateServer> production_server_, companion_server_;
    std::unique_ptr<Session> production_, companion_;
};

TEST_F(Companion, SendsWhatEachNightFound) {
    production_->rows(
        "INSERT INTO docs (id, body) SELECT i, repeat(md5((i % 50)::text), 3) || i FROM "
        "generate_series(1, 100) AS i");
    night();
    // i and i + 50 are near-duplicates, of which the longest one is the best, and else the first.
    const std::string copies =
        "SELECT count(*), count(DISTINCT group_id), min(group_size), max(group_size) FROM "
        "doc_copies";
    EXPECT_EQ(production_->table(copies), "100|50|2|2\n");
    const std::string found = "SELECT id, group_id, group_size FROM doc_copies ORDER BY id";
    EXPECT_EQ(production_->table(found),
              companion_->table("SELECT id, group_id, group_size FROM doc_groups ORDER BY id"));
    const std::string first = production_->table(found);
    const std::string unchanged = "SELECT xmin FROM doc_copies WHERE id = 30";
    const std::string version = production_->value(unchanged);

    // A night without anything new changes no row.
    night();
    EXPECT_EQ(production_->table(found), first);
    EXPECT_EQ(production_->value(unchanged), version);

    // What is changed, deleted and inserted reaches the companion, and its results production.
    production_->rows("UPDATE docs SET body = 'like no other document' WHERE id = 1");
    production_->rows("DELETE FROM docs WHERE id = 52");
    production_->rows(
        "INSERT INTO docs (id, trusted, body) SELECT 101, true, body FROM docs WHERE id = 3");
    night();
    EXPECT_EQ(production_->table(
                  "SELECT * FROM doc_copies WHERE id IN (1, 2, 3, 51, 52, 53, 101) ORDER BY id"),
              "1|1|1\n2|2|1\n3|101|3\n51|51|1\n53|101|3\n101|101|3\n");
    EXPECT_EQ(production_->value(unchanged), version);
    EXPECT_EQ(companion_->value("SELECT sum(apply_error_count) FROM pg_stat_subscription_stats"),
              "0");
    const std::string shown = result();
    EXPECT_NE(shown.find("\n101\n"), std::string::npos);
    EXPECT_EQ(shown.find("\n53\n"), std::string::npos);
}

}  // namespace
}  // namespace gputext::live
