// Dictionaries and codes on devices: the same as on the CPU, whatever the number of devices and
// whatever fails. A dictionary is fetched once for a statement, and is restored from a dump.

#include <cstdlib>
#include <filesystem>

#include "tests/live/on_device.hpp"
#include "tests/live/private_server.hpp"
#include "tests/support/random_strings.hpp"

namespace gputext::live {
namespace {

using testing::RandomStrings;

class WordsOnDevice : public OnDevice {
protected:
    void SetUp() override {
        OnDevice::SetUp();
        // The more threads, the more words have to be there for a device to be worth it.
        if (!HasFatalFailure()) session().rows("SET gputext.cpu_threads = 1");
    }
    void TearDown() override {
        if (devices_changed_) set_devices(2);
        OnDevice::TearDown();
    }

    std::size_t below(std::size_t bound) { return random_.below(bound); }

    /// So many words, about half of them known, with copies, an empty one, long ones and nulls.
    void make_words(std::size_t count) {
        session().rows("DROP TABLE IF EXISTS words, dictionary");
        session().rows(
            "CREATE TABLE words AS SELECT i::bigint AS id, 'key ' || i AS key, CASE i % 100 "
            "WHEN 0 THEN '' WHEN 1 THEN NULL WHEN 2 THEN repeat('long', i % 700) "
            "ELSE left(md5((i * 2 / 3)::text), 3 + i % 20) END AS word FROM generate_series(1, " +
            std::to_string(count) + ") i");
        session().rows(
            "CREATE TABLE dictionary AS SELECT trie_agg(word) AS words FROM words "
            "WHERE id % 2 = 0 OR word = ''");
    }

    /// The rows of a call, of which d.words may be an argument.
    void expect_same(const std::string& call) {
        const std::string from = "(SELECT e.* FROM dictionary AS d, " + call + " AS e) AS rows";
        const std::string on_cpu = rows_on("cpu", from);
        EXPECT_TRUE(rows_on("gpu", from) == on_cpu) << call;
    }

    void expect_same_in_many_ways() {
        expect_same("trie_encode(d.words, 'SELECT id, word FROM words')");
        expect_same(
            "trie_encode(d.words, 'SELECT key, word FROM words ORDER BY id DESC', NULL::text)");
        expect_same("trie_encode(d.words, 'SELECT id, word FROM words WHERE false')");
        expect_same("trie_encode(d.words, 'SELECT id, '''' FROM words')");
        expect_same(
            "trie_encode_documents(d.words, 'SELECT id / 7, string_agg(word, '' '') FROM words "
            "GROUP BY 1 ORDER BY 1')");
        expect_same(
            "trie_encode_documents(d.words, 'SELECT key, word FROM words', NULL::text, "
            "config => 'english')");
    }

