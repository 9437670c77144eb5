// tests/live/on_device.hpp - fixture of tests of statements on devices
//
// The server has devices, with or without a GPU.

#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <thread>

#include "tests/live/interruption.hpp"
#include "tests/live/live_test.hpp"
#include "tests/support/test_size.hpp"

namespace gputext::live {

class OnDevice : public LiveTest {
protected:
    void SetUp() override {
        LiveTest::SetUp();
        if (HasFatalFailure()) return;
        ASSERT_NE(session().value("SELECT count(device) FROM gputext_devices()"), "0")
            << session().value("SELECT status FROM gputext_devices()");
        session().rows("SET gputext.device = gpu");
    }

    long counter(const std::string& name) {
        return std::stol(other().value("SELECT " + name + " FROM gputext_stat"));
    }

    /// The next jobs of the session take that long on the device.
    static std::string slow(int milliseconds) {
        return "SET gputext.inject_fault = 'in_job:slow:" + std::to_string(milliseconds) + "'";
    }

    /// So many devices without a GPU.
    void set_devices(std::size_t count) {
        const std::string wanted = std::to_string(count);
        other().rows("ALTER SYSTEM SET gputext.fake_devices = " + wanted);
        other().rows("SELECT pg_reload_conf()");
        ASSERT_TRUE(eventually([&] {
            return other().value("SELECT count(device) FROM gputext_devices()") == wanted;
        }));
    }

    /// The session's row of gputext_activity, or nothing.
    std::string activity(const Session& of, const std::string& columns) {
        return other().table("SELECT " + columns +
                             " FROM gputext_activity WHERE pid = " + std::to_string(of.pid()));
    }

    /// Cancels a call's job several times, each a little later than the one before, after `prepare`.
    void cancel_on_device(const std::string& call, const std::function<void()>& prepare = {},
                          const std::string& operation = "gpu_knn") {
        for (int i = 0; i < testing::rounds(4, 10); ++i)
            expect_in_time([&] {
                if (prepare) prepare();
                const long cancelled = counter("cancelled");
                Control control;
                Running job(session(), call);
                EXPECT_TRUE(eventually([&] {
                    return activity(session(), "function_name, device IS NOT NULL") == operation + "|t\n";
                })) << activity(session(), "*");
                std::this_thread::sleep_for(std::chrono::milliseconds(30 * i));
                const double late = control.cancel(other(), job, session().pid());
                EXPECT_EQ(job.wait(), "57014");
                EXPECT_EQ(counter("cancelled"), cancelled + 1);
                expect_nothing_left(session().pid(), "a cancelled job");
                return late;
            });
    }

    /// That a call for which every device fails is an error, or the CPU's answer where that may be.
    /// `broken` is the damage to a reply: wrong numbers alone could not be detected.
    void expect_failures_answered(const std::string& call, const std::string& expected,
                                  const std::string& broken = "wrong_answer") {
        for (const std::string& fault :
             {std::string("in_job:device_error:100"), "before_reply:" + broken,
              std::string("in_job:out_of_memory:100")}) {
            session().rows("SET gputext.inject_fault = '" + fault + "'");
            session().rows("SET gputext.device = gpu");
            EXPECT_NE(session().sqlstate(call), "ok") << fault;
            session().rows("SET gputext.device = auto");
            const long fallbacks = counter("cpu_fallbacks");
            EXPECT_EQ(session().value(call), expected) << fault;
            EXPECT_EQ(counter("cpu_fallbacks"), fallbacks + 1) << fault;
            expect_nothing_left(session().pid(), fault);
        }
    }

    /// The rows of a call, after checking that a device, or the CPU, has made them: in one job, or
    /// in several where its answer is more than the memory limit.
    std::string rows_on(const std::string& device, const std::string& call) {
        session().rows("SET gputext.device = " + device);
        const std::string counted = device == "gpu" ? "gpu_jobs" : "cpu_jobs";
        const long before = counter(counted);
        const std::string rows = session().table("SELECT * FROM " + call);
        EXPECT_GT(counter(counted), before) << call;
        return rows;
    }
};

}  // namespace gputext::live
