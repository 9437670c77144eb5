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
    Status run(std::size_t part, Device& device, std::uint64_t, Execution& execution) override {
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

    bool merged = false;
    std::size_t rounds = 0, wanted_rounds = 1;

private:
    std::size_t parts_;
    Run run_;
    JobLimits limits_;
};

class Workers : public ::testing::Test {
protected:
    Workers() {
        for (unsigned i = 0; i < 3; ++i) devices_.push_back(std::make_unique<FakeDevice>(i));
        workers_ = std::make_unique<DeviceWorkers>(devices_, 0, [this](auto job) {
            const std::lock_guard lock(mutex_);
            ended_.insert(std::move(job));  // kept, so that no other has its address
            changed_.notify_all();
        });
    }

    std::shared_ptr<DaemonJob> submit(std::size_t parts, MeetingJob::Run run, int device = -1) {
        auto job = std::make_shared<DaemonJob>(
            3, std::make_unique<MeetingJob>(parts, std::move(run), device));
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
        for (std::int32_t i = 0; i < 3; ++i)
            if (devices_[i].get() == &device) return i;
        return -1;
    }
    /// Until all three have come, or one second.
    void meet() {
        std::unique_lock lock(mutex_);
        ++here_;
        changed_.notify_all();
        changed_.wait_for(lock, 1s, [&] { return here_ >= 3; });
    }

    std::vector<std::unique_ptr<Device>> devices_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::set<std::shared_ptr<DaemonJob>> ended_;
    int here_ = 0;
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
                return Status(ErrorCode::device_error, "it failed");
            while (!execution.stop_requested()) std::this_thread::sleep_for(1ms);
            return Status::cancelled();
        });
        wait_for(job);
        EXPECT_EQ(job->status.code(), ErrorCode::device_error);
        EXPECT_FALSE(merged(*job));
    }
    const auto next = submit(1, [](std::size_t, Device&, Execution&) { return Status(); });
    wait_for(next);
    EXPECT_TRUE(next->status.ok());
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
