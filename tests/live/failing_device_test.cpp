// Statements of which one of two devices fails: the other one does its work, with the same rows,
// and a device that is lost is there again soon.

#include "tests/live/on_device.hpp"
#include "tests/live/private_server.hpp"

namespace gputext::live {
namespace {

class OneOfTwoDevices : public OnDevice {
protected:
    void SetUp() override {
        OnDevice::SetUp();
        if (HasFatalFailure()) return;
        if (on_real_gpus()) GTEST_SKIP() << "about devices without a GPU";
        set_devices(2);
        session().rows("DROP TABLE IF EXISTS texts");
        session().rows("SELECT setseed(0.5)");
        session().rows(
            "CREATE TABLE texts AS SELECT i::bigint AS id, (SELECT string_agg('w' || "
            "floor(exp(random() * 6)), ' ') FROM generate_series(1, 1 + (i * 37) % 60)) AS body "
            "FROM generate_series(1, 500) i");
    }

    void inject(const std::string& fault) {
        session().rows("SET gputext.inject_fault = '" + fault + "'");
    }

    /// One job for one device, and one that both share.
    static constexpr const char* kCalls[] = {
        "near_duplicates('SELECT id, body FROM texts', threshold => 0.4)",
        "word2vec('SELECT body FROM texts', dimensions => 20, epochs => 20, replicas => 2)"};
};

TEST_F(OneOfTwoDevices, FailsAndTheOtherOneAnswers) {
    for (const char* call : kCalls) {
        const std::string expected = rows_on("cpu", call);
        for (const auto& [fault, tries] :
             {std::pair{"in_job:device_error", 1}, {"in_job:out_of_memory:5", 5}}) {
            SCOPED_TRACE(std::string(fault) + ", " + call);
            inject(fault);
            const long retries = counter("retries"), failures = counter("failures");
            EXPECT_TRUE(rows_on("gpu", call) == expected);
            EXPECT_EQ(counter("retries"), retries + tries);
            EXPECT_EQ(counter("failures"), failures);
        }
        // Whichever of them has begun.
        for (const char* fault : {"in_job:device_error:1:0", "in_job:device_error:1:1"}) {
            inject(fault);
            EXPECT_TRUE(rows_on("gpu", call) == expected) << fault << ", " << call;
        }
        expect_nothing_left(session().pid(), call);
    }
}

TEST_F(OneOfTwoDevices, IsLostAndThereAgain) {
    for (const char* call : kCalls) {
        SCOPED_TRACE(call);
        const std::string expected = rows_on("cpu", call);
        const long restarts = counter("restarts"), fallbacks = counter("cpu_fallbacks"),
                   retries = counter("retries"), failures = counter("failures");
        inject("in_job:device_lost");
        EXPECT_TRUE(rows_on("gpu", call) == expected);
        // At once, while gputextd starts again.
        inject("");
        EXPECT_TRUE(rows_on("gpu", call) == expected);
        EXPECT_TRUE(eventually([&] { return counter("restarts") == restarts + 1; }));
        EXPECT_TRUE(eventually(
            [&] { return other().value("SELECT count(device) FROM gputext_devices()") == "2"; }));
        EXPECT_EQ(counter("retries"), retries + 1);
        EXPECT_EQ(counter("failures"), failures);
        EXPECT_EQ(counter("cpu_fallbacks"), fallbacks);
        expect_nothing_left(session().pid(), "a lost device");
    }
}

}  // namespace
}  // namespace gputext::live