    bool devices_changed_ = false;

private:
    RandomStrings random_;
};

TEST_F(WordsOnDevice, CodesAreThoseOfTheCpu) {
    for (int round = 0; round < 4; ++round) {
        session().rows("SET gputext.device = cpu");
        make_words(1 + below(5000));
        expect_same_in_many_ways();
    }
    session().rows("UPDATE dictionary SET words = (SELECT trie_agg(w) FROM (VALUES ('')) AS v(w))");
    expect_same("trie_encode(d.words, 'SELECT id, word FROM words')");
}

TEST_F(WordsOnDevice, DictionariesAreThoseOfTheCpu) {
    session().rows("SET gputext.device = cpu");
    make_words(5000);
    for (const char* call : {"(SELECT trie_agg(word)::bytea FROM words) AS rows",
                             "(SELECT trie_agg(word)::bytea FROM words WHERE word = '') AS rows",
                             "(SELECT trie_agg(w)::bytea FROM (SELECT repeat(word, 5000) AS w "
                             "FROM words WHERE id < 30) AS large) AS rows"}) {
        const std::string on_cpu = rows_on("cpu", call);
        EXPECT_TRUE(rows_on("gpu", call) == on_cpu) << call;
    }
    // One for each group
    const std::string groups =
        "SELECT id % 10 AS g, md5(trie_agg(word)::bytea) FROM words GROUP BY 1 ORDER BY 1";
    session().rows("SET gputext.device = cpu");
    const std::string expected = session().table(groups);
    session().rows("SET gputext.device = gpu");
    const long jobs = counter("gpu_jobs");
    EXPECT_EQ(session().table(groups), expected);
    EXPECT_EQ(counter("gpu_jobs"), jobs + 10);
    // By a parallel worker
    // The setting has its second name since PostgreSQL 16.
    session().rows(
        "SELECT set_config(name, 'on', false) FROM pg_settings "
        "WHERE name IN ('force_parallel_mode', 'debug_parallel_query')");
    EXPECT_EQ(session().table(groups), expected);
    EXPECT_EQ(counter("gpu_jobs"), jobs + 20);
}

TEST_F(WordsOnDevice, CodesDoNotDependOnTheNumberOfDevices) {
    if (on_real_gpus()) GTEST_SKIP() << "about devices without a GPU";
    session().rows("SET gputext.device = cpu");
    make_words(3000);
    // So many words that each of two devices gets a part of them
    const std::string many =
        "(SELECT count(*), count(code), sum(id * code) FROM dictionary, trie_encode(words, "
        "'SELECT i, left(md5((i % 100003)::text), (3 + i % 4)::int) "
        "FROM generate_series(1::bigint, 2200000) i')) AS sums";
    const std::string expected = rows_on("cpu", many);
    devices_changed_ = true;
    for (const std::size_t devices : {1, 2}) {
        set_devices(devices);
        EXPECT_EQ(rows_on("gpu", many), expected) << devices;
        expect_same_in_many_ways();
    }
}

TEST_F(WordsOnDevice, CodesAreThoseOfTheCpuFromTemporaryFiles) {
    session().rows("SET gputext.device = cpu");
    make_words(150'000);
    session().rows("SET gputext.host_memory_limit = '1MB'");
    expect_same("trie_encode(d.words, 'SELECT key, word FROM words', NULL::text)");
    expect_same(
        "trie_encode_documents(d.words, 'SELECT id / 7, string_agg(word, '' '') FROM words "
        "GROUP BY 1 ORDER BY 1')");
    expect_nothing_left(session().pid(), "spilling");
}

TEST_F(WordsOnDevice, SomeFailuresAreTheCpusAnswers) {
    session().rows("SET gputext.device = cpu");
    make_words(200'000);
    for (const std::string call :
         {"SELECT sum(id * code) FROM dictionary, trie_encode(words, 'SELECT id, word FROM words')",
          "SELECT sum(cardinality(codes)) FROM dictionary, trie_encode_documents(words, "
          "'SELECT id / 10, string_agg(word, '' '') FROM words GROUP BY 1')",
          "SELECT md5(trie_agg(word)::bytea) FROM words"}) {
        session().rows("SET gputext.device = cpu");
        const std::string expected = session().value(call);
        expect_failures_answered(call, expected);
        session().rows("SET gputext.inject_fault = ''");
        for (const char* device : {"gpu", "auto"}) {
            session().rows(std::string("SET gputext.device = ") + device);
            const long jobs = counter("gpu_jobs");
            EXPECT_EQ(session().value(call), expected);
            EXPECT_EQ(counter("gpu_jobs"), jobs + 1) << device << ": " << call;
        }
    }
}

TEST_F(WordsOnDevice, LostDevicesCostOneJob) {
    if (on_real_gpus()) GTEST_SKIP() << "about devices without a GPU";
    session().rows("SET gputext.device = cpu");
    make_words(200'000);
    const std::string call =
        "SELECT sum(id * code) FROM dictionary, trie_encode(words, 'SELECT id, word FROM words')";
    const std::string expected = session().value(call);
    session().rows("SET gputext.inject_fault = 'in_job:device_lost:100'");
    session().rows("SET gputext.device = auto");
    const long fallbacks = counter("cpu_fallbacks");
    EXPECT_EQ(session().value(call), expected);
    EXPECT_EQ(counter("cpu_fallbacks"), fallbacks + 1);
    session().rows("SET gputext.inject_fault = ''");
    session().rows("SET gputext.device = gpu");
    EXPECT_EQ(session().value(call), expected);
    expect_nothing_left(session().pid(), "lost devices");
}

TEST_F(WordsOnDevice, FewWordsStayOnTheCpu) {
    session().rows("SET gputext.device = cpu");
    make_words(5000);
    session().rows("SET gputext.device = auto");
    const long jobs = counter("gpu_jobs");
    session().rows("SELECT FROM dictionary, trie_encode(words, 'SELECT id, word FROM words')");
    session().rows("SELECT trie_agg(word) FROM words");
    EXPECT_EQ(counter("gpu_jobs"), jobs);
}

TEST_F(WordsOnDevice, JobsEndWhenTheyAreCancelled) {
    session().rows("SET gputext.device = cpu");
    make_words(2000);
    session().rows("SET gputext.device = gpu");
    const auto prepare = [this] { session().rows(slow(5000)); };
    cancel_on_device("SELECT FROM dictionary, trie_encode(words, 'SELECT id, word FROM words')",
                     prepare, "trie_encode");
    cancel_on_device("SELECT trie_agg(word) FROM words", prepare, "trie_agg");
    session().rows("SET gputext.inject_fault = ''");
    expect_same("trie_encode(d.words, 'SELECT id, word FROM words')");
}

// ---- One fetch a statement ----

class DictionaryInToast : public LiveTest {
protected:
    /// Blocks of the dictionary's toast table that a statement reads.
    long blocks_read(const std::string& sql) {
        const std::string blocks =
            "SELECT coalesce(sum(toast_blks_hit + toast_blks_read), 0) FROM pg_statio_user_tables "
            "WHERE relid = 'dictionary'::regclass";
        session().rows("SELECT pg_stat_force_next_flush()");
        const long before = std::stol(session().value(blocks));
        session().rows(sql);
        session().rows("SELECT pg_stat_force_next_flush()");
        return std::stol(session().value(blocks)) - before;
    }
};

TEST_F(DictionaryInToast, IsFetchedOnceForAStatement) {
    session().rows(
        "CREATE TABLE words AS SELECT i AS id, md5(i::text) AS word "
        "FROM generate_series(1::bigint, 100000) i");
    session().rows("CREATE TABLE dictionary AS SELECT trie_agg(word) AS words FROM words");
    session().rows("VACUUM words, dictionary");
    const long once = blocks_read("SELECT trie_lookup(words, 'x') FROM dictionary");
    ASSERT_GT(once, 100);
    for (const char* call :
         {"SELECT count(trie_lookup(words, word)) FROM dictionary, words AS w, "
          "generate_series(1, 10)",
          "SELECT count(trie_decode(words, id - 1)) FROM dictionary, words AS w",
          "SELECT count(trie_lookup((SELECT words FROM dictionary), word)) FROM words",
          "SELECT FROM dictionary, trie_encode(words, 'SELECT id, word FROM words')",
          "SELECT count(*) FROM dictionary, generate_series(1, 1000) AS i, "
          "trie_prefix(words, i::text, 3)"}) {
        const long read = blocks_read(call);
        EXPECT_GE(read, once) << call;
        EXPECT_LE(read, once + once / 10) << call;
    }
    // Its first bytes are in one block.
    EXPECT_LT(blocks_read("SELECT trie_stats(words), trie_summary(words) FROM dictionary"), 20);
}

// ---- Dumps ----

class DictionaryDump : public LiveTest {
protected:
    void SetUp() override {
        LiveTest::SetUp();
        if (!HasFatalFailure()) file_ = "/tmp/gputext-dump-" + std::to_string(session().pid());
    }
    void TearDown() override {
        std::error_code error;
        std::filesystem::remove(file_, error);
        LiveTest::TearDown();
    }

    static int run(const std::string& command) {
        return std::system((command + " >/dev/null 2>&1").c_str());
    }
    int dump(const std::string& options) {
        return run("PGOPTIONS='" + options + "' pg_dump -n " + schema() + " -f " + file_);
    }
    /// Everything of the schema, from the file.
    int restore() {
        session().rows("DROP SCHEMA " + schema() + " CASCADE");
        return run("psql -X -q -v ON_ERROR_STOP=1 -f " + file_);
    }

    std::string file_;
};

/// Whatever gputext.trie_output is, which dumps of 0.1.0 depended on.
TEST_F(DictionaryDump, GivesTheSameCodesWhenRestored) {
    session().rows(
        "CREATE TABLE words AS SELECT i AS id, left(md5(i::text), 3 + i % 20) AS word "
        "FROM generate_series(1, 20000) i");
    session().rows(
        "CREATE TABLE dictionary AS SELECT trie_agg(word) AS words, trie_agg(word, 'xbw') AS nodes "
        "FROM words");
    session().rows("CREATE MATERIALIZED VIEW made AS SELECT trie_agg(word) AS words FROM words");
    const std::string codes =
        "SELECT md5(string_agg(trie_lookup(d.words, word) || ' ' || trie_lookup(m.words, word) || "
        "' ' || trie_node(d.nodes, word), ',' ORDER BY id)) "
        "FROM words AS w, dictionary AS d, made AS m";
    const std::string image = "SELECT md5(words::bytea) || md5(nodes::bytea) FROM dictionary";
    const std::string expected = session().value(codes), expected_image = session().value(image);
    for (const char* options : {"", "-c gputext.trie_output=summary"}) {
        ASSERT_EQ(dump(options), 0) << options;
        ASSERT_EQ(restore(), 0) << options;
        EXPECT_EQ(session().value(codes), expected) << options;
        EXPECT_EQ(session().value(image), expected_image) << options;
    }
}

}  // namespace
}  // namespace gputext::live
