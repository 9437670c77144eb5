// Whatever a session computes, it absorbs the barriers by which DROP DATABASE and others have all
// processes of the server close files, and a cancel does not have it forget one that is pending.
//
// The functions come from pg_depend: one that is written in C needs a statement here that takes
// seconds, or has no value of SQL as an argument. Those in SQL and PL/pgSQL run statements, and the
// server looks for interrupts between these. How soon cancels and timeouts arrive, cancel_test
// says.

#include <algorithm>
#include <cstdio>
#include <set>

#include "tests/live/dice.hpp"
#include "tests/live/plain_session.hpp"
#include "tests/live/private_server.hpp"

namespace gputext::live {
namespace {

// Milliseconds. On a busy machine, and where the statement waits for a checkpoint, too, all is
// late: the session is late only if it has computed all the while, or for a time that nothing
// explains.
constexpr double kMost = 1000;
constexpr double kMostOnBusyMachine = 8000;

/// What takes seconds.
struct Heavy {
    const char* symbol;  // of the function in C, without the end "_typed"
    std::string sql;
    const char* settings = "";
};

void PrintTo(const Heavy& heavy, std::ostream* out) {
    *out << heavy.symbol;
}

const char* const kBooks = R"(
CREATE EXTENSION gputext;
CREATE TABLE books AS
SELECT string_agg(md5(i::text), '') AS a, string_agg(md5((-i)::text), '') AS b FROM generate_series(1, 300000) AS i;
)";

const char* const kTables = R"(
CREATE TABLE dictionaries AS
SELECT trie_agg(i::text) AS t, trie_agg(i::text, 'xbw') AS nodes FROM generate_series(1, 300000) AS i;
CREATE TABLE model AS
SELECT 'w' || i AS word, 1 AS count, ARRAY[i % 7, i % 11, i % 13, 1]::real[] AS vector, ARRAY[1, i % 5, 1, i % 3]::real[] AS output_vector
FROM generate_series(1, 2000) AS i;
CREATE TABLE lines AS SELECT i AS id, md5(i::text) AS body FROM generate_series(1, 40000) AS i;
CREATE INDEX ON lines USING gputext (body);
CREATE TABLE repeated (body text);
CREATE INDEX ON repeated USING gputext (repeat(repeat(body, 1000), 3000));
)";

/// The numbers i = 1 to count, one at a time.
std::string numbers(int count) {
    return "(SELECT generate_series(1::bigint, " + std::to_string(count) + ") AS i) AS numbers";
}

/// The expression of i, t (a dictionary), a and b (texts of 9.6 MB), in each of many rows.
std::string of_rows(const std::string& expression) {
    return "SELECT count(" + expression + ") FROM books, dictionaries, " + numbers(1000000000);
}

std::string of_books(const std::string& expression) {
    return "SELECT " + expression + " FROM books, generate_series(1, 1000)";
}

std::string rows_of(const std::string& call) {
    return "SELECT count(*) FROM " + call;
}

std::string vectors(int count) {
    return "SELECT i::bigint, ARRAY[random(), random(), random(), random(), random(), "
           "random()]::real[] FROM " +
           numbers(count);
}

std::string texts(int count, const std::string& columns = "i::bigint, ") {
    return "SELECT " + columns +
           "'w' || i % 2003 || ' w' || i % 499 || ' w' || i * 7919 % 20011 FROM " + numbers(count);
}

/// Records of a name each.
std::string records(int count) {
    return "SELECT i::bigint AS id, md5(i::text) AS name FROM " + numbers(count);
}

/// Of long documents: nearly all of their pairs are to be compared.
std::string documents(const std::string& function, const std::string& others = "") {
    const std::string query =
        "$$SELECT i::bigint, string_agg(md5(i || '.' || j), '') FROM generate_series(1, 4000) i, "
        "generate_series(1, 40) j GROUP BY i$$";
    return rows_of(function + "(" + query + others + ", threshold => 0.3, mode => 'exact')");
}

/// Documents of lines, each of which stands in several of them.
std::string passages() {
    return "$$SELECT i::bigint, string_agg(md5((i * j % 100003)::text), '') FROM "
           "generate_series(1, 10000) i, generate_series(1, 100) j GROUP BY i$$";
}

