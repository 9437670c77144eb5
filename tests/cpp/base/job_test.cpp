#include "cpp/base/job.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <numeric>
#include <set>
#include <stdexcept>
#include <thread>

#include "cpp/base/helper_threads.hpp"

namespace gputext {
namespace {

bool ready(const Job& job, int milliseconds) {
    pollfd fd{job.ready_fd(), POLLIN, 0};
    return poll(&fd, 1, milliseconds) == 1;
}

TEST(Job, BecomesReadyAndHandsOverItsStatus) {
    const auto job =
        Job::start(1, [](Execution&) { return Status(ErrorCode::invalid_argument, "as asked"); });
    ASSERT_NE(job, nullptr);
    EXPECT_TRUE(ready(*job, 10000));
    EXPECT_EQ(job->wait().code(), ErrorCode::invalid_argument);
    EXPECT_EQ(job->wait().message(), "as asked");
}

TEST(Job, TurnsExceptionsIntoStatuses) {
    const auto no_memory = Job::start(1, [](Execution&) -> Status { throw std::bad_alloc(); });
    EXPECT_EQ(no_memory->wait().code(), ErrorCode::out_of_memory);
    const auto defect = Job::start(1, [](Execution&) -> Status { throw std::logic_error("oops"); });
    EXPECT_EQ(defect->wait().code(), ErrorCode::internal_error);
}

TEST(Job, StopsSoonAfterItIsDestroyed) {
    std::atomic<bool> stopped{false};
    {
        const auto job = Job::start(2, [&](Execution& execution) {
            Status status = execution.parallel_for(1u << 30, [](std::size_t, unsigned) {
                std::this_thread::sleep_for(std::chrono::milliseconds(1));
                return Status();
            });
            stopped = status.code() == ErrorCode::cancelled;
            return status;
        });
        EXPECT_FALSE(ready(*job, 30));
    }
    EXPECT_TRUE(stopped);
}

/// Of this thread: no other one ever has it, as may be with std::thread::id.
int number_of_thread() {
    static std::atomic<int> threads{0};
    thread_local const int number = ++threads;
    return number;
}

/// The threads that work on so many steps, each of which takes a while.
std::set<int> threads_of(Execution& execution, std::size_t steps) {
    std::mutex mutex;
    std::set<int> threads;
    const Status status = execution.parallel_for(steps, [&](std::size_t, unsigned) {
        {
            const std::lock_guard lock(mutex);
            threads.insert(number_of_thread());
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        return Status();
    });
    EXPECT_TRUE(status.ok());
    return threads;
}

TEST(Execution, KeepsItsThreads) {
    Execution execution(4);
    std::set<int> all;
    for (const std::size_t steps : {2, 40, 40, 1, 3, 0, 40})
        all.merge(threads_of(execution, steps));
    EXPECT_LE(all.size(), 4u);
    EXPECT_GE(all.size(), 2u);
    EXPECT_TRUE(all.contains(number_of_thread()));
}

TEST(Execution, NumbersTheThreadsOfEachCall) {
    Execution execution(3);
    for (int round = 0; round < 1000; ++round) {
        std::atomic<unsigned> working[3] = {};
        std::atomic<std::size_t> steps{0};
        const Status status = execution.parallel_for(7, [&](std::size_t, unsigned worker) {
            EXPECT_EQ(working[worker].fetch_add(1), 0u);
            ++steps;
            working[worker].fetch_sub(1);
            return Status();
        });
        ASSERT_TRUE(status.ok());
        ASSERT_EQ(steps, 7u);
    }
}

TEST(Execution, LetsABodyUseIt) {
    Execution execution(3);
    std::atomic<std::size_t> steps{0};
    const Status status = execution.parallel_for(5, [&](std::size_t, unsigned) {
        return execution.parallel_for(4, [&](std::size_t, unsigned) {
            ++steps;
            return Status();
        });
    });
    EXPECT_TRUE(status.ok());
    EXPECT_EQ(steps, 20u);
}

TEST(Execution, GoesOnAfterAnError) {
    Execution execution(4);
    for (int round = 0; round < 100; ++round) {
        const Status failed = execution.parallel_for(20, [](std::size_t i, unsigned) -> Status {
            if (i == 3) throw std::bad_alloc();
            return {};
        });
        EXPECT_EQ(failed.code(), ErrorCode::out_of_memory);
        EXPECT_GE(threads_of(execution, 2).size(), 1u);
    }
}

TEST(Execution, AddsUpTheTimesOfPhases) {
    Execution execution(1);
    EXPECT_TRUE(execution.phase_times().empty());
    const auto begin = std::chrono::steady_clock::now();
    execution.begin_phase("first", 1);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    execution.begin_phase("second", 1);
    execution.begin_phase("first", 1);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const auto times = execution.phase_times();
    const std::chrono::duration<double> all = std::chrono::steady_clock::now() - begin;
    ASSERT_EQ(times.size(), 2u);
    EXPECT_EQ(times[0].name, "first");
    EXPECT_EQ(times[1].name, "second");
    EXPECT_GE(times[0].seconds, 0.04);
    EXPECT_LE(times[0].seconds + times[1].seconds, all.count());
}

/// Where threads wait for each other.
class MeetingPoint {
public:
    explicit MeetingPoint(int wanted) : wanted_(wanted) {}

    /// Whether all came: with fewer threads than wanted, nobody else can come.
    bool all_came() {
        std::unique_lock lock(mutex_);
        ++here_;
        changed_.notify_all();
        return changed_.wait_for(lock, std::chrono::seconds(20), [&] { return here_ >= wanted_; });
    }

private:
    const int wanted_;
    int here_ = 0;
    std::mutex mutex_;
    std::condition_variable changed_;
};

TEST(Execution, VisitsEachIndexOnceOnSeveralThreads) {
    constexpr int threads = 4;
    Execution execution(threads);
    execution.begin_phase("visiting", 5000);
    MeetingPoint meeting(threads);
    std::vector<std::atomic<int>> visits(5000);
    std::vector<int> by_worker(threads);
    std::vector<std::thread::id> thread_of(threads);
    ASSERT_TRUE(execution
                    .parallel_for(visits.size(),
                                  [&](std::size_t i, unsigned worker) {
                                      ++visits[i];
                                      if (by_worker[worker]++ > 0) return Status();
                                      thread_of[worker] = std::this_thread::get_id();
                                      return meeting.all_came()
                                                 ? Status()
                                                 : Status(ErrorCode::internal_error, "alone");
                                  })
                    .ok());
    for (const auto& count : visits) ASSERT_EQ(count, 1);
    EXPECT_EQ(std::accumulate(by_worker.begin(), by_worker.end(), 0), 5000);
    EXPECT_EQ(std::set(thread_of.begin(), thread_of.end()).size(), std::size_t{threads});
    EXPECT_EQ(execution.done(), 5000u);
    EXPECT_EQ(execution.total(), 5000u);
    EXPECT_STREQ(execution.phase(), "visiting");
}

TEST(Execution, EndsWithTheFirstError) {
    Execution execution(3);
    std::atomic<int> calls{0};
    const Status status = execution.parallel_for(100000, [&](std::size_t i, unsigned) {
        ++calls;
        return i == 50 ? Status(ErrorCode::io_error, "fifty") : Status();
    });
    EXPECT_EQ(status.message(), "fifty");
    EXPECT_LT(calls, 100000);
}

TEST(Execution, BlocksSignalsOnItsThreads) {
    // A thread that took the signal would end this program.
    std::atomic<bool> blocked{false};
    std::thread thread = start_thread_without_signals([&] {
        sigset_t mask;
        pthread_sigmask(SIG_BLOCK, nullptr, &mask);
        blocked = sigismember(&mask, SIGINT) == 1 && sigismember(&mask, SIGTERM) == 1 &&
                  sigismember(&mask, SIGUSR1) == 1 && sigismember(&mask, SIGALRM) == 1;
    });
    thread.join();
    EXPECT_TRUE(blocked);
    sigset_t mine;
    pthread_sigmask(SIG_BLOCK, nullptr, &mine);
    EXPECT_EQ(sigismember(&mine, SIGINT), 0);
}

}  // namespace
}  // namespace gputext
