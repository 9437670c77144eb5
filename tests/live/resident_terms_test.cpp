// gputextd keeps the terms that statements have made of texts and tsvectors: a later statement
// parses only what is new, and gives the rows, in bits and order, that it would give if it parsed
// everything, whatever has happened to the table, the text search configuration, or gputextd.

#include <sys/stat.h>
#include <unistd.h>

#include "tests/live/resident_use.hpp"

namespace gputext::live {
namespace {

constexpr long kRows = 600;

/// Whole rows of a set, with their numbers, and so in their order.
std::string digest_of(const std::string& set) {
    return "SELECT count(*) || ' ' || coalesce(sum(hash_record_extended(s, 0)), 0) FROM " + set +
           " WITH ORDINALITY AS s";
}

/// A column, as it is stored and as the value of an expression, which has no pointer.
struct Column {
    std::string name, expression;
};
const Column kBody{"body", "body || ''"}, kTerms{"terms", "terms || ''::tsvector"},
    kWords{"words", "words || '{}'::text[]"};

class ResidentTerms : public ResidentTest {
protected:
    void SetUp() override {
        DaemonTest::SetUp();
        if (HasFailure()) return;
        session().rows("DROP TABLE IF EXISTS papers, questions CASCADE");
        session().rows("SELECT gputext_evict()");
        session().rows(
            "CREATE TABLE papers (id bigint, kind int, body text, terms tsvector, words text[])");
        for (const char* column : {"body", "terms", "words"})
            session().rows(std::string("ALTER TABLE papers ALTER ") + column +
                           " SET STORAGE EXTERNAL");
        // Once for all tests: to make papers takes longer than most of them.
        if (session().value("SELECT to_regclass('first_papers')") == "NULL") {
            insert(1, kRows, 0);
            session().rows("CREATE TABLE first_papers (LIKE papers INCLUDING STORAGE)");
            session().rows("INSERT INTO first_papers TABLE papers");
        } else {
            session().rows("INSERT INTO papers TABLE first_papers");
        }
        session().rows(
            "CREATE TABLE questions AS SELECT id, left(body, 300) AS body FROM papers "
            "WHERE id % 50 = 1");
    }

    /// Papers of 600 words, 300 of them different, of which some begin to occur late: of fewer, their tsvectors
    /// would be so short that gputextd is not asked for them.
    void insert(long first, long last, int salt) {
        session().rows(
            "WITH made AS (SELECT i, (SELECT string_agg('word' || (abs(hashint4(i * 1000 + j % 300 + " +
            std::to_string(salt) +
            ")::bigint) % (2000 + i * 10))::text || CASE j % 9 WHEN 0 THEN ' the ' WHEN 1 THEN "
            "' runs. ' WHEN 2 THEN ' running, ' ELSE ' ' END, '') FROM generate_series(1, 600) j) "
            "AS body FROM generate_series(" +
            std::to_string(first) + ", " + std::to_string(last) +
            ") i) INSERT INTO papers SELECT i, i % 3, body, to_tsvector('english', body), "
            "string_to_array(body, ' ') FROM made");
    }

    static std::string tfidf(const std::string& column, const std::string& from,
                             const std::string& config = "english") {
        return digest_of("tfidf($$SELECT id, " + column + " FROM " + from + "$$, config => '" +
                         config + "')");
    }
    static std::string neighbors(const std::string& column, const std::string& from) {
        return digest_of("gpu_knn($$SELECT id, body FROM questions$$, $$SELECT id, " + column +
                         " FROM " + from + "$$, 7, config => 'english')");
    }