/// Of few different elements.
std::string many_sets() {
    return "$$SELECT i::bigint, ARRAY(SELECT (hashint4(i * 100 + j) & 1023) FROM generate_series(1, 12) "
           "j) FROM generate_series(1, 200000) i$$";
}

std::string code() {
    return "repeat(repeat(E'int f(int a) { return a + 1; }\\n', 1000), 10000 + 0 * "
           "pg_backend_pid())";
}

/// As md5() gives it, of no number in a table.
std::string hexadecimal(std::uint64_t seed) {
    std::string digits;
    for (Dice dice(seed); digits.size() < 32;) digits += "0123456789abcdef"[dice.below(16)];
    return digits;
}

/// So many conditions, which leave no row of any page.
std::string scan_without_candidates() {
    std::string sql = "SELECT count(*) FROM lines WHERE true";
    for (int i = 0; i < 1000; ++i)
        sql += " AND is_near_duplicate(body, '" + hexadecimal(i) + "', 0.3)";
    return sql;
}

const char* const kNoSeqScan = "SET enable_seqscan = off; SET max_parallel_workers_per_gather = 0";

std::vector<Heavy> heavy_calls() {
    const std::string ctph = "('8:' || repeat('abc', i::integer % 7 + 1) || ':d')::ctph";
    const std::string vector = "ARRAY[i, 1, 2]::real[]";
    const std::string model = "$$SELECT word, vector FROM model$$";
    const std::string linkage =
        "SELECT * FROM (VALUES (NULL, NULL, 'prior', false, 0.001, 0.999), ('name', 1, "
        "'jaro_winkler >= 0.9', false, 0.9, 0.0001), ('name', 0, 'else', false, 0.1, 0.9999)) AS "
        "m (field, level, condition, term_frequency, m, u)";
    const std::string words = "$$SELECT i::bigint, i::text FROM " + numbers(100000000) + "$$";
    return {
        {"gputext_ctph_in", of_rows(ctph)},
        {"gputext_ctph_out", of_rows(ctph + "::text")},
        {"gputext_ctph_send", of_rows("ctph_send(" + ctph + ")")},
        {"gputext_ctph_eq", of_rows(ctph + " = '8:abc:d'")},
        {"gputext_ctph_ne", of_rows(ctph + " <> '8:abc:d'")},
        {"gputext_ctph_lt", of_rows(ctph + " < '8:abc:d'")},
        {"gputext_ctph_le", of_rows(ctph + " <= '8:abc:d'")},
        {"gputext_ctph_gt", of_rows(ctph + " > '8:abc:d'")},
        {"gputext_ctph_ge", of_rows(ctph + " >= '8:abc:d'")},
        {"gputext_ctph_cmp", of_rows("ctph_cmp(" + ctph + ", '8:abc:d')")},
        {"gputext_ctph_hash", of_rows("ctph_hash(" + ctph + ")")},
        {"gputext_ctph_hash_extended", of_rows("ctph_hash_extended(" + ctph + ", i)")},
        {"gputext_edit_rate_ctph", of_rows("edit_rate(" + ctph + ", '8:abc:d'::ctph)")},
        {"gputext_ctph_signature", of_books("ctph_signature(repeat(a, 40))")},
        {"gputext_ssdeep_hash", of_books("ssdeep_hash(repeat(a, 40))")},
        {"gputext_ssdeep_compare", of_rows("ssdeep_compare('3:abcdefgh:d', '3:abcdefgi:d')")},
        {"gputext_edit_distance_text", of_books("edit_distance(a, b)")},
        {"gputext_edit_distance_text_max", of_books("edit_distance(a, b, 5000000)")},
        {"gputext_edit_distance_bytea", of_books("edit_distance(a::bytea, b::bytea)")},
        {"gputext_edit_distance_bytea_max", of_books("edit_distance(a::bytea, b::bytea, 5000000)")},
        {"gputext_edit_rate_text", of_books("edit_rate(a, b)")},
        {"gputext_edit_rate_bytea", of_books("edit_rate(a::bytea, b::bytea)")},
        {"gputext_is_near_duplicate_text", of_books("is_near_duplicate(a, b, 0.49)")},
        {"gputext_is_near_duplicate_bytea",
         of_books("is_near_duplicate(a::bytea, b::bytea, 0.49)")},
        {"gputext_near_text", of_books("is_near_duplicate(a, b)"),
         "SET gputext.near_duplicate_threshold = 0.49"},
        {"gputext_near_bytea", of_books("is_near_duplicate(a::bytea, b::bytea)"),
         "SET gputext.near_duplicate_threshold = 0.49"},
        {"gputext_near_query_of_text",
         of_books("is_near_duplicate(a, near_duplicate_query(b, 0.49))")},
        {"gputext_near_query_of_bytea",
         of_books("is_near_duplicate(a::bytea, near_duplicate_query(b::bytea, 0.49))")},
        {"gputext_near_duplicate_query_text", of_rows("near_duplicate_query(i::text, 0.05)")},
        {"gputext_near_duplicate_query_bytea",
         of_rows("near_duplicate_query(i::text::bytea, 0.05)")},
        {"gputext_near_duplicate_query_in", of_rows("('text,0.05,' || i)::near_duplicate_query")},
        {"gputext_near_duplicate_query_out", of_rows("near_duplicate_query(i::text, 0.05)::text")},
        {"gputext_near_duplicates", documents("near_duplicates")},
        {"gputext_near_duplicate_groups", documents("near_duplicate_groups")},
        {"gputext_near_duplicates_between",
         documents("near_duplicates_between",
                   ", $$SELECT -i::bigint, string_agg(md5(i || '-' || j), '') FROM "
                   "generate_series(1, 4000) i, "
                   "generate_series(1, 40) j GROUP BY i$$")},
        {"gputext_index_check",
         "DO $$BEGIN FOR i IN 1 .. 1000 LOOP PERFORM gputext_index_check('lines_body_idx', true); "
         "END LOOP; END$$"},
        {"gputext_index_handler", scan_without_candidates(), kNoSeqScan},
        {"gputext_index_handler",
         "CREATE INDEX ON books USING gputext (repeat(a, 90 + 0 * length(a)))"},
        {"gputext_index_handler",
         "CREATE INDEX ON lines USING gputext (repeat(repeat(body, 1000), 30))",
         "SET max_parallel_maintenance_workers = 2"},
        {"gputext_index_handler", "INSERT INTO repeated SELECT body FROM lines"},
        {"gputext_shared_passages", rows_of("shared_passages(" + passages() + ", 20)")},
        {"gputext_shared_passages_between",
         rows_of("shared_passages_between(" + passages() + ", " + passages() + ", 20)")},
        {"gputext_common_passages", rows_of("common_passages(" + passages() + ", 20)")},
        {"gputext_passage_coverage", rows_of("passage_coverage(" + passages() + ", 20)")},
        {"gputext_passage_coverage_between",
         rows_of("passage_coverage_between(" + passages() + ", " + passages() + ", 20)")},
        {"gputext_similar_sets", rows_of("similar_sets(" + many_sets() + ", 0.5)")},
        {"gputext_similar_sets_between",
         rows_of("similar_sets_between(" + many_sets() + ", " + many_sets() + ", 0.5)")},
        {"gputext_cut_passages",
         "SELECT cut_passages(repeat('a', 300000000 + 0 * pg_backend_pid()), '{1}', '{5}')"},
        {"gputext_groups_of",
         rows_of("groups_of($$SELECT i, i + 1 FROM " + numbers(30000000) + "$$)")},
        {"gputext_linkage_model",
         rows_of("linkage_model($$" + records(300000) + "$$, '{name: jaro_winkler >= 0.9}')")},
        {"gputext_linkage_model_between",
         rows_of("linkage_model_between($$" + records(300000) + "$$, $$" + records(300000) +
                 "$$, '{name: jaro_winkler >= 0.9}')")},
        {"gputext_linked_records",
         rows_of("linked_records($$" + records(300000) + "$$, $$" + linkage + "$$)")},
        {"gputext_linked_records",
         rows_of("linked_records($$" + records(100000000) + "$$, $$" + linkage + "$$)")},
        {"gputext_linked_records_between",
         rows_of("linked_records_between($$" + records(300000) + "$$, $$" + records(300000) +
                 "$$, $$" + linkage + "$$)")},
        {"gputext_knn",
         rows_of("gpu_knn($$" + vectors(50000) + "$$, $$" + vectors(100000) + "$$, k => 10)")},
        {"gputext_knn",
         rows_of("gpu_knn($$" + vectors(10) + "$$, $$" + vectors(10) + "$$, k => 1)"),
         "SET gputext.device = gpu; SET gputext.inject_fault = 'in_job:slow:30000'"},
        {"gputext_knn_within",
         rows_of("gpu_knn_within($$" + vectors(50000) + "$$, $$" + vectors(100000) + "$$, 1e-6)")},
        {"gputext_jaro_similarity", of_rows("jaro_similarity(a, b)")},
        {"gputext_jaro_winkler_similarity", of_rows("jaro_winkler_similarity(a, b)")},
        {"gputext_osa_distance", of_rows("osa_distance(a, b)")},
        {"gputext_damerau_levenshtein", of_rows("damerau_levenshtein(a, b)")},
        {"gputext_knn_merge",
         rows_of("knn_merge($$SELECT i % 1000, i, (i * 7919 % 100003)::float8 FROM " +
                 numbers(30000000) + "$$, 10)")},
        {"gputext_tfidf", rows_of("tfidf($$" + texts(30000000) + "$$, 'simple'::regconfig)")},
        {"gputext_tfidf_frequencies",
         rows_of("tfidf_frequencies($$" + texts(30000000) + "$$, 'simple'::regconfig)")},
        {"gputext_tfidf_from_frequencies",
         rows_of("tfidf_from_frequencies($$" + texts(30000000) +
                 "$$, $$SELECT * FROM tfidf_frequencies('SELECT 1::bigint, "
                 "''w1 w2''', 'simple'::regconfig)$$, 'simple'::regconfig)")},
        {"gputext_cosine_similarity", of_rows("cosine_similarity(" + vector + ", '{1,2,3}')")},
        {"gputext_euclidean_distance", of_rows("euclidean_distance(" + vector + ", '{1,2,3}')")},
        {"gputext_cosine_distance", of_rows("cosine_distance(" + vector + ", '{1,2,3}')")},
        {"gputext_negative_inner_product",
         of_rows("negative_inner_product(" + vector + ", '{1,2,3}')")},
        {"gputext_manhattan_distance", of_rows("manhattan_distance(" + vector + ", '{1,2,3}')")},
        {"gputext_cosine_similarities",
         rows_of("cosine_similarities('{1,2,3,4,5,6}', $$" + vectors(30000000) + "$$)")},
        {"gputext_local_outlier_factor",
         rows_of("local_outlier_factor($$" + vectors(50000) + "$$, 20)")},
        {"gputext_dbscan", rows_of("dbscan($$" + vectors(100000) + "$$, 1e-6, 3)")},
        {"gputext_semantic_duplicate_groups",
         rows_of("semantic_duplicate_groups($$" + vectors(100000) + "$$, 1e-9)")},
        {"gputext_k_means",
         rows_of("k_means($$" + vectors(100000) + "$$, 500, iterations => 1000000)")},
        {"gputext_k_means_centroids",
         rows_of("k_means_centroids($$" + vectors(100000) + "$$, 500, iterations => 1000000)")},
        {"gputext_trie_in", of_rows("trie_in(textout(t::text))")},
        {"gputext_trie_out", of_rows("t::text")},
        {"gputext_trie_send", of_rows("t::bytea")},
        {"gputext_trie_from_bytea", of_rows("t::bytea::trie")},
        {"gputext_trie_agg_transition",
         "SELECT trie_agg(a || i) FROM books, generate_series(1, 60) AS i"},
        {"gputext_trie_agg_final", "SELECT trie_agg(i::text, 'xbw') FROM " + numbers(3000000)},
        {"gputext_trie_stats", of_rows("trie_stats(t)")},
        {"gputext_trie_summary", of_rows("trie_summary(t)")},
        {"gputext_trie_lookup", of_rows("trie_lookup(t, i::text)")},
        {"gputext_trie_decode", of_rows("trie_decode(t, i % 300000)")},
        {"gputext_trie_node", of_rows("trie_node(nodes, i::text)")},
        {"gputext_trie_prefix_range", of_rows("trie_prefix_range(t, i::text)")},
        {"gputext_trie_prefix",
         "SELECT count(w.*) FROM dictionaries, generate_series(1, 1000), LATERAL trie_prefix(t, "
         "'') AS w"},
        {"gputext_trie_prefixes_of",
         "SELECT count(w.*) FROM dictionaries, books, generate_series(1, 1000000), LATERAL "
         "trie_prefixes_of(t, repeat('1', generate_series)) AS w"},
        {"gputext_trie_words",
         "SELECT count(w.*) FROM dictionaries, generate_series(1, 1000), LATERAL trie_words(t) AS "
         "w"},
        {"gputext_trie_encode",
         "SELECT count(w.*) FROM dictionaries, LATERAL trie_encode(t, " + words + ") AS w"},
        {"gputext_trie_encode_documents",
         "SELECT count(w.*) FROM dictionaries, LATERAL trie_encode_documents(t, " + words +
             ") AS w"},
        {"gputext_word_similarity",
         rows_of("word_similarity($$" + texts(1500000, "") + "$$, min_count => 1)")},
        {"gputext_word_similarity_pairs",
         rows_of("word_similarity_pairs($$" + texts(1500000, "") + "$$, min_count => 1)")},
        {"gputext_word_cooccurrences",
         rows_of(
             "word_cooccurrences($$SELECT repeat(repeat('w ', 100000), 400)$$, min_count => 1)")},
        {"gputext_word_similarity_from_counts",
         rows_of("word_similarity_from_counts($$SELECT 'w' || i % 20011, (i % 3 + 1)::integer, 'w' "
                 "|| i * "
                 "7919 % 3001, i % 5 + 1 FROM " +
                 numbers(30000000) + "$$)")},
        {"gputext_word_similarity_from_words",
         rows_of("word_similarity_from_counts($$SELECT 'w' || i % 20011, (i % 3 + 1)::integer, 'w' "
                 "|| i * "
                 "7919 % 3001, i % 5 + 1 FROM " +
                 numbers(30000000) + "$$, $$SELECT 'w' || i, i FROM " + numbers(30000) + "$$)")},
        {"gputext_word_frequencies", rows_of("word_frequencies($$" + texts(30000000, "") + "$$)")},
        {"gputext_word2vec",
         rows_of("word2vec($$" + texts(300000, "") + "$$, min_count => 1, epochs => 100)")},
        {"gputext_word2vec_average",
         rows_of("word2vec_average($$SELECT i % 2 AS part, 'w' || i AS word, i AS count, ARRAY[1, "
                 "i]::real[] AS vector, ARRAY[1, i]::real[] AS output_vector FROM " +
                 numbers(30000000) + "$$)")},
        {"gputext_word_movers_distance", rows_of("word_movers_distance(" + model +
                                                 ", $$SELECT i, string_to_array(repeat('w' || i % "
                                                 "2000 || ' w5 w' || i % 1999 || ' ', 20), ' '), "
                                                 "ARRAY['w7', 'w' || i % 1997] FROM " +
                                                 numbers(30000000) + "$$)")},
        {"gputext_sequence_probability",
         rows_of("sequence_probability($$SELECT word, vector, output_vector FROM model$$, "
                 "$$SELECT i, ARRAY['w1', 'w' || i % 2000, 'w3'] FROM " +
                 numbers(30000000) + "$$)")},
        {"gputext_code_tokens", "SELECT length(code_tokens(" + code() + ")::text)"},
        {"gputext_code_lines", "SELECT length(code_lines(" + code() + ")::text)"},
        {"gputext_rows_as_text", rows_of("gputext_rows_as_text($$SELECT i, i::text FROM " +
                                         numbers(30000000) + "$$, NULL::bigint, 2)")},
        {"gputext_type_text", of_rows("gputext_type_text((20 + i % 2)::oid)")},
        {"gputext_equality", of_rows("gputext_equality((20 + i % 2)::oid)")},
        {"gputext_reals", of_rows("gputext_reals('{1,2,3}')")},
        {"gputext_devices", of_rows("(SELECT count(*) + i FROM gputext_devices())")},
        {"gputext_activity", of_rows("(SELECT count(*) + i FROM gputext_activity())")},
        {"gputext_stat", of_rows("(SELECT (gputext_stat()).gpu_jobs + i)")},
        {"gputext_resident", of_rows("(SELECT count(*) + i FROM gputext_resident())")},
        {"gputext_evict", of_rows("gputext_evict('books') + i")},
        {"gputext_evict_all", of_rows("gputext_evict() + i")},
    };
}

