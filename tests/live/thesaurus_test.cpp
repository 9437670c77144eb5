// Thesauri on devices: the same as on the CPU, whatever the number of devices and whatever fails.

#include "tests/live/on_device.hpp"
#include "tests/live/private_server.hpp"
#include "tests/support/random_strings.hpp"

namespace gputext::live {
namespace {

using testing::RandomStrings;

class ThesaurusOnDevice : public OnDevice {
protected:
    void SetUp() override {
        OnDevice::SetUp();
        // The more threads, the larger a job has to be for a device to be worth it.
        if (!HasFatalFailure()) session().rows("SET gputext.cpu_threads = 1");
    }
    void TearDown() override {
        if (devices_changed_) set_devices(2);
        OnDevice::TearDown();
    }

    std::size_t below(std::size_t bound) { return random_.below(bound); }

    /// Texts of so many words, of which few come often.
    void make_texts(std::size_t texts, std::size_t words, std::size_t vocabulary) {
        session().rows("DROP TABLE IF EXISTS texts, counts");
        session().rows("SELECT setseed(0.5)");
        session().rows(
            "CREATE TABLE texts AS SELECT i::bigint AS id, (SELECT string_agg('w' || "
            "floor(exp(random() * ln(" +
            std::to_string(vocabulary) + "))), ' ') FROM generate_series(1, 1 + (i * 37) % " +
            std::to_string(2 * words) + ")) AS body FROM generate_series(1, " +
            std::to_string(texts) + ") i");
        session().rows("SET gputext.device = cpu");
        session().rows(
            "CREATE TABLE counts AS SELECT * FROM word_cooccurrences('SELECT body FROM texts', "
            "min_count => 2, positions => true)");
    }

    void expect_same(const std::string& call) {
        const std::string on_cpu = rows_on("cpu", call);
        EXPECT_TRUE(rows_on("gpu", call) == on_cpu) << call;
    }

    void expect_same_in_many_ways() {
        static const char* const kMeasures[] = {"lin", "cosine", "jaccard"};
        static const char* const kWeights[] = {"lin", "ppmi", "count"};
        const std::string how = std::string("measure => '") + kMeasures[below(3)] +
                                "', weight => '" + kWeights[below(3)] + "', discount => " +
                                (below(2) == 0 ? "0" : "0.95") +
                                (below(2) == 0 ? ", features => 100" : "");
        const std::string many = ", " + std::to_string(1 + below(50)) + ", ";
        expect_same("word_similarity('SELECT id, body FROM texts'" + many + how +
                    ", min_count => 2, vocabulary => 500, positions => true, window_size => " +
                    std::to_string(1 + below(5)) + ")");
        expect_same("word_similarity_pairs('SELECT body FROM texts'" + many + how +
                    ", positions => false)");
        expect_same("word_similarity_from_counts('TABLE counts'" + many + how + ")");
    }

    bool devices_changed_ = false;

private:
    RandomStrings random_;
};

TEST_F(ThesaurusOnDevice, AnswersAreThoseOfTheCpu) {
    for (int round = 0; round < 4; ++round) {
        make_texts(1 + below(500), 30, 2 + below(3000));
        expect_same_in_many_ways();
    }
    expect_same("word_similarity('SELECT body FROM texts WHERE false')");
    expect_same("word_similarity_from_counts('SELECT * FROM counts WHERE false')");
}

TEST_F(ThesaurusOnDevice, AnswersDoNotDependOnTheNumberOfDevices) {
    if (on_real_gpus()) GTEST_SKIP() << "about devices without a GPU";
    make_texts(1000, 30, 2000);
    // So many words that each of two devices gets a part of them
    const std::string call =
        "word_similarity('SELECT body FROM texts, generate_series(1, 75)', vocabulary => 1000)";
    const std::string expected = rows_on("cpu", call);
    devices_changed_ = true;
    for (const std::size_t devices : {1, 2, 4}) {
        set_devices(devices);
        EXPECT_TRUE(rows_on("gpu", call) == expected) << devices;
        expect_same_in_many_ways();
    }
}

TEST_F(ThesaurusOnDevice, AnswersAreThoseOfTheCpuFromTemporaryFiles) {
    make_texts(10'000, 30, 2000);
    session().rows("SET gputext.host_memory_limit = '2MB'");
    expect_same("word_similarity('SELECT body FROM texts', 5, vocabulary => 100)");
    expect_same("word_similarity_from_counts('TABLE counts', 5)");
    expect_nothing_left(session().pid(), "spilling");
}

TEST_F(ThesaurusOnDevice, SomeFailuresAreTheCpusAnswers) {
    make_texts(3000, 30, 2000);
    const std::string call =
        "SELECT sum(s) FROM word_similarity('SELECT body FROM texts'), unnest(similarities) AS s";
    session().rows("SET gputext.device = cpu");
    const std::string expected = session().value(call);
    expect_failures_answered(call, expected);
}

TEST_F(ThesaurusOnDevice, AJobEndsWhenItIsCancelled) {
    make_texts(300, 30, 500);
    session().rows("SET gputext.device = gpu");
    cancel_on_device(
        "SELECT FROM word_similarity('SELECT body FROM texts')",
        [this] { session().rows(slow(5000)); }, "word_similarity");
    session().rows("SET gputext.inject_fault = ''");
    expect_same("word_similarity('SELECT body FROM texts')");
}

}  // namespace
}  // namespace gputext::live