    /// Gives the answer of the expression, and finds and reads so many values.
    void expect_use(Session& session, const std::function<std::string(const std::string&)>& call,
                    const Column& column, const Use& wanted, const std::string& what = "") {
        const std::string right = session.value(call(column.expression));
        const Use before = use_of(session, "papers");
        EXPECT_EQ(session.value(call(column.name)), right) << what << call(column.name);
        const Use after = use_of(session, "papers");
        EXPECT_EQ(after - before, wanted) << what << call(column.name);
    }
    void expect_tfidf(const std::string& from, const Use& wanted, const std::string& what = "") {
        expect_use(
            session(), [&](const std::string& column) { return tfidf(column, from); }, kBody,
            wanted, what);
    }
};

TEST_F(ResidentTerms, AreParsedOnceForAllFunctions) {
    const auto with = [](const std::string& before, const std::string& behind) {
        return [=](const std::string& column) {
            return digest_of(before + column + " FROM papers" + behind);
        };
    };
    const auto knn = with("gpu_knn($$SELECT id, body FROM questions$$, $$SELECT id, ", "$$, 7)");
    const auto within =
        with("gpu_knn_within($$SELECT id, body FROM questions$$, $$SELECT id, ", "$$, 0.8)");
    const auto weights = with("tfidf($$SELECT id, ", "$$)");
    // What is kept are counts, which any weighting is computed of.
    const auto bm25 =
        with("gpu_knn($$SELECT id, body FROM questions$$, $$SELECT id, ", "$$, 7, metric => 'bm25')");
    const auto bm25_weights = with("tfidf($$SELECT id, ", "$$, bm25 => true, k1 => 2)");
    const std::string texts = "($$SELECT id, ";
    const auto similar = with("word_similarity" + texts, "$$, vocabulary => 100)");
    const auto pairs = with("word_similarity_pairs" + texts, "$$, vocabulary => 100)");
    const auto neighbors = with("word_cooccurrences" + texts, "$$, vocabulary => 100)");
    const auto trained = with("word2vec" + texts, "$$, dimensions => 8, epochs => 1)");
    const auto codes = with(
        "trie_encode_documents((SELECT trie_agg(DISTINCT word) FROM papers, "
        "unnest(words) AS word WHERE id < 20 AND word > ''), $$SELECT id, ",
        "$$)");
    const Use none{0, kRows}, all{kRows, 0};
    expect_use(session(), knn, kBody, none);
    for (const auto& call : {knn, within, weights, bm25, bm25_weights})
        expect_use(session(), call, kBody, all);
    expect_use(session(), weights, kTerms, none);
    for (const auto& call : {knn, within, weights, bm25, bm25_weights})
        expect_use(session(), call, kTerms, all);
    expect_use(session(), similar, kBody, none);
    for (const auto& call : {similar, pairs, neighbors, trained, codes})
        expect_use(session(), call, kBody, all);
    expect_use(session(), trained, kWords, none);
    for (const auto& call : {similar, pairs, neighbors, trained})
        expect_use(session(), call, kWords, all);
    expect_nothing_left_when_forgotten();
}

TEST_F(ResidentTerms, AreTheSameForAllSessionsAndSettings) {
    expect_tfidf("papers", {0, kRows});
    const std::string right = session().value(neighbors("body || ''", "papers"));
    Session another(server().connection());
    for (const char* setting :
         {"gputext.device = cpu", "gputext.device = gpu", "gputext.cpu_threads = 1",
          "gputext.cpu_threads = 7", "gputext.read_workers = 0", "gputext.read_workers = 2"}) {
        another.rows(std::string("SET ") + setting);
        EXPECT_EQ(another.value(neighbors("body", "papers")), right) << setting;
    }
    EXPECT_EQ(use_of(another, "papers"), (Use{6 * kRows, kRows}));
    another.rows("SET gputext.host_memory_limit = '1MB'");
    EXPECT_EQ(another.value(tfidf("body", "papers")), another.value(tfidf("body || ''", "papers")));
}

TEST_F(ResidentTerms, OfOtherRowsAndOrdersHaveTheNumbersOfParsing) {
    expect_tfidf("papers WHERE id % 2 = 0 ORDER BY id DESC", {0, kRows / 2});
    expect_tfidf("papers", {kRows / 2, kRows / 2});
    for (const char* from : {"papers ORDER BY md5(id::text)", "papers WHERE kind = 1",
                             "papers WHERE id > 400", "papers ORDER BY id DESC",
                             "(SELECT p.id, p.body FROM papers p, papers q WHERE q.id < 3) "
                             "AS twice ORDER BY md5(id::text)"}) {
        for (const auto& call : {neighbors("body || ''", from), tfidf("body || ''", from)}) {
            std::string kept = call;
            kept.replace(kept.find("body || ''"), 10, "body");
            EXPECT_EQ(session().value(kept), session().value(call)) << kept;
        }
    }
    EXPECT_EQ(use_of(session(), "papers").misses, kRows);
}

TEST_F(ResidentTerms, OfRowsThatAreNewAreParsed) {
    expect_tfidf("papers", {0, kRows});
    session().rows("UPDATE papers SET body = 'new ' || id || ' ' || body WHERE id % 10 = 0");
    expect_tfidf("papers", {kRows - kRows / 10, kRows / 10});
    expect_tfidf("papers", {kRows, 0});
    insert(kRows + 1, kRows + 100, 5);
    session().rows("DELETE FROM papers WHERE id <= 50");
    expect_tfidf("papers", {kRows - 50, 100});
    expect_tfidf("papers", {kRows + 50, 0});
    // Values within their rows lie among the others.
    session().rows("UPDATE papers SET body = 'short ' || id WHERE id % 20 = 0");
    expect_tfidf("papers", {kRows + 50 - 33, 0});
    session().rows("BEGIN");
    session().rows("UPDATE papers SET body = body || ' mine' WHERE id % 3 = 0");
    EXPECT_EQ(session().value(tfidf("body", "papers")),
              session().value(tfidf("body || ''", "papers")));
    session().rows("ROLLBACK");
    EXPECT_EQ(session().value(tfidf("body", "papers")),
              session().value(tfidf("body || ''", "papers")));
}

TEST_F(ResidentTerms, OfManyChunksComeTogether) {
    expect_tfidf("papers", {0, kRows});
    for (int i = 0; i < 40; ++i) {
        session().rows("UPDATE papers SET body = body || ' again' WHERE id % 40 = " +
                       std::to_string(i));
        EXPECT_EQ(session().value(neighbors("body", "papers")),
                  session().value(neighbors("body || ''", "papers")));
    }
    expect_tfidf("papers", {kRows, 0});
}

TEST_F(ResidentTerms, WithinTheirRowsAreKept) {
    session().rows("UPDATE papers SET body = left(body, 1900)");
    expect_tfidf("papers", {0, kRows});
    expect_tfidf("papers", {kRows, 0});
    session().rows("ALTER TABLE papers SET (toast_tuple_target = 128)");
    session().rows("UPDATE papers SET body = left(body, 1900)");
    expect_tfidf("papers", {0, kRows});
    expect_tfidf("papers", {kRows, 0});
}

// ---- Text search configurations ----

class ResidentConfigurations : public ResidentTerms {
protected:
    void SetUp() override {
        ResidentTerms::SetUp();
        if (HasFailure()) return;
        for (const char* drop :
             {"CONFIGURATION IF EXISTS mine", "DICTIONARY IF EXISTS mine_simple"})
            session().rows(std::string("DROP TEXT SEARCH ") + drop + " CASCADE");
    }

