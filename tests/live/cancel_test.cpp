// At every stage a statement's error arrives within 200 ms of a cancel, a timeout and a
// termination, and nothing stays behind. What a stage may take is what the machine takes beyond
// that to end a pg_sleep that is cancelled at the same moment, and the time in which the session's
// threads wait for a processor. The session takes the next statement
// when it has given its memory back, which for gigabytes is work of the kernel's: that time is
// printed. GPUTEXT_TEST_LONG has each stage interrupted at several times in each way; otherwise it
// is cancelled once, and again where it was slow, and one stage in three is timed out and another
// one terminated: a stage hears of all three by the same look at PostgreSQL's flags, and what is
// done with them is the same in all.

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

#include "tests/live/live_test.hpp"
#include "tests/live/plain_session.hpp"
#include "tests/support/test_size.hpp"

namespace gputext::live {
namespace {

constexpr double kMost = 200;        // milliseconds
constexpr double kMostToFree = 400;  // a gigabyte, with both processors busy

struct Stage {
    const char* name;
    const char* settings;  // run before the statement
    std::string sql;
    std::function<bool(int pid)> reached;
    int spread;  // milliseconds after reached() over which the tries are spread
    int tries;   // of Cancel; less than kMost apart, those of a short stage miss nothing slow
    double gigabytes = 0;  // that the kernel has to take back
};

void PrintTo(const Stage& stage, std::ostream* out) {
    *out << stage.name;
}

bool at_once(int) {
    return true;
}

bool is_computing(int pid) {
    return threads_of(pid) > 1;
}

bool is_spilling(int pid) {
    return !temporary_files(pid).empty();
}

std::string pairs_of(const std::string& query, const std::string& arguments = "") {
    return "SELECT count(*) FROM near_duplicates($$" + query + "$$" + arguments + ")";
}

std::string pairs_between(const std::string& new_docs, const std::string& old_docs,
                          const std::string& arguments = "") {
    return "SELECT count(*) FROM near_duplicates_between($$" + new_docs + "$$, $$" + old_docs +
           "$$" + arguments + ")";
}

/// The rows i = 1 to count, one at a time. A function in FROM would write all of them to a
/// temporary file first, and PostgreSQL hears of no cancel while it removes a file of gigabytes.
std::string numbers(int count) {
    return "(SELECT generate_series(1::bigint, " + std::to_string(count) + ") AS i) AS numbers";
}

/// A query for that many vectors of 16 random elements.
std::string vectors(int count) {
    std::string elements = "random()";
    for (int i = 1; i < 16; ++i) elements += ", random()";
    return "SELECT i::bigint, ARRAY[" + elements + "]::real[] FROM " + numbers(count);
}

std::string neighbors_of(int queries, int items, const std::string& arguments) {
    return "SELECT count(*) FROM gpu_knn($$" + vectors(queries) + "$$, $$" + vectors(items) +
           "$$, " + arguments + ")";
}

std::string strings_of(const std::string& queries, const std::string& items,
                       const std::string& metric) {
    return "SELECT count(*) FROM gpu_knn($$" + queries + "$$, $$" + items +
           "$$, k => 1, metric => '" + metric + "')";
}

std::string clusters_of(int items, const std::string& arguments) {
    return "SELECT count(*) FROM k_means($$" + vectors(items) + "$$, " + arguments + ")";
}

/// Links records, whose column is `name`, by names that are similar or, without a `condition`,
/// equal.
std::string records_linked(const std::string& records, const std::string& condition = "") {
    const std::string level = condition.empty() ? "1, 'exact'" : "1, '" + condition + "'";
    return "SELECT count(*) FROM linked_records($$" + records +
           "$$, $$SELECT * FROM (VALUES (NULL, NULL, 'prior', false, 0.001, 0.999), ('name', " +
           level +
           ", false, 0.9, 0.0001), ('name', 0, 'else', false, 0.1, 0.9999)) AS m (field, level, "
           "condition, term_frequency, m, u)$$)";
}

/// A thesaurus of that many texts of four words each.
std::string thesaurus_of(int texts, const std::string& arguments = ", discount => 0.95") {
    return "SELECT count(*) FROM word_similarity($$SELECT ARRAY['w' || i * 7919 % 20011, 'w' || i "
           "% "
           "13, 'w' || i * i % 3001, 'w' || i % 499] FROM " +
           numbers(texts) + "$$, min_count => 1, preset => 'thesis'" + arguments + ")";
}

/// SQL for a text of about that many million bytes, quickly made. It is no constant: the planner
/// would make and copy it, in steps of PostgreSQL's that no cancel reaches.
std::string huge(int millions, const std::string& unit = "abcdefghijklmnop") {
    const auto repetitions = std::to_string(1000000 / unit.size());
    return "repeat(repeat('" + unit + "', " + repetitions + "), " + std::to_string(millions) +
           " + 0 * pg_backend_pid())";
}

/// A table that stages read, made once for all of them, as that takes seconds.
struct Table {
    const char* name;
    const char* definition;
};

// Autovacuum would have CREATE INDEX wait.
const Table kTables[] = {
    // Two documents of 5 MB, 3 % of their characters edited; signatures that make them candidates.
    {"long_pair", R"( WITH (autovacuum_enabled = off) AS
    SELECT version::bigint AS id, '1:abcdefgh:abcd'::ctph AS signature,
           string_agg(md5(CASE WHEN version = 2 AND i % 16 = 0 THEN -i ELSE i END::text), ''
                      ORDER BY i) AS body
    FROM generate_series(1, 160000) i, generate_series(1, 2) version GROUP BY version)"},
    // Documents so long and so few that mode ctph compares signatures first, each with each.
    {"signed_texts", R"( WITH (autovacuum_enabled = off) AS
    SELECT id, body, ctph_signature(body) AS signature
    FROM (SELECT i::bigint AS id, string_agg(md5(i || '.' || j), '') AS body
          FROM generate_series(1, 20000) i, generate_series(1, 64) j GROUP BY i) AS texts)"},
    // Documents of 640,000 characters, which take little room.
    {"repetitive_texts", R"( WITH (autovacuum_enabled = off, parallel_workers = 2) AS
    SELECT i AS id, repeat(md5(i::text), 20000) AS body FROM generate_series(1, 500) i)"},
    // Answers for 1,000 queries.
    {"answers", R"( WITH (autovacuum_enabled = off) AS
    SELECT i % 1000 AS query_id, i AS item_id, (i * 7919 % 100003)::float8 AS distance
    FROM generate_series(1, 3000000::bigint) i)"},
    // Short ones with their index.
    {"indexed_texts", R"( WITH (autovacuum_enabled = off) AS
    SELECT i AS id, repeat(md5(i::text), 4) AS body FROM generate_series(1, 20000) i;
    CREATE INDEX ON indexed_texts USING gputext (body))"},
};
const std::string kTablesSchema = "live_cancel_tables";

const std::string kLongPairs = "FROM long_pair a, long_pair b WHERE a.id = 1 AND b.id = 2";

std::vector<Stage> all_stages() {
    const std::string dense =
        "SELECT i::bigint, left(md5(i::text), 6) FROM generate_series(1, 3000) i";
    return {
        {"slow_scan", "",
         pairs_of("SELECT i::bigint, pg_sleep(0.01)::text "
                  "FROM generate_series(1, 100000) i"),
         at_once, 100, 4},
        {"scan", "", pairs_of("SELECT generate_series(1, 300000000)::bigint, 'short'"), at_once,
         200, 4},
        {"packing_a_huge_row", "", pairs_of("SELECT 1::bigint, " + huge(400)), has_memory_file, 300,
         4, 0.9},
        {"packing_into_a_file", "SET gputext.host_memory_limit = '1MB'",
         pairs_of("SELECT i::bigint, " + huge(100) + " FROM generate_series(1, 20) i"), is_spilling,
         300, 4, 0.4},
        {"hashing_a_huge_document", "",
         pairs_of("SELECT 1::bigint, " + huge(400), ", mode => 'ctph'"), is_computing, 500, 4, 0.9},
        {"comparing_huge_copies", "",
         pairs_of("SELECT i::bigint, " + huge(1) + " FROM generate_series(1, 1000) i"),
         is_computing, 250, 4, 1.1},
        {"counting_in_a_huge_document", "",
         pairs_of("SELECT 1::bigint, " + huge(300), ", mode => 'exact'"), is_computing, 500, 4,
         0.7},
        {"counting_wide_characters", "",
         pairs_of("SELECT 1::bigint, " + huge(100, "äöüß€éèê"), ", mode => 'exact'"), is_computing,
         700, 5, 1.0},
        {"comparing_signatures", "",
         pairs_of("SELECT id, body, signature FROM signed_texts", ", mode => 'ctph'"), is_computing,
         300, 4},
        {"comparing_like_documents", "",
         pairs_of("SELECT i::bigint, left(md5(i::text), 6) FROM generate_series(1, 300000) i",
                  ", threshold => 0.3"),
         is_computing, 300, 4},
        {"many_candidates", "", pairs_of(dense, ", threshold => 0.4"), is_computing, 1500, 8, 0.4},
        {"many_groups", "",
         "SELECT count(*) FROM near_duplicate_groups($$" + dense + "$$, threshold => 0.4)",
         is_computing, 1500, 8, 0.4},
        {"sampling_passages", "",
         "SELECT count(*) FROM shared_passages($$SELECT i, " + huge(1) +
             " || i AS body FROM " + numbers(60) + "$$, 1000)",
         is_computing, 1000, 4, 0.2},
        {"comparing_passages", "",
         "SELECT count(*) FROM passage_coverage($$SELECT i, string_agg(md5((i * j % 100003)::text), "
         "'') FROM generate_series(1, 10000) i, generate_series(1, 100) j GROUP BY i$$, 20)",
         is_computing, 3000, 6, 0.2},
        {"counting_passages", "",
         "SELECT count(*) FROM common_passages($$SELECT i, string_agg(md5((i * j % 100003)::text), "
         "'') FROM generate_series(1, 10000) i, generate_series(1, 100) j GROUP BY i$$, 20)",
         is_computing, 3000, 6, 0.2},
        {"comparing_sets", "",
         "SELECT count(*) FROM similar_sets($$SELECT i, ARRAY(SELECT (hashint4(i * 100 + j) & 1023) "
         "FROM generate_series(1, 12) j) FROM generate_series(1, 200000) i$$, 0.5)",
         is_computing, 3000, 6, 0.2},
        {"grouping_pairs", "",
         "SELECT count(*) FROM groups_of($$SELECT i * 2654435761 % 3000017 * 1000000007, i * "
         "1000000007 FROM " +
             numbers(3000000) + "$$)",
         is_computing, 500, 3, 0.2},
        {"ordering_ids", "",
         "SELECT count(*) FROM groups_of($$SELECT md5(i::text), md5((i + 1)::text) FROM " +
             numbers(300000) + "$$, NULL::text)",
         at_once, 2500, 3},
        {"reading_answers", "",
         "SELECT count(*) FROM knn_merge($$SELECT i % 1000, i, i::float8 FROM " +
             numbers(100000000) + "$$, 10)",
         at_once, 300, 3},
        {"reading_tables_of_answers", "", "SELECT count(*) FROM knn_merge('TABLE answers', NULL)",
         at_once, 100, 3},
        {"exact_features", "",
         pairs_of("SELECT i::bigint, md5(i::text) "
                  "FROM generate_series(1, 300000) i",
                  ", mode => 'exact'"),
         is_computing, 500, 4},
        {"verifying_ctph", "", pairs_of("SELECT id, body, signature FROM long_pair"), is_computing,
         500, 4},
        {"verifying_exact", "", pairs_of("SELECT id, body FROM long_pair", ", mode => 'exact'"),
         is_computing, 500, 4},
        {"returning_rows", "", pairs_of("SELECT i::bigint, 'same' FROM generate_series(1, 5000) i"),
         at_once, 600, 5, 0.3},
        {"scan_of_old_documents", "",
         pairs_between("SELECT 1::bigint, 'short'",
                       "SELECT generate_series(1, 300000000)::bigint, 'short'"),
         at_once, 200, 3},
        {"comparing_signatures_between", "",
         pairs_between("SELECT id, body, signature FROM signed_texts WHERE id % 2 = 0",
                       "SELECT id, body, signature FROM signed_texts WHERE id % 2 = 1",
                       ", mode => 'ctph'"),
         is_computing, 200, 3},
        {"comparing_documents_between", "",
         pairs_between("SELECT i::bigint, left(md5(i::text), 6) FROM generate_series(1, 100000) i",
                       "SELECT i::bigint, left(md5(i::text), 6) FROM generate_series(1, 300000) i",
                       ", threshold => 0.3"),
         is_computing, 300, 3},
        {"returning_rows_between", "",
         pairs_between("SELECT i::bigint, 'same' FROM generate_series(1, 4000) i",
                       "SELECT i::bigint, 'same' FROM generate_series(1, 4000) i"),
         at_once, 600, 3, 0.3},
        {"scan_of_vectors", "", neighbors_of(10, 100000000, "k => 1"), at_once, 300, 4, 0.3},
        {"packing_vectors_into_a_file", "SET gputext.host_memory_limit = '1MB'",
         neighbors_of(10, 100000000, "k => 1"), is_spilling, 300, 4},
        {"numbering_ids", "", neighbors_of(10, 1500000, "k => 1, exclude_self => true"),
         has_memory_file, 2000, 8, 0.3},
        {"searching_neighbors", "", neighbors_of(100000, 200000, "k => 10"), is_computing, 2000, 8,
         0.1},
        {"searching_all_neighbors", "", neighbors_of(4000, 4000, "k => 4000"), is_computing, 2000,
         8, 0.5},
        {"returning_neighbors", "", neighbors_of(2000, 2000, "k => 2000"), at_once, 1500, 12, 0.2},
        {"reading_strings", "",
         strings_of("SELECT 1, 'a'", "SELECT i, 'name ' || i FROM " + numbers(100000000), "jaro"),
         at_once, 300, 3, 0.3},
        {"comparing_strings", "",
         strings_of("SELECT i, md5(i::text) FROM " + numbers(100000),
                    "SELECT i, md5(i::text || 'x') FROM " + numbers(100000), "osa"),
         is_computing, 1500, 4, 0.1},
        {"comparing_huge_strings", "",
         strings_of("SELECT id, body FROM long_pair", "SELECT 1, " + huge(6), "osa"), at_once, 500,
         4, 0.2},
        {"reading_records", "",
         records_linked("SELECT i AS id, 'x' AS name FROM " + numbers(300000000)), at_once, 300, 3,
         0.3},
        {"reading_records_into_a_file", "SET gputext.host_memory_limit = '1MB'",
         records_linked("SELECT i AS id, md5(i::text) AS name FROM " + numbers(100000000)),
         is_spilling, 300, 3},
        {"numbering_values", "",
         records_linked("SELECT i AS id, " + huge(1) + " || i AS name FROM " + numbers(400)),
         is_computing, 300, 3, 0.4},
        {"comparing_records", "",
         records_linked("SELECT i AS id, md5(i::text) AS name FROM " + numbers(200000),
                        "jaro_winkler >= 0.9"),
         is_computing, 2500, 4, 0.1},
        {"counting_linked_records", "",
         records_linked("SELECT i AS id, 'same' AS name FROM " + numbers(100000)), is_computing,
         1500, 3, 0.1},
        {"returning_linked_records", "",
         records_linked("SELECT i AS id, 'same' AS name FROM " + numbers(4000)), at_once, 1500, 5,
         0.3},
        {"estimating_a_linkage_model", "",
         "SELECT count(*) FROM linkage_model($$SELECT i AS id, md5(i::text) AS name, i % 1000 AS "
         "part FROM " +
             numbers(200000) + "$$, '{\"name: exact, osa <= 3\",part: exact}')",
         is_computing, 2500, 4, 0.1},
        {"looking_up_matches", "",
         "SELECT count(*) FROM linkage_model($$SELECT i AS id, i % 1000 AS part FROM " +
             numbers(10) + "$$, '{part: exact}', matches => $$SELECT 1, 2 FROM " +
             numbers(100000000) + "$$)",
         at_once, 500, 3, 0.3},
        {"outlier_factors", "",
         "SELECT count(*) FROM local_outlier_factor($$" + vectors(100000) +
             "$$, 20, ties => 'breunig')",
         is_computing, 1500, 8, 0.1},
        {"clusters_by_distance", "",
         "SELECT count(*) FROM dbscan($$" + vectors(200000) + "$$, 1e-6, 3)", is_computing, 1500, 4,
         0.1},
        {"joining_neighbors", "SET gputext.host_memory_limit = '64MB'",
         "SELECT count(*) FROM dbscan($$" + vectors(20000) + "$$, 100, 3)", is_computing, 1500, 4,
         0.1},
        {"similarities", "",
         "SELECT count(*) FROM cosine_similarities(array_fill(0.5, ARRAY[16]), $$" +
             vectors(1000000) + "$$)",
         at_once, 1500, 8, 0.2},
        {"choosing_centroids", "", clusters_of(100000, "20000"), is_computing, 1500, 4, 0.1},
        {"assigning_to_centroids", "", clusters_of(100000, "500, iterations => 1000000"),
         is_computing, 2500, 4, 0.1},
        {"reading_words", "", thesaurus_of(100000000), at_once, 500, 4, 0.3},
        {"reading_words_into_a_file", "SET gputext.host_memory_limit = '1MB'",
         thesaurus_of(100000000), is_spilling, 500, 4},
        {"reading_a_huge_text", "",
         "SELECT count(*) FROM word_similarity($$SELECT " + huge(100, "to be or not ") + "$$)",
         at_once, 1500, 8, 0.3},
        // The parser hears of no cancel within a piece of a text, nor within a word.
        {"reading_a_huge_word", "",
         "SELECT count(*) FROM tfidf($$SELECT 1::bigint, " + huge(200) + "$$)", at_once, 1500, 12,
         0.3},
        {"reading_a_huge_text_without_blanks", "",
         "SELECT count(*) FROM tfidf($$SELECT 1::bigint, " + huge(100, "to,be,or,not,") + "$$)",
         at_once, 1500, 8, 0.3},
        {"building_a_dictionary_of_huge_words", "",
         "SELECT trie_agg(i::text || " + huge(48) + ") FROM generate_series(1, 4) i", at_once, 1500,
         8, 0.3},
        {"building_a_dictionary_of_nodes", "",
         "SELECT trie_agg(i::text || " + huge(3) + ", 'xbw') FROM generate_series(1, 8) i", at_once,
         2500, 8, 1.2},
        {"counting_and_comparing_words", "", thesaurus_of(1000000), is_computing, 1500, 5, 0.5},
        {"comparing_words_by_many_features", "",
         thesaurus_of(300000,
                      ", window_size => 3, measure => 'cosine', positions => false, "
                      "discount => 0, top_k => 1000"),
         is_computing, 2500, 8, 0.5},
        {"edit_distance", "", "SELECT edit_distance(a.body, b.body) " + kLongPairs, at_once, 300, 4,
         0.1},
        {"edit_rate", "", "SELECT edit_rate(a.body, b.body) " + kLongPairs, at_once, 300, 4, 0.1},
        {"edit_distance_of_huge_values", "",
         "SELECT edit_distance('x' || " + huge(60) + ", 'y' || " + huge(60) + ")", at_once, 500, 16,
         0.6},
        {"edit_distance_of_wide_values", "",
         "SELECT edit_rate(" + huge(50, "äöüß€éèê") + ", 'x' || reverse(" + huge(1, "äöüß€éèê") +
             ") || " + huge(50, "äöüß€éèê") + ")",
         at_once, 1500, 8, 2.0},
        {"searching_an_index", "SET enable_seqscan = off; SET max_parallel_workers_per_gather = 0",
         "SELECT count(*) FROM indexed_texts a JOIN indexed_texts b "
         "ON is_near_duplicate(a.body, b.body, 0.05)",
         at_once, 600, 3},
        {"searching_an_index_by_a_huge_document", "SET enable_seqscan = off",
         "SELECT count(*) FROM indexed_texts WHERE is_near_duplicate(body, " + huge(100) +
             ", 0.05)",
         at_once, 200, 3, 0.3},
        {"comparing_with_huge_documents", "",
         "SELECT is_near_duplicate('x' || " + huge(60) + ", 'y' || " + huge(60) + ", 0.05)",
         at_once, 500, 3, 0.6},
        {"building_an_index", "SET max_parallel_maintenance_workers = 0",
         "CREATE INDEX ON repetitive_texts USING gputext (body)", at_once, 250, 3},
        {"building_an_index_in_parallel", "SET max_parallel_maintenance_workers = 2",
         "CREATE INDEX ON repetitive_texts USING gputext (body)", at_once, 150, 3},
        {"building_an_index_of_huge_documents", "SET max_parallel_maintenance_workers = 0",
         "CREATE INDEX ON repetitive_texts USING gputext (repeat(body, 600))", at_once, 1500, 3,
         0.8},
        {"ctph_signature", "", "SELECT ctph_signature(" + huge(400) + ")", at_once, 600, 5, 0.8},
        {"ssdeep_hash", "", "SELECT ssdeep_hash(" + huge(400) + ")", at_once, 600, 5, 0.8},
    };
}

/// Those whose number divided by three leaves `rest`; all in long tests.
std::vector<Stage> stages(std::size_t rest) {
    const std::vector<Stage> all = all_stages();
    std::vector<Stage> chosen;
    for (std::size_t i = 0; i < all.size(); ++i)
        if (testing::tests_are_long() || i % 3 == rest) chosen.push_back(all[i]);
    return chosen;
}

/// Milliseconds for which the threads of a process wait for a processor, in all: one that waits for
/// another one's work waits no longer than that. Threads that end take their counts with them, so
/// that it is to be looked at again and again.
class ProcessorWaits {
public:
    explicit ProcessorWaits(int pid) : pid_(pid) {
        look();
        before_ = sum();
    }
    void look() {
        std::error_code error;
        std::filesystem::directory_iterator thread(proc(pid_) / "task", error), end;
        for (; !error && thread != end; thread.increment(error)) {
            std::ifstream file(thread->path() / "schedstat");
            double running = 0, waiting = 0;
            if (file >> running >> waiting) waits_[thread->path()] = 1e-6 * waiting;
        }
    }
    double since_begin() const { return sum() - before_; }

private:
    double sum() const {
        double sum = 0;
        for (const auto& [thread, waited] : waits_) sum += waited;
        return sum;
    }

