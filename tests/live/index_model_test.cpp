// Random changes of a table with an index of the access method gputext: whatever way a search goes
// through the index, it finds the rows that a search of the table finds.
//
// GPUTEXT_INDEX_OPERATIONS says how many rows are changed in all tests together, and
// GPUTEXT_TEST_SEED repeats a run.

#include "tests/live/index_use.hpp"
#include "tests/live/live_test.hpp"

namespace gputext::live {
namespace {

constexpr std::size_t kPool = 600, kRows = 1200, kTests = 8;

std::size_t operations_of_a_test() {
    return number_from("GPUTEXT_INDEX_OPERATIONS", testing::rounds(26000, 104000)) / kTests;
}

/// A table docs and its index.
struct Kind {
    const char* name;
    const char* column;  // of the pool, whose documents the rows have
    const char* type;
    const char* index;  // what follows USING gputext
    Searched searched;
};

void PrintTo(const Kind& kind, std::ostream* out) {
    *out << kind.name;
}

class IndexModel : public LiveTest {
protected:
    void create(const Kind& kind) {
        create_pool(session(), kPool);
        session().rows(std::string("CREATE TABLE docs (id integer, part integer, body ") +
                       kind.type + ", seen integer) WITH (fillfactor = 70)");
        session().rows(std::string("CREATE INDEX docs_index ON docs USING gputext ") + kind.index);
    }
};

class IndexKinds : public IndexModel, public ::testing::WithParamInterface<Kind> {};

TEST_P(IndexKinds, FindWhatTheTableHas) {
    create(GetParam());
    const Searched& searched = GetParam().searched;
    Dice dice(testing::seed());
    RandomChanges changes(session(), dice, kPool, kRows, GetParam().column);
    const std::size_t wanted = operations_of_a_test();
    std::size_t done = 0, found = 0;
    for (std::size_t batch = 1; done < wanted && !HasFailure(); ++batch) {
        done += dice.percent(30) ? changes.transaction() : changes.change();
        if (dice.percent(4)) session().rows("VACUUM docs");
        if (batch % 25 == 0) found += expect_index_finds_all(session(), dice, kPool, searched);
        if (batch % 100 == 0) {
            // Rows that the transaction itself has made and removed
            session().rows("BEGIN");
            done += changes.change() + changes.change();
            found += expect_index_finds_all(session(), dice, kPool, searched, 4, false);
            session().rows(dice.percent(50) ? "COMMIT" : "ROLLBACK");
        }
    }
    for (int i = 0; i < 5; ++i) found += expect_index_finds_all(session(), dice, kPool, searched);
    EXPECT_GT(found, done / 100);
    expect_sound(session());
    session().rows("DELETE FROM docs");
    session().rows("VACUUM docs");
    expect_index_finds_all(session(), dice, kPool, searched);
    expect_sound(session());
}

INSTANTIATE_TEST_SUITE_P(
    All, IndexKinds,
    ::testing::Values(
        Kind{"Plain", "body", "text", "(body)", {}},
        Kind{"Partial", "body", "text", "(body) WHERE part = 1", {.condition = " AND d.part = 1"}},
        Kind{"Expression",
             "body",
             "text",
             "(lower(body))",
             {.document = "lower(d.body)", .query = "lower(p.body)"}},
        Kind{"FewestBins", "body", "text", "(body) WITH (bins = 32)", {}},
        Kind{"MostBins", "body", "text", "(body) WITH (bins = 1024)", {}},
        Kind{"Bytea", "data", "bytea", "(body)", {.query = "p.data"}}),
    [](const auto& test) { return std::string(test.param.name); });

// ---- Several sessions ----

TEST_F(IndexModel, SessionsFindWhatTheTableHasWhileOthersChangeIt) {
    create({"", "", "text", "(body)", {}});
    constexpr std::size_t kSessions = 3;
    const std::size_t wanted = 2 * operations_of_a_test() / kSessions;
    std::atomic<std::size_t> running{kSessions}, found{0};
    std::vector<std::thread> threads;
    for (std::size_t number = 0; number < kSessions; ++number)
        threads.emplace_back([&, number] {
            try {
                Session own;
                own.rows("SET search_path = " + schema() + ", public");
                Dice dice(testing::seed() + number);
                RandomChanges changes(own, dice, kPool, kRows / kSessions, "body", number,
                                      kSessions);
                std::size_t done = 0;
                for (std::size_t batch = 1; done < wanted && !HasFailure(); ++batch) {
                    done += dice.percent(30) ? changes.transaction() : changes.change();
                    if (batch % 30 == 0) found += expect_index_finds_all(own, dice, kPool);
                }
            } catch (const std::exception& error) {
                ADD_FAILURE() << error.what();
            }
            --running;
        });
    while (running > 0) {
        session().rows("VACUUM docs");
        std::this_thread::sleep_for(20ms);
    }
    for (std::thread& thread : threads) thread.join();
    Dice dice(testing::seed());
    for (int i = 0; i < 5; ++i) found += expect_index_finds_all(session(), dice, kPool);
    EXPECT_GT(found, wanted / 100);
    expect_sound(session());
}

}  // namespace
}  // namespace gputext::live
