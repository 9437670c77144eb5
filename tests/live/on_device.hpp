// tests/live/on_device.hpp - tests of statements on devices
//
// The server has devices, with or without a GPU, and gputext.allow_faults is on.

#pragma once

#include <string>

#include "tests/live/server.hpp"

namespace gputext::live {

class OnDevice : public LiveTest {
protected:
    void SetUp() override {
        LiveTest::SetUp();
        if (HasFatalFailure()) return;
        ASSERT_NE(session().value("SELECT count(device) FROM gputext_devices()"), "0")
            << session().value("SELECT status FROM gputext_devices()")
            << ": set gputext.fake_devices = 2 in the server";
        session().rows("SET gputext.device = gpu");
    }

    long counter(const std::string& name) {
        return std::stol(other().value("SELECT " + name + " FROM gputext_stat"));
    }

    /// The next jobs of the session take that long on the device.
    static std::string slow(int milliseconds) {
        return "SET gputext.inject_fault = 'in_job:slow:" + std::to_string(milliseconds) + "'";
    }

    /// The session's row of gputext_activity, or nothing.
    std::string activity(const Session& of, const std::string& columns) {
        return other().table("SELECT " + columns +
                             " FROM gputext_activity WHERE pid = " + std::to_string(of.pid()));
    }

    /// The rows of a call, after checking that a device, or the CPU, has made them.
    std::string rows_on(const std::string& device, const std::string& call) {
        session().rows("SET gputext.device = " + device);
        const std::string counted = device == "gpu" ? "gpu_jobs" : "cpu_jobs";
        const long before = counter(counted);
        const std::string rows = session().table("SELECT * FROM " + call);
        EXPECT_EQ(counter(counted), before + 1) << call;
        return rows;
    }
};

}  // namespace gputext::live
