// Word Mover's Distances and sequences' probabilities on devices: the same as on the CPU, whatever
// the number of devices and whatever fails.

#include "tests/live/on_device.hpp"
#include "tests/live/private_server.hpp"
#include "tests/support/random_strings.hpp"

namespace gputext::live {
namespace {

using testing::RandomStrings;

class ModelsOnDevice : public OnDevice {
protected:
    void SetUp() override {
        OnDevice::SetUp();
        if (HasFatalFailure()) return;
        // The more threads, the larger a job has to be for a device to be worth it.
        session().rows("SET gputext.cpu_threads = 1");
        make_model(300, 25);
    }
    void TearDown() override {
        if (devices_changed_) set_devices(2);
        OnDevice::TearDown();
    }

    std::size_t below(std::size_t bound) { return random_.below(bound); }

    void make_model(std::size_t words, std::size_t dimensions) {
        const std::string all = std::to_string(words);
        const std::string vector =
            "(SELECT array_agg((random() - 0.5)::real) FROM generate_series(1, " +
            std::to_string(dimensions) + ") WHERE i > 0)";
        session().rows("DROP TABLE IF EXISTS model");
        session().rows("SELECT setseed(0.5)");
        session().rows("CREATE TABLE model AS SELECT 'w' || i AS word, i AS count, " + vector +
                       " AS vector, " + vector + " AS output_vector FROM generate_series(1, " +
                       all + ") i");
    }

    /// Some tokens are of no model.
    void make_texts(std::size_t texts, std::size_t tokens) {
        const std::string text =
            "ARRAY(SELECT 'w' || floor(320 * random() * random()) FROM "
            "generate_series(1, (i * 37) % " +
            std::to_string(tokens + 1) + "))";
        session().rows("DROP TABLE IF EXISTS pairs");
        session().rows("CREATE TABLE pairs AS SELECT i::bigint AS id, " + text + " AS a, " + text +
                       " AS b FROM generate_series(1, " + std::to_string(texts) + ") i");
    }

    void expect_same(const std::string& call) {
        const std::string on_cpu = rows_on("cpu", call);
        EXPECT_TRUE(rows_on("gpu", call) == on_cpu) << call;
    }

    void expect_all_same() {
        expect_same("word_movers_distance('TABLE model', 'TABLE pairs')");
        expect_same("word_movers_distance('TABLE model', 'TABLE pairs', 'relaxed')");
        expect_same("sequence_probability('TABLE model', 'SELECT id, a FROM pairs')");
    }

    bool devices_changed_ = false;

private:
    RandomStrings random_;
};

TEST_F(ModelsOnDevice, AnswersAreThoseOfTheCpu) {
    for (int round = 0; round < 4; ++round) {
        make_texts(1 + below(500), 1 + below(60));
        expect_all_same();
    }
    expect_same("word_movers_distance('TABLE model', 'SELECT * FROM pairs WHERE false')");
    expect_same("sequence_probability('TABLE model', 'SELECT id, a FROM pairs WHERE false')");
    expect_same("word_movers_distance('SELECT * FROM model WHERE false', 'TABLE pairs')");
    expect_same(
        "sequence_probability('SELECT * FROM model WHERE false', 'SELECT id, a FROM pairs')");
    expect_same(
        "sequence_probability('TABLE model', 'SELECT ''s'' || id, a FROM pairs', NULL::text)");
}

TEST_F(ModelsOnDevice, LongTextsAreThoseOfTheCpu) {
    make_texts(30, 700);
    expect_all_same();
}

TEST_F(ModelsOnDevice, AnswersDoNotDependOnTheNumberOfDevices) {
    if (on_real_gpus()) GTEST_SKIP() << "about devices without a GPU";
    make_texts(1000, 5);
    // So many pairs that each of two devices gets a part of them
    const std::string call =
        "word_movers_distance('TABLE model', 'SELECT id, a, b FROM pairs, "
        "generate_series(1, 140)')";
    const std::string expected = rows_on("cpu", call);
    devices_changed_ = true;
    for (const std::size_t devices : {1, 2, 4}) {
        set_devices(devices);
        EXPECT_TRUE(rows_on("gpu", call) == expected) << devices;
        expect_all_same();
    }
}

TEST_F(ModelsOnDevice, AnswersAreThoseOfTheCpuFromTemporaryFiles) {
    make_model(3000, 200);
    make_texts(8000, 60);
    session().rows("SET gputext.host_memory_limit = '1MB'");
    expect_all_same();
    expect_nothing_left(session().pid(), "spilling");
}

TEST_F(ModelsOnDevice, SomeFailuresAreTheCpusAnswers) {
    make_texts(3000, 60);
    for (const std::string call :
         {"SELECT sum(distance) FROM word_movers_distance('TABLE model', 'TABLE pairs')",
          "SELECT sum(probability) FROM sequence_probability('TABLE model', 'SELECT id, a FROM "
          "pairs')"}) {
        session().rows("SET gputext.device = cpu");
        const std::string expected = session().value(call);
        expect_failures_answered(call, expected, "short_file");
    }
}

TEST_F(ModelsOnDevice, AJobEndsWhenItIsCancelled) {
    make_texts(100, 20);
    session().rows("SET gputext.device = gpu");
    for (const std::string call :
         {"word_movers_distance('TABLE model', 'TABLE pairs')",
          "sequence_probability('TABLE model', 'SELECT id, a FROM pairs')"}) {
        cancel_on_device(
            "SELECT FROM " + call, [this] { session().rows(slow(5000)); },
            call.substr(0, call.find('(')));
        session().rows("SET gputext.inject_fault = ''");
        expect_same(call);
    }
}

TEST_F(ModelsOnDevice, ALargePairEndsWhenItIsCancelledOnTheCpu) {
    session().rows("SET gputext.device = cpu");
    const std::string call =
        "SELECT FROM word_movers_distance('SELECT i::text AS word, ARRAY[i, i * i % 1009, i "
        "* 7 % 1013]::real[] AS vector FROM generate_series(1, 6000) i', 'SELECT 1::bigint, "
        "array_agg(i::text) FILTER (WHERE i % 2 = 0), array_agg(i::text) FILTER (WHERE i % "
        "2 = 1) FROM generate_series(1, 6000) i')";
    expect_in_time([&] {
        Control control;
        Running job(session(), call);
        EXPECT_TRUE(eventually([&] {
            return activity(session(), "function_name, phase") ==
                   "word_movers_distance|moving words\n";
        })) << activity(session(), "*");
        const double late = control.cancel(other(), job, session().pid());
        EXPECT_EQ(job.wait(), "57014");
        return late;
    });
}

}  // namespace
}  // namespace gputext::live
