#include "cpp/daemon/device_workers.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <thread>

#include "cpp/daemon/fake_device.hpp"

namespace gputext {
namespace {

using namespace std::chrono_literals;

/// A job of parts that do nothing but meet; what happens in them is the test's.
class MeetingJob : public OperatorJob {
public:
    using Run = std::function<Status(std::size_t part, Device&, Execution&)>;
    MeetingJob(std::size_t parts, Run run, std::int32_t device = -1)
        : parts_(parts), run_(std::move(run)) {
        limits_.device = device;
    }

    const char* operation() const override { return "meeting"; }
    std::uint16_t request_type() const override { return SubmitTermKnn::type; }
    const JobLimits& limits() const override { return limits_; }
    std::uint64_t rows() const override { return 0; }
    std::uint64_t bytes() const override { return 0; }
    Status read(JobFiles, Execution&) override { return {}; }
    Result<std::size_t> prepare(std::size_t devices, Execution&) override {
        return std::min(parts_, devices);
    }
    Status run(std::size_t part, Device& device, std::uint64_t memory,
               Execution& execution) override {
        given_memory = memory;
        return run_(part, device, execution);
    }
    Result<std::size_t> next_round(Execution&) override {
        ++rounds;
        return rounds < wanted_rounds ? parts_ - rounds : 0;
    }
    Status merge(Execution&) override {
        merged = true;
        return {};
    }
    Status write(MemoryFile&, Execution&) override { return {}; }
    Message reply(const JobReport& report) const override { return KnnReply{report, 0, 0, 0, 0}; }

    void limit_memory(std::uint64_t bytes) { limits_.device_memory_limit = bytes; }

    bool merged = false;
    std::atomic<std::uint64_t> given_memory = 0;  // to the part that began last
    std::size_t rounds = 0, wanted_rounds = 1;

private:
    std::size_t parts_;
    Run run_;
    JobLimits limits_;
};

class Workers : public ::testing::Test {
protected:
    Workers() { start(3); }

    /// With so many devices, none of which is lost.
    template <class Kind = FakeDevice>
    void start(unsigned devices, std::uint64_t memory_limit = 0) {
        workers_.reset();
        devices_.clear();
        here_ = 0;
        for (unsigned i = 0; i < devices; ++i) devices_.push_back(std::make_unique<Kind>(i));
        workers_ = std::make_unique<DeviceWorkers>(devices_, memory_limit, [this](auto job) {
            const std::lock_guard lock(mutex_);
            ended_.insert(std::move(job));  // kept, so that no other has its address
            changed_.notify_all();
        });
    }

    std::shared_ptr<DaemonJob> submit(std::size_t parts, MeetingJob::Run run, int device = -1,
                                      std::vector<Fault> faults = {}) {
        auto job = std::make_shared<DaemonJob>(
            3, std::make_unique<MeetingJob>(parts, std::move(run), device));
        job->faults = std::move(faults);
        workers_->submit(job);
        return job;
    }
    void wait_for(const std::shared_ptr<DaemonJob>& job) {
        std::unique_lock lock(mutex_);
        ASSERT_TRUE(changed_.wait_for(lock, 20s, [&] { return ended_.contains(job); }));
    }
    static bool merged(const DaemonJob& job) {
        return static_cast<const MeetingJob&>(*job.work).merged;
    }
    std::int32_t number_of(const Device& device) const {
        for (std::int32_t i = 0; i < static_cast<std::int32_t>(devices_.size()); ++i)
            if (devices_[i].get() == &device) return i;
        return -1;
    }
    /// Until all devices have come; at once when they have been here.
    void meet() {
        std::unique_lock lock(mutex_);
        ++here_;
        changed_.notify_all();
        EXPECT_TRUE(changed_.wait_for(lock, 20s, [&] { return here_ >= devices_.size(); }));
    }
    /// Until this is so, or 20 seconds.
    template <class Condition>
    static void await(const Condition& condition) {
        const auto end = std::chrono::steady_clock::now() + 20s;
        while (!condition() && std::chrono::steady_clock::now() < end)
            std::this_thread::sleep_for(1ms);
        ASSERT_TRUE(condition());
    }