/// Functions in C that a statement cannot give arguments, that of pgvector's indexes, which
/// searches as gpu_knn does, one that returns a null, those that wait for other servers, and those
/// of trie_agg that a plan calls where parallel workers gather words.
const std::set<std::string> kNotCalled = {
    "gputext_ctph_recv",
    "gputext_trie_recv",
    "gputext_id_type_support",
    "gputext_near_support",
    "gputext_knn_recall",
    "gputext_near_selectivity",
    "gputext_bigint_ids",
    "gputext_connect",
    "gputext_send",
    "gputext_answers",
    "gputext_disconnect",
    "gputext_trie_agg_combine",
    "gputext_trie_agg_serialize",
    "gputext_trie_agg_deserialize",
    "gputext_word_similarity_from"};  // as gputext_word_similarity_from_counts

class Barrier : public ::testing::Test {
protected:
    static void SetUpTestSuite() {
        server_ = std::make_unique<PrivateServer>("allow_in_place_tablespaces = on\n");
        server_->start();
        Session session(where());
        session.rows(kBooks);
        session.rows("CREATE TABLESPACE used LOCATION ''");
        session.rows("CREATE TABLE in_tablespace () TABLESPACE used");
    }

    static void TearDownTestSuite() {
        std::sort(waits_.begin(), waits_.end());
        if (!waits_.empty())
            std::printf("             %zu barriers: median %.1f ms, p99 %.1f ms, slowest %.1f ms\n",
                        waits_.size(), waits_[waits_.size() / 2],
                        waits_[(waits_.size() - 1) * 99 / 100], waits_.back());
        server_.reset();
    }