    /// Configuration `mine`, which asks dictionary `mine_simple`.
    void make_configuration(const std::string& options = "StopWords = english") {
        session().rows("CREATE TEXT SEARCH DICTIONARY mine_simple (TEMPLATE = simple, " + options +
                       ")");
        session().rows("CREATE TEXT SEARCH CONFIGURATION mine (COPY = simple)");
        session().rows(
            "ALTER TEXT SEARCH CONFIGURATION mine ALTER MAPPING FOR asciiword, numword "
            "WITH mine_simple");
    }
    void expect_mine(const Use& wanted, const std::string& what) {
        expect_use(
            session(), [&](const std::string& column) { return tfidf(column, "papers", "mine"); },
            kBody, wanted, what);
    }
};

TEST_F(ResidentConfigurations, HaveTermsOfTheirOwn) {
    make_configuration();
    expect_tfidf("papers", {0, kRows});
    expect_mine({0, kRows}, "another configuration");
    expect_tfidf("papers", {kRows, 0});
    expect_mine({kRows, 0}, "both are kept");
}

TEST_F(ResidentConfigurations, ThatChangeAreParsedAnew) {
    make_configuration();
    expect_mine({0, kRows}, "first");
    for (const char* change :
         {"CONFIGURATION mine ALTER MAPPING FOR asciiword WITH english_stem",
          "CONFIGURATION mine DROP MAPPING FOR numword",
          "CONFIGURATION mine ADD MAPPING FOR numword WITH mine_simple",
          "CONFIGURATION mine ALTER MAPPING FOR asciiword WITH mine_simple",
          "DICTIONARY mine_simple (StopWords)", "DICTIONARY mine_simple (StopWords = german)",
          "DICTIONARY mine_simple (Accept = false)"}) {
        other().rows(std::string("ALTER TEXT SEARCH ") + change);
        expect_mine({0, kRows}, change);
        expect_mine({kRows, 0}, change);
    }
    session().rows("BEGIN");
    session().rows("ALTER TEXT SEARCH DICTIONARY mine_simple (StopWords = english)");
    expect_mine({0, kRows}, "within a transaction");
    session().rows("ALTER TEXT SEARCH DICTIONARY mine_simple (StopWords = dutch)");
    expect_mine({0, kRows}, "again within the transaction");
    session().rows("ROLLBACK");
    expect_mine({kRows, 0}, "after it was undone");
}

TEST_F(ResidentConfigurations, OfOtherParsersAndTemplatesAreParsedEachTime) {
    session().rows(
        "CREATE TEXT SEARCH DICTIONARY mine_simple (TEMPLATE = thesaurus, "
        "DictFile = thesaurus_sample, Dictionary = english_stem)");
    session().rows("CREATE TEXT SEARCH CONFIGURATION mine (COPY = english)");
    session().rows(
        "ALTER TEXT SEARCH CONFIGURATION mine ALTER MAPPING FOR asciiword WITH mine_simple, "
        "english_stem");
    for (int i = 0; i < 2; ++i) expect_mine({0, 0}, "a thesaurus");
    session().rows("DROP TEXT SEARCH CONFIGURATION mine");
    session().rows(
        "CREATE TEXT SEARCH PARSER mine (START = prsd_start, GETTOKEN = prsd_nexttoken, "
        "END = prsd_end, LEXTYPES = prsd_lextype, HEADLINE = prsd_headline)");
    session().rows("CREATE TEXT SEARCH CONFIGURATION mine (PARSER = mine)");
    session().rows("ALTER TEXT SEARCH CONFIGURATION mine ADD MAPPING FOR asciiword WITH simple");
    for (int i = 0; i < 2; ++i) expect_mine({0, 0}, "a parser");
    session().rows("DROP TEXT SEARCH PARSER mine CASCADE");
}

TEST_F(ResidentConfigurations, WhoseFilesChangeAreParsedAnew) {
    const fs::path file = session().value(
        "SELECT setting || '/tsearch_data/gputext_test.stop' "
        "FROM pg_config() WHERE name = 'SHAREDIR'");
    if (access(file.parent_path().c_str(), W_OK) != 0)
        GTEST_SKIP() << "this user may not write into " << file.parent_path();
    const auto write = [&file](const std::string& words) {
        std::ofstream(file) << words;
        ASSERT_EQ(chmod(file.c_str(), 0644), 0);
    };
    write("runs\n");
    // However long the statements take, the file is younger than the session, and what is kept of
    // it must be older than any.
    fs::last_write_time(file, fs::file_time_type::clock::now() + 60s);
    make_configuration("StopWords = gputext_test");
    expect_mine({0, 0}, "a young file");
    fs::last_write_time(file, fs::file_time_type::clock::now());
    std::this_thread::sleep_for(1500ms);
    session().rows("ALTER TEXT SEARCH DICTIONARY mine_simple (StopWords = gputext_test)");
    expect_mine({0, kRows}, "an older file");
    expect_mine({kRows, 0}, "the same file");
    Session another(server().connection());
    EXPECT_EQ(another.value(tfidf("body", "papers", "mine")),
              another.value(tfidf("body || ''", "papers", "mine")));
    EXPECT_EQ(use_of(another, "papers").hits, 2 * kRows);
    write("running\n");
    another.value(tfidf("body", "papers", "mine"));
    EXPECT_EQ(use_of(another, "papers").hits, 2 * kRows);
    std::this_thread::sleep_for(1500ms);
    session().rows("ALTER TEXT SEARCH DICTIONARY mine_simple (StopWords = gputext_test)");
    expect_mine({0, kRows}, "another file");
    expect_mine({kRows, 0}, "the same file again");
    fs::remove(file);
}

// ---- Ends ----

TEST_F(ResidentTerms, AreParsedWithoutGputextd) {
    expect_tfidf("papers", {0, kRows});
    const std::string right = session().value(tfidf("body || ''", "papers"));
    set("gputext.device = cpu");
    send_signal(server().daemon(), SIGKILL);
    EXPECT_EQ(session().value(tfidf("body", "papers")), right);
    ASSERT_TRUE(eventually([&] {
        EXPECT_EQ(session().value(tfidf("body", "papers")), right);
        return use_of(session(), "papers").hits > 0;
    }));
    EXPECT_EQ(session().value(tfidf("body", "papers")), right);
    expect_others_untouched();
}

TEST_F(ResidentTerms, AreParsedWhereGputextdEndsMeanwhile) {
    expect_tfidf("papers", {0, kRows});
    session().rows("UPDATE papers SET body = body || ' more' WHERE id % 2 = 0");
    const std::string right = session().value(tfidf("body || ''", "papers"));
    set("gputext.device = cpu");
    for (int i = 0; i < 8; ++i) {
        session().rows("UPDATE papers SET body = body || '' WHERE id % 7 = " + std::to_string(i));
        Running call(session(), "SELECT count(*) FROM (" + tfidf("body", "papers") + ") AS t");
        std::this_thread::sleep_for(std::chrono::milliseconds(10 * i));
        for (const pid_t pid : server().daemons()) send_signal(pid, SIGKILL);
        EXPECT_EQ(call.wait(), "ok");
        EXPECT_EQ(session().value(tfidf("body", "papers")), right);
        ASSERT_TRUE(eventually([&] { return server().daemons().size() == 1; }));
    }
    expect_others_untouched();
}

TEST_F(ResidentTerms, AreWaitedForUntilACancel) {
    expect_tfidf("papers", {0, kRows});
    const pid_t daemon = server().daemon();
    send_signal(daemon, SIGSTOP);
    Running call(session(), tfidf("body", "papers"));
    EXPECT_TRUE(reaches(session().pid(), "asking for values that gputextd keeps"));
    other().rows("SELECT pg_cancel_backend(" + std::to_string(session().pid()) + ")");
    EXPECT_EQ(call.wait(), "57014");
    send_signal(daemon, SIGCONT);
    expect_tfidf("papers", {kRows, 0});
    expect_nothing_left_when_forgotten();
}

}  // namespace
}  // namespace gputext::live