    std::vector<std::unique_ptr<Device>> devices_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::set<std::shared_ptr<DaemonJob>> ended_;
    std::size_t here_ = 0;
    std::unique_ptr<DeviceWorkers> workers_;  // last: its threads use what is above
};

TEST_F(Workers, RunEveryPartOnceAndEachOnAThreadOfItsDevice) {
    std::set<std::pair<std::int32_t, std::thread::id>> who;
    std::multiset<std::size_t> parts;
    for (int round = 0; round < 20; ++round) {
        here_ = 0;
        const auto job = submit(3, [&](std::size_t part, Device& device, Execution&) {
            meet();
            const std::lock_guard lock(mutex_);
            who.emplace(number_of(device), std::this_thread::get_id());
            parts.insert(part);
            return Status();
        });
        wait_for(job);
        EXPECT_TRUE(job->status.ok() && merged(*job));
    }
    EXPECT_EQ(who.size(), 3u);
    for (std::size_t part = 0; part < 3; ++part) EXPECT_EQ(parts.count(part), 20u);
}

TEST_F(Workers, DoWhatOthersLeave) {
    std::atomic<bool> free{false};
    std::atomic<int> working{0};
    const auto busy = [&](std::size_t, Device&, Execution&) {
        ++working;
        while (!free) std::this_thread::sleep_for(1ms);
        return Status();
    };
    const auto first = submit(1, busy, 0), second = submit(1, busy, 2);
    // A device that has not begun with its own job takes parts of another one.
    while (working < 2) std::this_thread::sleep_for(1ms);
    std::set<std::int32_t> who;
    const auto job = submit(3, [&](std::size_t, Device& device, Execution&) {
        who.insert(number_of(device));
        return Status();
    });
    wait_for(job);
    EXPECT_EQ(who, std::set<std::int32_t>{1});
    free = true;
    wait_for(first);
    wait_for(second);
}

TEST_F(Workers, TryAgainWithLessMemoryOnAnyDevice) {
    std::multiset<std::int32_t> tries;
    const auto job = submit(3, [&](std::size_t, Device& device, Execution&) {
        meet();
        const std::lock_guard lock(mutex_);
        tries.insert(number_of(device));
        return tries.count(number_of(device)) < 3 ? Status::out_of_memory() : Status();
    });
    wait_for(job);
    EXPECT_TRUE(job->status.ok()) << job->status.message();
    EXPECT_EQ(job->retries, 6u);
}

TEST_F(Workers, GiveTheLeastOfAllLimitsOfMemory) {
    struct Limits {
        std::uint64_t server, client, given;
    };
    const std::uint64_t all = FakeDevice(0).free_memory();
    for (const auto& [server, client, given] :
         {Limits{0, 0, all}, Limits{100, 0, 100}, Limits{0, 200, 200}, Limits{100, 200, 100},
          Limits{300, 200, 200}, Limits{2 * all, 3 * all, all}}) {
        start(1, server);
        const auto job = std::make_shared<DaemonJob>(
            3, std::make_unique<MeetingJob>(
                   1, [](std::size_t, Device&, Execution&) { return Status(); }));
        auto& work = static_cast<MeetingJob&>(*job->work);
        work.limit_memory(client);
        workers_->submit(job);
        wait_for(job);
        EXPECT_EQ(work.given_memory, given);
    }
}

/// Says that it has been given bytes.
class CountingDevice : public FakeDevice {
public:
    using FakeDevice::FakeDevice;
    std::uint64_t uploaded() const override { return uploaded_; }
    void upload(std::uint64_t bytes) { uploaded_ += bytes; }

private:
    std::uint64_t uploaded_ = 1'000'000;  // in earlier jobs
};

TEST_F(Workers, CountWhatAllPartsUpload) {
    start<CountingDevice>(3);
    for (int round = 0; round < 2; ++round) {
        here_ = 0;
        std::atomic<int> tries{0};
        const auto job = submit(3, [&](std::size_t, Device& device, Execution&) {
            meet();
            const std::uint64_t bytes = std::uint64_t{1} << (4 * number_of(device));
            static_cast<CountingDevice&>(device).upload(bytes);
            // Whichever part comes second is done again, and what that took is counted, too.
            return ++tries == 2 ? Status::out_of_memory() : Status();
        });
        wait_for(job);
        ASSERT_TRUE(job->status.ok()) << job->status.message();
        const Result<Message> reply = decode(job->reply.bytes, job->reply.descriptors.size());
        ASSERT_TRUE(reply.ok());
        const std::uint64_t uploaded = std::get<KnnReply>(*reply).report.uploaded;
        EXPECT_TRUE(uploaded == 0x112 || uploaded == 0x121 || uploaded == 0x211) << uploaded;
    }
}

TEST_F(Workers, RunThePartsOfEachRoundWhenThoseBeforeHaveEnded) {
    std::vector<std::size_t> parts;
    std::set<std::int32_t> who;
    auto work = std::make_unique<MeetingJob>(3, [&](std::size_t part, Device& device, Execution&) {
        meet();
        const std::lock_guard lock(mutex_);
        parts.push_back(part);
        who.insert(number_of(device));
        return Status();
    });
    work->wanted_rounds = 3;
    const auto job = std::make_shared<DaemonJob>(3, std::move(work));
    workers_->submit(job);
    wait_for(job);
    EXPECT_TRUE(job->status.ok() && merged(*job));
    ASSERT_EQ(parts.size(), 6u);  // of rounds of 3, 2 and 1
    std::ranges::sort(parts.begin(), parts.begin() + 3);
    std::ranges::sort(parts.begin() + 3, parts.begin() + 5);
    EXPECT_EQ(parts, (std::vector<std::size_t>{0, 1, 2, 0, 1, 0}));
    // All that took part in some round are named once.
    EXPECT_EQ(who.size(), 3u);
    const Result<Message> reply = decode(job->reply.bytes, job->reply.descriptors.size());
    ASSERT_TRUE(reply.ok());
    EXPECT_EQ(std::get<KnnReply>(*reply).report.device_name,
              "fake device 0, fake device 1, fake device 2");
}

TEST_F(Workers, EndAJobWithTheErrorOfAnyPart) {
    for (int failing = 0; failing < 3; ++failing) {
        here_ = 0;
        const auto job = submit(3, [&](std::size_t part, Device&, Execution& execution) {
            meet();
            if (part == static_cast<std::size_t>(failing))
                return Status(ErrorCode::io_error, "it failed");
            while (!execution.stop_requested()) std::this_thread::sleep_for(1ms);
            return Status::cancelled();
        });
        wait_for(job);
        EXPECT_EQ(job->status.code(), ErrorCode::io_error);
        EXPECT_FALSE(merged(*job));
    }
    const auto next = submit(1, [](std::size_t, Device&, Execution&) { return Status(); });
    wait_for(next);
    EXPECT_TRUE(next->status.ok());
}

constexpr ErrorCode kOfDevices[] = {ErrorCode::device_error, ErrorCode::device_lost,
                                    ErrorCode::out_of_memory};

TEST_F(Workers, DoThePartsOfADeviceThatFailed) {
    for (const ErrorCode error : kOfDevices)
        for (std::int32_t failing = 0; failing < 3; ++failing)
            for (const std::size_t parts : {1, 3}) {
                start(3);
                std::multiset<std::size_t> done;
                int failed = 0;
                const auto job = submit(parts, [&](std::size_t part, Device& device, Execution&) {
                    if (parts == 3) meet();
                    const std::lock_guard lock(mutex_);
                    // Where there is but one part, whoever begins it fails.
                    if (parts == 1 && failed == 0) failing = number_of(device);
                    if (number_of(device) == failing) {
                        ++failed;
                        return Status(error, "it failed");
                    }
                    done.insert(part);
                    return Status();
                });
                wait_for(job);
                EXPECT_TRUE(job->status.ok() && merged(*job)) << job->status.message();
                EXPECT_EQ(done.size(), parts);
                for (std::size_t part = 0; part < parts; ++part) EXPECT_EQ(done.count(part), 1u);
                // With less memory four times, before another device gets it.
                const int tries = error == ErrorCode::out_of_memory ? 5 : 1;
                EXPECT_EQ(failed, tries);
                EXPECT_EQ(job->retries, static_cast<std::uint64_t>(tries));
                EXPECT_NE(job->device, failing);
                ASSERT_EQ(job->parts.failures.size(), 1u);
                EXPECT_EQ(job->parts.failures[0].device, failing);
                EXPECT_EQ(job->parts.failures[0].status.code(), error);
                EXPECT_FALSE(job->parts.devices[failing]);
            }
}

TEST_F(Workers, FailWithTheFirstErrorWhenAllFail) {
    for (const ErrorCode error : kOfDevices)
        for (const std::size_t parts : {1, 3}) {
            start(3);
            std::vector<std::int32_t> failed;
            const auto job = submit(parts, [&](std::size_t, Device& device, Execution&) {
                const std::lock_guard lock(mutex_);
                if (failed.empty() || failed.back() != number_of(device))
                    failed.push_back(number_of(device));
                return Status(failed.size() == 1 ? error : ErrorCode::device_error,
                              std::to_string(failed.size()));
            });
            wait_for(job);
            ASSERT_EQ(job->parts.failures.size(), 3u);
            // One device after the other has the only part; several parts fail in any order.
            if (parts == 1) {
                EXPECT_EQ(job->status.code(), error);
                EXPECT_EQ(job->status.message(), "1");
            }
            EXPECT_EQ(job->status.message(), job->parts.failures[0].status.message());
            EXPECT_FALSE(merged(*job));
            EXPECT_EQ(std::set(failed.begin(), failed.end()).size(), 3u);
        }
}

TEST_F(Workers, KeepAJobToTheDeviceThatItNames) {
    const auto job = submit(
        1,
        [](std::size_t, Device&, Execution&) {
            return Status(ErrorCode::device_error, "it failed");
        },
        1);
    wait_for(job);
    EXPECT_EQ(job->status.code(), ErrorCode::device_error);
    EXPECT_EQ(job->parts.failures.size(), 1u);
}

TEST_F(Workers, DoTheJobsOfEachOtherWhenBothFail) {
    start(2);
    std::atomic<int> failures{0};
    // Each fails once the other has begun with its own.
    const auto fails_on_first = [&](std::size_t, Device&, Execution&) {
        meet();
        return failures++ < 2 ? Status(ErrorCode::device_error, "it failed") : Status();
    };
    const auto one = submit(1, fails_on_first), other = submit(1, fails_on_first);
    wait_for(one);
    wait_for(other);
    for (const auto& job : {one, other}) {
        EXPECT_TRUE(job->status.ok()) << job->status.message();
        EXPECT_EQ(job->parts.failures.size(), 1u);
    }
    EXPECT_NE(one->device, other->device);
}

TEST_F(Workers, EndAJobWhoseLastDeviceIsLostInAnotherOne) {
    start(2);
    const auto begun = [](const auto& job) { return [&] { return job->device >= 0; }; };
    std::atomic<bool> lose{false};
    const auto other = submit(
        1,
        [&](std::size_t, Device&, Execution&) {
            while (!lose) std::this_thread::sleep_for(1ms);
            return Status(ErrorCode::device_lost, "it is lost");
        },
        1);
    ASSERT_NO_FATAL_FAILURE(await(begun(other)));
    const auto job = submit(1, [](std::size_t, Device&, Execution&) {
        return Status(ErrorCode::device_error, "it failed");
    });
    ASSERT_NO_FATAL_FAILURE(await([&] { return job->execution.phase_times().size() > 1; }));
    const auto for_lost = submit(
        1, [](std::size_t, Device&, Execution&) { return Status(); }, 1);
    lose = true;
    wait_for(job);
    EXPECT_EQ(job->status.message(), "it failed");
    wait_for(other);
    EXPECT_EQ(other->status.message(), "it is lost");
    // Neither those that wait for it nor those that come are kept.
    wait_for(for_lost);
    EXPECT_EQ(for_lost->status.code(), ErrorCode::unavailable);
    const auto too_late = submit(
        1, [](std::size_t, Device&, Execution&) { return Status(); }, 1);
    wait_for(too_late);
    EXPECT_EQ(too_late->status.code(), ErrorCode::unavailable);
    const auto next = submit(2, [&](std::size_t, Device& device, Execution&) {
        EXPECT_EQ(number_of(device), 0);
        return Status();
    });
    wait_for(next);
    EXPECT_TRUE(next->status.ok());
}

TEST_F(Workers, EndAllThatWaitWhenAllDevicesAreLost) {
    std::vector<std::shared_ptr<DaemonJob>> jobs;
    for (int i = 0; i < 10; ++i)
        jobs.push_back(submit(1, [&](std::size_t, Device&, Execution&) {
            return Status(ErrorCode::device_lost, "it is lost");
        }));
    for (const auto& job : jobs) {
        wait_for(job);
        EXPECT_FALSE(job->status.ok());
        EXPECT_FALSE(job->reply.bytes.empty());
    }
}

TEST_F(Workers, ForgetACancelledJobThatWaitsForAnotherDevice) {
    start(2);
    std::atomic<bool> free{false};
    const auto busy = submit(
        1,
        [&](std::size_t, Device&, Execution&) {
            while (!free) std::this_thread::sleep_for(1ms);
            return Status();
        },
        1);
    ASSERT_NO_FATAL_FAILURE(await([&] { return busy->device == 1; }));
    const auto failing = [](std::size_t, Device&, Execution&) {
        return Status(ErrorCode::device_error, "it failed");
    };
    const auto waits = [](const DaemonJob& job) {
        return job.device < 0 && job.execution.phase_times().size() > 1;
    };
    const auto cancelled = submit(1, failing), stopped = submit(1, failing);
    ASSERT_NO_FATAL_FAILURE(await([&] { return waits(*cancelled) && waits(*stopped); }));
    EXPECT_TRUE(workers_->cancel(cancelled));
    // The device that failed is free for other jobs meanwhile.
    const auto next = submit(
        1, [](std::size_t, Device&, Execution&) { return Status(); }, 0);
    wait_for(next);
    EXPECT_TRUE(next->status.ok());
    free = true;
    wait_for(busy);
    wait_for(stopped);
    EXPECT_EQ(stopped->status.code(), ErrorCode::device_error);
    const std::lock_guard lock(mutex_);
    EXPECT_FALSE(ended_.contains(cancelled));
}

TEST_F(Workers, StopWhileAJobWaitsForAnotherDevice) {
    start(2);
    const auto busy = submit(
        1,
        [&](std::size_t, Device&, Execution& execution) {
            while (!execution.stop_requested()) std::this_thread::sleep_for(1ms);
            return Status::cancelled();
        },
        1);
    ASSERT_NO_FATAL_FAILURE(await([&] { return busy->device == 1; }));
    const auto job = submit(1, [](std::size_t, Device&, Execution&) {
        return Status(ErrorCode::device_error, "it failed");
    });
    ASSERT_NO_FATAL_FAILURE(await([&] { return job->execution.phase_times().size() > 1; }));
    EXPECT_TRUE(workers_->stop(20s));
}

TEST_F(Workers, ShowTheDeviceThatGoesOn) {
    std::atomic<bool> go_on{false};
    std::atomic<std::int32_t> first{-1}, failing{-1};
    const auto job = submit(3, [&](std::size_t part, Device& device, Execution& execution) {
        // Who began the job does its first part.
        if (part == 0 && first < 0) first = number_of(device);
        meet();
        execution.begin_phase("meeting", 10);
        execution.advance(static_cast<std::uint64_t>(number_of(device)) + 1);
        if (std::int32_t none = -1;
            number_of(device) == first && failing.compare_exchange_strong(none, number_of(device)))
            return Status(ErrorCode::device_error, "it failed");
        while (!go_on) std::this_thread::sleep_for(1ms);
        return Status();
    });
    ASSERT_NO_FATAL_FAILURE(await([&] { return failing >= 0 && job->device != failing; }));
    ASSERT_GE(job->device, 0);
    ASSERT_NO_FATAL_FAILURE(await([&] { return job->shown.load()->done() > 0; }));
    EXPECT_STREQ(job->shown.load()->phase(), "meeting");
    EXPECT_EQ(job->shown.load()->done(), static_cast<std::uint64_t>(job->device) + 1);
    go_on = true;
    wait_for(job);
    EXPECT_TRUE(job->status.ok());
}

/// Notes that it has been given a part, before a fault strikes there.
class TriedDevice : public FakeDevice {
public:
    using FakeDevice::FakeDevice;

