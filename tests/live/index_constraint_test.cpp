// Sessions insert near-duplicates at the same time into a table whose exclusion constraint refuses
// them: whatever wins, no two rows that stay are near-duplicates.
//
// GPUTEXT_INDEX_SECONDS says how long they do.

#include <map>

#include "tests/live/index_use.hpp"
#include "tests/live/live_test.hpp"
#include "tests/live/plain_session.hpp"

namespace gputext::live {
namespace {

class IndexConstraint : public LiveTest {
protected:
    static constexpr std::size_t kSessions = 6, kDocuments = 30, kVariants = 20;

    void SetUp() override {
        LiveTest::SetUp();
        if (HasFatalFailure()) return;
        session().rows("CREATE TABLE variants (document integer, variant integer, body text)");
        session().rows("INSERT INTO variants VALUES " + variants());
    }

    /// Two variants of a document are near-duplicates or nearly so: they are up to 60 edits apart,
    /// which is an edit rate of at most 0.05 for some of them.
    static std::string variants() {
        testing::RandomStrings random;
        std::string rows;
        for (std::size_t document = 0; document < kDocuments; ++document) {
            const auto text =
                random.string(200 + random.below(300), "abcdefghijklmnopqrstuvwxyz     ");
            for (std::size_t variant = 0; variant < kVariants; ++variant)
                rows += (rows.empty() ? "(" : ", (") + std::to_string(document) + ", " +
                        std::to_string(variant) + ", '" +
                        random.edited(text, random.below(30), "abcdefghijklmnopqrstuvwxyz     ") +
                        "')";
        }
        return rows;
    }

    /// A random statement that inserts a variant, changes a document into one, or removes one.
    static std::string statement(Dice& dice) {
        const auto variant = [&] {
            return "(SELECT body FROM variants WHERE document = " +
                   std::to_string(dice.below(kDocuments)) +
                   " AND variant = " + std::to_string(dice.below(kVariants)) + ")";
        };
        // One row that is chosen anew by each statement
        const std::string one = " WHERE id = (SELECT id FROM docs ORDER BY hashtext(id::text || '" +
                                std::to_string(dice.below(1000000)) + "') LIMIT 1)";
        const std::size_t kind = dice.below(100);
        if (kind < 35) return "INSERT INTO docs(body) VALUES (" + variant() + ")";
        if (kind < 65)
            return "INSERT INTO docs(body) VALUES (" + variant() + ") ON CONFLICT DO NOTHING";
        if (kind < 75)
            return "INSERT INTO docs(body) VALUES (" + variant() + "), (" + variant() +
                   ") ON CONFLICT ON CONSTRAINT no_near_duplicates DO NOTHING";
        if (kind < 85) return "UPDATE docs SET body = " + variant() + one;
        return "DELETE FROM docs" + one;
    }

    /// The sessions run statements, each in a transaction of its own or several in one; VACUUM runs
    /// all the while. Gives the number of statements by SQLSTATE.
    std::map<std::string, std::size_t> compete(const std::string& level) {
        const auto end =
            Clock::now() + std::chrono::seconds(number_from("GPUTEXT_INDEX_SECONDS", 3));
        std::vector<std::map<std::string, std::size_t>> outcomes(kSessions);
        std::vector<std::thread> threads;
        std::atomic<std::size_t> running{kSessions}, inserted{0}, refused{0};
        // On a slow machine longer, until there is something to compare
        const auto goes_on = [&] {
            return Clock::now() < end ||
                   ((inserted < 200 || refused < 20) && Clock::now() < end + 60s);
        };
        for (std::size_t number = 0; number < kSessions; ++number)
            threads.emplace_back([&, number] {
                try {
                    PlainSession own;  // libpqxx 6 forgets the SQLSTATE of a deadlock
                    own.run("SET search_path = " + schema() + ", public");
                    own.run("SET deadlock_timeout = '5ms'");
                    own.run("SET default_transaction_isolation = '" + level + "'");
                    Dice dice(testing::seed() + number);
                    while (goes_on()) {
                        const bool is_block = dice.percent(40);
                        if (is_block) own.run("BEGIN");
                        for (std::size_t i = is_block ? 1 + dice.below(3) : 1; i > 0; --i) {
                            const std::string sql = statement(dice);
                            const std::string state = own.sqlstate(sql);
                            ++outcomes[number][state];
                            inserted += state == "ok";
                            refused += state == "23P01";
                            if (state == "gone") throw std::runtime_error("ended by " + sql);
                            if (state != "ok") break;
                        }
                        if (is_block) own.sqlstate(dice.percent(80) ? "COMMIT" : "ROLLBACK");
                    }
                } catch (const std::exception& error) {
                    ADD_FAILURE() << error.what();
                }
                --running;
            });
        while (running > 0) {
            other().rows("VACUUM docs");
            std::this_thread::sleep_for(5ms);
        }
        std::map<std::string, std::size_t> all;
        for (std::size_t number = 0; number < kSessions; ++number) {
            threads[number].join();
            for (const auto& [state, count] : outcomes[number]) all[state] += count;
        }
        return all;
    }