    static ConnectionString where() { return server_->connection(); }

    void SetUp() override {
        session_ = std::make_unique<PlainSession>(where());
        other_ = std::make_unique<Session>(where());
        watcher_ = std::make_unique<Session>(where());
        session_->run("SET jit = off");
    }

    PlainSession& session() { return *session_; }
    Session& other() { return *other_; }

    /// Waits until it has computed for a while, or waits for something.
    void reach(Running& statement) {
        const long before = ticks_of(session().pid());
        ASSERT_TRUE(
            eventually([&] { return statement.done() || is_active(other(), session().pid()); }));
        const auto begin = Clock::now();
        ASSERT_TRUE(eventually([&] {
            return statement.done() || ticks_of(session().pid()) > before + 10 ||
                   Clock::now() > begin + 300ms;
        }));
    }

    /// That the other session's statement, begun after `ticks` of the session, ended soon.
    void expect_soon(double wait, long ticks) {
        waits_.push_back(wait);
        const double computed = 10.0 * static_cast<double>(ticks_of(session().pid()) - ticks);
        EXPECT_LT(std::min(wait, computed), kMost) << "waited " << wait << " ms";
        EXPECT_LT(wait, kMostOnBusyMachine);
    }

    /// Has all processes absorb a barrier, by a statement that ends with the SQLSTATE, `count`
    /// times while the statement runs.
    void absorb_while(Running& statement, std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) {
            const long ticks = ticks_of(session().pid());
            const auto begin = Clock::now();
            ASSERT_EQ(other().sqlstate(kEmit), kEmitted);
            const double wait = Milliseconds(Clock::now() - begin).count();
            ASSERT_FALSE(statement.done())
                << "the statement was too fast: " << statement.wait() << session().message();
            expect_soon(wait, ticks);
            std::this_thread::sleep_for(10ms);
        }
    }

    /// Has the session find a barrier and a cancel at the same time: it is stopped until both have
    /// been sent. `emit` and its SQLSTATE are of the statement that sends the barrier.
    void cancel_with_barrier(Running& statement, const std::string& emit, const char* emitted) {
        send_signal(session().pid(), SIGSTOP);
        ASSERT_TRUE(eventually([&] { return state_of(session().pid()) == 'T'; }));
        Running emitter(other(), emit);
        const bool waits = eventually([&] { return waits_for_barrier(other().pid()); });
        watcher_->rows("SELECT pg_cancel_backend(" + std::to_string(session().pid()) + ")");
        const long ticks = ticks_of(session().pid());
        const auto begin = Clock::now();
        send_signal(session().pid(), SIGCONT);
        EXPECT_TRUE(waits);
        EXPECT_EQ(statement.wait(), "57014") << session().message();
        EXPECT_EQ(emitter.wait(), emitted) << other().message();
        expect_soon(Milliseconds(emitter.end() - begin).count(), ticks);
        EXPECT_EQ(session().sqlstate("SELECT 1"), "ok");
    }

    /// The server sees only when all processes have closed their files that there is a table in it.
    static constexpr const char* kEmit = "DROP TABLESPACE used";
    static constexpr const char* kEmitted = "55000";

    /// Processor time of the process, in hundredths of a second.
    static long ticks_of(pid_t pid) {
        const std::string stat = contents(proc(pid) / "stat");
        std::istringstream fields(stat.substr(stat.rfind(')') + 2));
        std::string field;
        for (int i = 0; i < 11; ++i) fields >> field;
        long user = 0, system = 0;
        fields >> user >> system;
        return user + system;
    }