    int pid_;
    std::map<std::filesystem::path, double> waits_;
    double before_ = 0;
};

/// As Running::wait().
std::string wait_for(Running& statement, ProcessorWaits& waits) {
    while (!statement.done()) {
        waits.look();
        std::this_thread::sleep_for(1ms);
    }
    waits.look();
    return statement.wait();
}

class Interruption : public LiveTest, public ::testing::WithParamInterface<Stage> {
protected:
    void SetUp() override {
        LiveTest::SetUp();
        if (HasFatalFailure()) return;
        for (const Table& table : kTables)
            if (GetParam().sql.find(table.name) != std::string::npos) make(table);
        connect();
    }

    void connect() {
        plain_ = std::make_unique<PlainSession>();
        plain().run("SET search_path = " + schema() + ", " + kTablesSchema + ", public");
        // PostgreSQL hears of no cancel while it loads and runs its compiler of expressions, which
        // it takes for queries of so many rows.
        plain().run("SET jit = off");
        if (*GetParam().settings != '\0') plain().run(GetParam().settings);
    }

    PlainSession& plain() { return *plain_; }

    void TearDown() override {
        plain_.reset();
        EXPECT_TRUE(slow_.size() <= 1 ||
                    (!testing::tests_are_long() && slow_.size() < latencies_.size()))
            << ::testing::PrintToString(slow_);
        if (!latencies_.empty()) {
            std::sort(latencies_.begin(), latencies_.end());
            std::printf(
                "             %s: %zu tries, median %.1f ms, slowest %.1f ms, "
                "ready after %.1f ms at most\n",
                GetParam().name, latencies_.size(), latencies_[latencies_.size() / 2],
                latencies_.back(), ready_);
        }
        LiveTest::TearDown();
    }