    std::uint64_t free_memory() override {
        tried = true;
        return FakeDevice::free_memory();
    }

    std::atomic<bool> tried{false};
};

TEST_F(Workers, SufferTheFaultsOfTheirDevices) {
    start<TriedDevice>(3);
    for (std::int32_t failing = 0; failing < 3; ++failing) {
        std::atomic<bool>& tried = static_cast<TriedDevice&>(*devices_[failing]).tried;
        tried = false;
        const auto job = submit(3,
                                [&](std::size_t, Device&, Execution&) {
                                    // Else the others may do all parts before it wakes up.
                                    await([&] { return tried.load(); });
                                    return Status();
                                },
                                -1, {{FaultPoint::in_job, FaultKind::device_error, 1, failing}});
        wait_for(job);
        EXPECT_TRUE(job->status.ok()) << job->status.message();
        ASSERT_EQ(job->parts.failures.size(), 1u);
        EXPECT_EQ(job->parts.failures[0].device, failing);
    }
}

TEST_F(Workers, CancelAllParts) {
    const auto job = submit(3, [&](std::size_t, Device&, Execution& execution) {
        meet();
        while (!execution.stop_requested()) std::this_thread::sleep_for(1ms);
        return Status::cancelled();
    });
    {
        std::unique_lock lock(mutex_);
        ASSERT_TRUE(changed_.wait_for(lock, 20s, [&] { return here_ == 3; }));
    }
    EXPECT_FALSE(workers_->cancel(job));
    wait_for(job);
    EXPECT_EQ(job->status.code(), ErrorCode::cancelled);
}

TEST_F(Workers, HandBackACancelledJobWithAPartThatRunsAndOneThatIsOpen) {
    start(2);
    std::atomic<bool> free{false};
    const auto busy = submit(
        1,
        [&](std::size_t, Device&, Execution&) {
            while (!free) std::this_thread::sleep_for(1ms);
            return Status();
        },
        1);
    ASSERT_NO_FATAL_FAILURE(await([&] { return busy->device == 1; }));
    std::atomic<int> runs{0};
    const auto job = submit(2, [&](std::size_t, Device&, Execution& execution) {
        ++runs;
        while (!execution.stop_requested()) std::this_thread::sleep_for(1ms);
        return Status::cancelled();
    });
    ASSERT_NO_FATAL_FAILURE(await([&] { return runs == 1; }));
    EXPECT_FALSE(workers_->cancel(job));
    wait_for(job);
    EXPECT_EQ(job->status.code(), ErrorCode::cancelled);
    free = true;
    wait_for(busy);
    EXPECT_EQ(runs, 1);
}

TEST_F(Workers, CallAJobCancelledWhoseOnlyDeviceFailsAfterIt) {
    std::atomic<bool> runs{false};
    const auto job = submit(
        1,
        [&](std::size_t, Device&, Execution& execution) {
            runs = true;
            while (!execution.stop_requested()) std::this_thread::sleep_for(1ms);
            return Status(ErrorCode::device_error, "it failed");
        },
        1);
    ASSERT_NO_FATAL_FAILURE(await([&] { return runs.load(); }));
    EXPECT_FALSE(workers_->cancel(job));
    wait_for(job);
    EXPECT_EQ(job->status.code(), ErrorCode::cancelled);
}

TEST_F(Workers, StopWhileTheyWorkTogether) {
    submit(3, [&](std::size_t, Device&, Execution& execution) {
        meet();
        while (!execution.stop_requested()) std::this_thread::sleep_for(1ms);
        return Status::cancelled();
    });
    {
        std::unique_lock lock(mutex_);
        ASSERT_TRUE(changed_.wait_for(lock, 20s, [&] { return here_ == 3; }));
    }
    EXPECT_TRUE(workers_->stop(20s));
}

}  // namespace
}  // namespace gputext