private:
    bool waits_for_barrier(int pid) {
        return watcher_->value(
                   "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'ProcSignalBarrier' "
                   "AND pid = " +
                   std::to_string(pid)) == "1";
    }

    static inline std::unique_ptr<PrivateServer> server_;
    static inline std::vector<double> waits_;
    std::unique_ptr<PlainSession> session_;
    std::unique_ptr<Session> other_, watcher_;
};

class BarrierOfCall : public Barrier, public ::testing::WithParamInterface<Heavy> {
protected:
    static void SetUpTestSuite() {
        Barrier::SetUpTestSuite();
        Session(where()).rows(kTables);
    }
};

TEST_P(BarrierOfCall, IsAbsorbedAndNotForgotten) {
    if (*GetParam().settings != '\0') session().run(GetParam().settings);
    Running statement(session(), GetParam().sql);
    reach(statement);
    absorb_while(statement, 5);
    if (!HasFailure()) cancel_with_barrier(statement, kEmit, kEmitted);
    if (!statement.done())
        other().rows("SELECT pg_cancel_backend(" + std::to_string(session().pid()) + ")");
}

INSTANTIATE_TEST_SUITE_P(Calls, BarrierOfCall, ::testing::ValuesIn(heavy_calls()),
                         [](const auto& test) {
                             return std::string(test.param.symbol) + "_" +
                                    std::to_string(test.index);
                         });