    /// Waits until the stage is reached and then as long as try number i says.
    void wait_for_stage(Running& statement, int i, int tries) {
        ASSERT_TRUE(eventually([&] { return statement.done() || is_active(other(), plain().pid()); }));
        ASSERT_TRUE(eventually([&] {
            return statement.done() || GetParam().reached(plain().pid());
        })) << "the stage was never reached";
        reached_ = Clock::now();
        const auto end = reached_ + spread_ * i / tries;
        while (Clock::now() < end && !statement.done()) std::this_thread::sleep_for(500us);
    }

    /// The statement was faster than its interruption: the next ones come within the time that it
    /// took.
    void hurry(Running& statement) {
        spread_ = std::min(spread_, std::max<Milliseconds>(0ms, statement.end() - reached_));
    }

    /// The machine may stall once; what is slow by itself is slow more often.
    void note(double latency, double ready, double control, int i) {
        latencies_.push_back(latency);
        ready_ = std::max(ready_, ready);
        if (latency < kMost + control &&
            ready < kMost + kMostToFree * GetParam().gigabytes + control)
            return;
        slow_.push_back("try " + std::to_string(i) + ": error after " + std::to_string(latency) +
                        " ms, ready after " + std::to_string(ready) +
                        " ms; the pg_sleep beside it took " + std::to_string(control) + " ms");
    }