    /// By comparing all pairs of rows.
    std::string near_pairs() {
        return session().table(
            "SELECT a.id, b.id FROM docs a JOIN docs b ON a.id < b.id AND "
            "edit_rate(a.body, b.body) <= 0.05");
    }

    void expect_no_near_pairs(const std::string& level) {
        session().rows("DROP TABLE IF EXISTS docs");
        session().rows(
            "CREATE TABLE docs (id bigint GENERATED ALWAYS AS IDENTITY, body text, "
            "CONSTRAINT no_near_duplicates EXCLUDE USING gputext (body WITH ~=))");
        auto outcomes = compete(level);
        std::string counts;
        for (const auto& [state, count] : outcomes)
            counts += " " + state + " " + std::to_string(count);
        std::printf("%s:%s, %s rows\n", level.c_str(), counts.c_str(),
                    session().value("SELECT count(*) FROM docs").c_str());
        EXPECT_EQ(near_pairs(), "") << counts;
        EXPECT_GT(outcomes["ok"], 100u) << counts;
        EXPECT_GT(outcomes["23P01"], 10u) << counts;
        for (const char* state : {"ok", "23P01", "40P01", "40001"}) outcomes.erase(state);
        EXPECT_TRUE(outcomes.empty()) << counts;
        // It has not only refused: each document that is left out has a near one.
        EXPECT_EQ(session().sqlstate(
                      "INSERT INTO docs(body) SELECT body FROM variants ORDER BY variant, document "
                      "ON CONFLICT DO NOTHING"),
                  "ok");
        EXPECT_EQ(session().value("SELECT count(*) FROM variants v WHERE NOT EXISTS (SELECT FROM "
                                  "docs d WHERE edit_rate(d.body, v.body) <= 0.05)"),
                  "0");
        EXPECT_EQ(near_pairs(), "");
        expect_sound(session(), "no_near_duplicates");
    }
};

TEST_F(IndexConstraint, LeavesNoTwoNearRowsReadCommitted) {
    expect_no_near_pairs("read committed");
}

TEST_F(IndexConstraint, LeavesNoTwoNearRowsSerializable) {
    expect_no_near_pairs("serializable");
}

// The constraint sees the rows of transactions that have not ended: it waits for them.
TEST_F(IndexConstraint, WaitsForTheOtherTransaction) {
    session().rows(
        "CREATE TABLE docs (id bigint GENERATED ALWAYS AS IDENTITY, body text, "
        "EXCLUDE USING gputext (body WITH ~=))");
    const std::string insert =
        "INSERT INTO docs(body) SELECT body || ' ' FROM variants WHERE "
        "document = 1 AND variant = 1";
    for (const bool commits : {false, true}) {
        session().rows("BEGIN");
        session().rows(insert);
        Running waiting(other(), insert);
        ASSERT_TRUE(eventually([&] {
            return session().value("SELECT count(*) FROM pg_locks WHERE NOT granted AND pid = " +
                                   std::to_string(other().pid())) == "1";
        }));
        session().rows(commits ? "COMMIT" : "ROLLBACK");
        EXPECT_EQ(waiting.wait(), commits ? "23P01" : "ok");
        if (!commits) session().rows("DELETE FROM docs");
    }
}

}  // namespace
}  // namespace gputext::live
