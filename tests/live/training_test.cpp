// Trainings of words' vectors on devices: the same as on the CPU, whatever the number of devices
// and whatever fails, and what is seen of them meanwhile.

#include "tests/live/on_device.hpp"
#include "tests/live/private_server.hpp"
#include "tests/support/random_strings.hpp"

namespace gputext::live {
namespace {

using testing::RandomStrings;

class TrainingOnDevice : public OnDevice {
protected:
    void TearDown() override {
        if (devices_changed_) set_devices(2);
        OnDevice::TearDown();
    }

    std::size_t below(std::size_t bound) { return random_.below(bound); }

    /// Texts of some words each, of which few come often.
    void make_texts(std::size_t texts) {
        session().rows("DROP TABLE IF EXISTS texts, model");
        session().rows("SELECT setseed(0.5)");
        session().rows(
            "CREATE TABLE texts AS SELECT i::bigint AS id, (SELECT string_agg('w' || "
            "floor(exp(random() * 6)), ' ') FROM generate_series(1, 1 + (i * 37) % 60)) AS body "
            "FROM generate_series(1, " +
            std::to_string(texts) + ") i");
        session().rows("SET gputext.device = cpu");
        session().rows(
            "CREATE TABLE model AS SELECT * FROM word2vec('SELECT body FROM texts WHERE "
            "id % 2 = 0', dimensions => 10)");
    }

    void expect_same(const std::string& call) {
        const std::string on_cpu = rows_on("cpu", call);
        EXPECT_TRUE(rows_on("gpu", call) == on_cpu) << call;
    }

    void expect_same_in_many_ways() {
        const std::string seed = ", seed => " + std::to_string(below(1000));
        const std::string texts = "word2vec('SELECT id, body FROM texts', ";
        expect_same(texts + "dimensions => " + std::to_string(1 + below(70)) + ", window_size => " +
                    std::to_string(1 + below(8)) + seed + ")");
        expect_same(texts + "'cbow', 33, negative => " + std::to_string(1 + below(10)) +
                    ", batch => " + std::to_string(1 + below(500)) + seed + ")");
        expect_same(texts + "dimensions => 9, replicas => " + std::to_string(1 + below(5)) + seed +
                    ")");
        expect_same(texts + "dimensions => 9, sampling => 'farthest', replicas => 2" + seed + ")");
        expect_same(texts + "dimensions => 10, epochs => 2, initial => 'TABLE model'" + seed + ")");
    }

    /// Waits until the session's training is in its third epoch, and cancels it.
    void watch_and_cancel(const std::string& device) {
        session().rows("SET gputext.device = " + device);
        const std::string seen =
            "function_name, (device_name IS NULL) = (device = 'cpu'), device = 'cpu', phase, epoch > 2, "
            "loss BETWEEN 0.1 AND 0.7, rate > 1000, done BETWEEN 1000 AND total";
        const std::string on_cpu = device == "cpu" ? "t" : "f";
        expect_in_time([&] {
            Control control;
            Running job(session(), kEndless);
            EXPECT_TRUE(eventually([&] {
                return activity(session(), seen) == "word2vec|t|" + on_cpu + "|training|t|t|t|t\n";
            })) << activity(session(), "*");
            const double late = control.cancel(other(), job, session().pid());
            EXPECT_EQ(job.wait(), "57014");
            expect_nothing_left(session().pid(), "a cancelled training");
            return late;
        });
    }

    static constexpr const char* kEndless =
        "SELECT FROM word2vec('SELECT body FROM texts', epochs => 100000)";
    bool devices_changed_ = false;

private:
    RandomStrings random_;
};

TEST_F(TrainingOnDevice, AnswersAreThoseOfTheCpu) {
    for (const std::size_t texts : {40, 100, 500}) {
        make_texts(texts);
        expect_same_in_many_ways();
    }
}

TEST_F(TrainingOnDevice, AnswersDoNotDependOnTheNumberOfDevices) {
    if (on_real_gpus()) GTEST_SKIP() << "about devices without a GPU";
    make_texts(200);
    const std::string calls[] = {
        "word2vec('SELECT body FROM texts', dimensions => 40, replicas => 4)",
        "word2vec('SELECT body FROM texts', dimensions => 40, sampling => 'farthest', replicas => "
        "3)"};
    for (const std::string& call : calls) {
        const std::string expected = rows_on("cpu", call);
        devices_changed_ = true;
        for (const std::size_t devices : {1, 2, 4}) {
            set_devices(devices);
            // The first device is late, so that the others have begun.
            session().rows(slow(100));
            EXPECT_TRUE(rows_on("gpu", call) == expected) << devices;
        }
    }
    session().rows("SET gputext.inject_fault = ''");
    expect_same_in_many_ways();
}

TEST_F(TrainingOnDevice, AnswersAreThoseOfTheCpuFromTemporaryFiles) {
    make_texts(8000);
    session().rows("SET gputext.host_memory_limit = '1500kB'");
    expect_same("word2vec('SELECT body FROM texts', dimensions => 8, epochs => 1, replicas => 4)");
    expect_nothing_left(session().pid(), "spilling");
}

TEST_F(TrainingOnDevice, SomeFailuresAreTheCpusAnswers) {
    make_texts(1000);
    const std::string call =
        "SELECT md5(string_agg(m::text, '')) FROM word2vec('SELECT body FROM texts', "
        "dimensions => 10, replicas => 2, initial => 'TABLE model') AS m";
    session().rows("SET gputext.device = cpu");
    const std::string expected = session().value(call);
    // Wrong vectors cannot be told from right ones.
    for (const char* fault :
         {"in_job:device_error:100", "before_reply:short_file", "in_job:out_of_memory:100"}) {
        session().rows("SET gputext.inject_fault = '" + std::string(fault) + "'");
        session().rows("SET gputext.device = gpu");
        EXPECT_NE(session().sqlstate(call), "ok") << fault;
        session().rows("SET gputext.device = auto");
        EXPECT_EQ(session().value(call), expected) << fault;
        expect_nothing_left(session().pid(), fault);
    }
    // All devices are lost: gputextd starts again.
    session().rows("SET gputext.inject_fault = 'in_job:device_lost:100'");
    EXPECT_EQ(session().value(call), expected);
    session().rows("SET gputext.inject_fault = ''");
    session().rows("SET gputext.device = gpu");
    EXPECT_TRUE(eventually([&] { return session().sqlstate(call) == "ok"; }));
    EXPECT_EQ(session().value(call), expected);
}

TEST_F(TrainingOnDevice, ShowsHowFarItIsAndEndsWhenItIsCancelled) {
    make_texts(300);
    watch_and_cancel("cpu");
    watch_and_cancel("gpu");
    session().rows("SET gputext.device = gpu");
    cancel_on_device(kEndless, {}, "word2vec");
    expect_same("word2vec('SELECT body FROM texts', dimensions => 10)");
}

}  // namespace
}  // namespace gputext::live