    bool interrupted() const { return !latencies_.empty(); }

    /// Whether to interrupt it once more: no try has been in time yet.
    bool goes_on() const { return testing::tests_are_long() || latencies_.size() == slow_.size(); }

    double after(Clock::time_point begin, Clock::time_point end) {
        return std::max(0.0, Milliseconds(end - begin).count());
    }

private:
    /// Unless it is there.
    void make(const Table& table) {
        if (made_.count(table.name) > 0) return;
        Session session;
        if (made_.empty())
            session.rows("DROP SCHEMA IF EXISTS " + kTablesSchema + " CASCADE; CREATE SCHEMA " +
                         kTablesSchema);
        session.rows("SET search_path = " + kTablesSchema + ", public");
        session.rows(std::string("CREATE TABLE ") + table.name + table.definition);
        made_.insert(table.name);
    }

    static inline std::set<std::string> made_;
    std::unique_ptr<PlainSession> plain_;
    Clock::time_point reached_;
    Milliseconds spread_{GetParam().spread};
    std::vector<double> latencies_;
    std::vector<std::string> slow_;
    double ready_ = 0;
};

class ByCancel : public Interruption {};
class ByTimeout : public Interruption {};
class ByTermination : public Interruption {};

TEST_P(ByCancel, Ends) {
    Session control;
    const int tries = GetParam().tries;
    for (int i = 0; i < tries && goes_on(); ++i) {
        Running sleep(control, "SELECT pg_sleep(600)");
        Running statement(plain(), GetParam().sql);
        wait_for_stage(statement, (i + tries / 2) % tries, tries);
        ASSERT_TRUE(eventually([&] { return is_active(other(), control.pid()); }));
        const auto begin = Clock::now();
        ProcessorWaits waits(plain().pid());
        other().rows("SELECT pg_cancel_backend(" + std::to_string(plain().pid()) +
                     "), pg_cancel_backend(" + std::to_string(control.pid()) + ")");
        const std::string state = wait_for(statement, waits);
        ASSERT_EQ(sleep.wait(), "57014");
        if (state == "ok") {
            hurry(statement);
            continue;
        }
        ASSERT_EQ(state, "57014") << plain().message();
        EXPECT_NE(plain().message().find("user request"), std::string::npos) << plain().message();
        note(after(begin, plain().arrived()), after(begin, statement.end()),
             after(begin, sleep.end()) + waits.since_begin(), i);
        expect_nothing_left(plain().pid(), GetParam().name);
        EXPECT_EQ(plain().sqlstate("SELECT 1"), "ok");
    }
    // A statement may end before a try reaches it, not before all of them.
    EXPECT_TRUE(interrupted()) << "the statement was always faster than its interruption";
}

TEST_P(ByTimeout, Ends) {
    // At times that fall into the stage, as the first one to reach it shows.
    Session control;
    double reached = 0;
    {
        Running statement(plain(), GetParam().sql);
        wait_for_stage(statement, 0, 1);
        reached = after(statement.begin(), Clock::now());
        other().rows("SELECT pg_cancel_backend(" + std::to_string(plain().pid()) + ")");
    }
    for (int i = 1; i <= 2 && goes_on(); ++i) {
        const int timeout = static_cast<int>(reached) + 1 + GetParam().spread * i / 3;
        plain().run("SET statement_timeout = " + std::to_string(timeout));
        control.rows("SET statement_timeout = " + std::to_string(timeout));
        Running sleep(control, "SELECT pg_sleep(600)");
        ProcessorWaits waits(plain().pid());
        Running statement(plain(), GetParam().sql);
        const std::string state = wait_for(statement, waits);
        ASSERT_EQ(sleep.wait(), "57014");
        const double late = after(sleep.begin(), sleep.end()) - timeout + waits.since_begin();
        if (state == "ok") {  // the statement was faster this time
            EXPECT_LT(after(statement.begin(), plain().arrived()), timeout + kMost + late);
            // PostgreSQL gives a timeout that came behind the last look to the next statement.
            plain().sqlstate("SELECT 1");
            continue;
        }
        ASSERT_EQ(state, "57014");
        EXPECT_NE(plain().message().find("statement timeout"), std::string::npos)
            << plain().message();
        note(after(statement.begin(), plain().arrived()) - timeout,
             after(statement.begin(), statement.end()) - timeout, late, i);
        expect_nothing_left(plain().pid(), GetParam().name);
        plain().run("SET statement_timeout = '60s'");
        EXPECT_EQ(plain().sqlstate("SELECT 1"), "ok");
    }
}

TEST_P(ByTermination, Ends) {
    Session control;
    for (int i = 0; i < (testing::tests_are_long() ? 2 : 3) && goes_on(); ++i) {
        const int pid = plain().pid();
        Running sleep(control, "SELECT pg_sleep(600)");
        Running statement(plain(), GetParam().sql);
        wait_for_stage(statement, (i + 1) % 2, 2);
        ASSERT_TRUE(eventually([&] { return is_active(other(), control.pid()); }));
        const auto begin = Clock::now();
        ProcessorWaits waits(pid);
        other().rows("SELECT pg_terminate_backend(" + std::to_string(pid) +
                     "), pg_cancel_backend(" + std::to_string(control.pid()) + ")");
        const std::string state = wait_for(statement, waits);
        ASSERT_EQ(sleep.wait(), "57014");
        if (state != "ok") {
            ASSERT_TRUE(state == "gone" || state == "57P01") << state;
            note(after(begin, plain().arrived()), after(begin, statement.end()),
                 after(begin, sleep.end()) + waits.since_begin(), i);
        }
        // The process ends, too, and takes its files with it.
        const std::string alive =
            "SELECT count(*) FROM pg_stat_activity WHERE pid = " + std::to_string(pid);
        EXPECT_TRUE(eventually([&] { return other().value(alive) == "0"; }));
        EXPECT_TRUE(eventually([&] { return temporary_files(pid).empty(); }));
        connect();
        EXPECT_EQ(other().value("SELECT count(*) FROM near_duplicates("
                                "'SELECT i::bigint, ''same'' FROM generate_series(1, 3) i')"),
                  "3");
    }
}

std::string name_of(const ::testing::TestParamInfo<Stage>& test) {
    return test.param.name;
}
INSTANTIATE_TEST_SUITE_P(Stages, ByCancel, ::testing::ValuesIn(all_stages()), name_of);
INSTANTIATE_TEST_SUITE_P(Stages, ByTimeout, ::testing::ValuesIn(stages(0)), name_of);
INSTANTIATE_TEST_SUITE_P(Stages, ByTermination, ::testing::ValuesIn(stages(1)), name_of);

}  // namespace
}  // namespace gputext::live