TEST_F(Barrier, OfDropDatabaseIsNotForgottenByATimeout) {
    other().rows("CREATE DATABASE first");
    other().rows("CREATE DATABASE second");
    session().run("SET statement_timeout = '2s'");
    Running statement(session(), of_books("edit_distance(a, b)"));
    reach(statement);
    const long ticks = ticks_of(session().pid());
    const auto begin = Clock::now();
    EXPECT_EQ(other().sqlstate("DROP DATABASE first"), "ok");
    expect_soon(Milliseconds(Clock::now() - begin).count(), ticks);
    ASSERT_FALSE(statement.done());
    cancel_with_barrier(statement, "DROP DATABASE second", "ok");
}

/// An error that is caught goes on in the same transaction.
TEST_F(Barrier, IsNotForgottenWhereTheCancelIsCaught) {
    Running statement(session(),
                      "DO $$BEGIN PERFORM edit_distance(a, b) FROM books; EXCEPTION WHEN "
                      "query_canceled THEN PERFORM pg_sleep(3); RAISE; END$$");
    reach(statement);
    cancel_with_barrier(statement, kEmit, kEmitted);
}

TEST_F(Barrier, IsTestedForEachFunction) {
    std::set<std::string> known = kNotCalled;
    for (const Heavy& heavy : heavy_calls()) known.insert(heavy.symbol);
    for (const auto& row :
         other().rows("SELECT DISTINCT regexp_replace(p.prosrc, '_typed$', '') "
                      "FROM pg_proc p JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND "
                      "     d.objid = p.oid AND d.deptype = 'e' "
                      "     JOIN pg_extension e ON d.refclassid = 'pg_extension'::regclass AND "
                      "     d.refobjid = e.oid JOIN pg_language l ON l.oid = p.prolang "
                      "WHERE e.extname = 'gputext' AND l.lanname = 'c'"))
        EXPECT_EQ(known.count(row[0].c_str()), 1u)
            << row[0].c_str() << " needs a statement in heavy_calls() that takes seconds";
}

}  // namespace
}  // namespace gputext::live
