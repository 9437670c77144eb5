// What runs on several threads when memory runs out: each allocation fails once. The outcome is an
// answer or out_of_memory; an exception that reaches a thread's end, or leaves threads behind that
// nobody has joined, ends this program.

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <new>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "cpp/base/exception_status.hpp"
#include "cpp/base/helper_threads.hpp"
#include "cpp/base/job.hpp"
#include "cpp/documents/near_duplicates.hpp"
#include "cpp/embeddings/word2vec.hpp"
#include "cpp/knn/k_means.hpp"
#include "tests/support/packed.hpp"
#include "tests/support/random_strings.hpp"

namespace {

std::atomic<long> allocations_left{-1};  // below 0: as many as one wants
std::atomic<bool> all_fail{false};       // those that come later, too
std::atomic<long> failed{0};

bool fails() {
    long left = allocations_left.load();
    while (left > 0)
        if (allocations_left.compare_exchange_weak(left, left - 1)) return false;
    if (left < 0) return false;
    if (!all_fail.load() && !allocations_left.compare_exchange_strong(left, -1)) return false;
    ++failed;
    return true;
}

void* allocate(std::size_t size, std::size_t alignment) {
    void* const memory =
        fails() ? nullptr
                : std::aligned_alloc(alignment, (size + alignment) / alignment * alignment);
    if (memory == nullptr) throw std::bad_alloc();
    return memory;
}

}  // namespace

// All forms that are used here: AddressSanitizer has its own of each.
void* operator new(std::size_t size) {
    return allocate(size, alignof(std::max_align_t));
}
void* operator new(std::size_t size, std::align_val_t alignment) {
    return allocate(size, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
    try {
        return operator new(size);
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
}
void* operator new[](std::size_t size) {
    return operator new(size);
}
void* operator new[](std::size_t size, const std::nothrow_t& nothrow) noexcept {
    return operator new(size, nothrow);
}
void operator delete(void* memory) noexcept {
    std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
    std::free(memory);
}
void operator delete(void* memory, const std::nothrow_t&) noexcept {
    std::free(memory);
}
void operator delete[](void* memory) noexcept {
    std::free(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
    std::free(memory);
}
void operator delete[](void* memory, const std::nothrow_t&) noexcept {
    std::free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
    std::free(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
    std::free(memory);
}

namespace gputext {
namespace {

/// Calls work() with the first allocation failing, then with the second, and so on until it makes
/// no more. Returns how many of them made it fail. What it gives without a failure is `expected`.
template <class Work>
long fail_each_allocation(bool those_behind_too, const Work& work) {
    long errors = 0;
    all_fail = those_behind_too;
    for (long number = 0;; ++number) {
        failed = 0;
        allocations_left = number;
        const Status status = status_or_exception(work);
        allocations_left = -1;
        if (!status.ok()) {
            EXPECT_EQ(status.code(), ErrorCode::out_of_memory)
                << "allocation " << number << ": " << status.message();
            EXPECT_GT(failed, 0) << "allocation " << number;
            ++errors;
        }
        if (failed == 0) return errors;
    }
}

class AllocationFailures : public ::testing::TestWithParam<bool> {};

TEST_P(AllocationFailures, OfThreadsOfALoopCostThreads) {
    // One that fails leaves all work to the threads that there are.
    const long errors = fail_each_allocation(GetParam(), [] {
        Execution execution(6);
        std::array<std::atomic<int>, 40> calls{};
        const Execution::Body body = [&calls](std::size_t i, unsigned) {
            ++calls[i];
            return Status();
        };
        const Status status = execution.parallel_for(calls.size(), body);
        for (const auto& count : calls) EXPECT_EQ(count, 1);
        return status;
    });
    EXPECT_EQ(errors, 0);
}

TEST_P(AllocationFailures, InTheBodyOfALoopAreItsError) {
    const long errors = fail_each_allocation(GetParam(), [] {
        Execution execution(4);
        return execution.parallel_for(20, [](std::size_t i, unsigned) {
            std::vector<std::size_t> own(100 + i);
            std::iota(own.begin(), own.end(), i);
            return own.back() == 99 + 2 * i ? Status() : Status(ErrorCode::internal_error, "wrong");
        });
    });
    EXPECT_GT(errors, 0);
}

TEST_P(AllocationFailures, OfAnErrorsTextAreOutOfMemory) {
    const long errors = fail_each_allocation(GetParam(), [] {
        Execution execution(1);
        const Status status = execution.parallel_for(1, [](std::size_t, unsigned) -> Status {
            throw std::logic_error("a sentence that is too long to lie within a string");
        });
        return status.code() == ErrorCode::internal_error ? Status() : status;
    });
    EXPECT_GT(errors, 0);
}

TEST_P(AllocationFailures, OfThreadsOfATeamCostThreads) {
    fail_each_allocation(GetParam(), [] {
        Team team(6);
        std::atomic<unsigned> members{0};
        const unsigned size = team.size();
        team.run([&members](unsigned thread) { members += thread + 1; });
        EXPECT_EQ(members, size * (size + 1) / 2);
        return Status();
    });
}

TEST_P(AllocationFailures, OfATeamThatNeverRunsCostThreads) {
    const long errors = fail_each_allocation(GetParam(), [] {
        Team team(6);
        return team.size() >= 1 ? Status() : Status(ErrorCode::internal_error, "nobody");
    });
    EXPECT_EQ(errors, 0);
}

TEST_P(AllocationFailures, OfAJobAreOutOfMemory) {
    const long errors = fail_each_allocation(GetParam(), [] {
        const auto job = Job::start(4, [](Execution& execution) {
            return execution.parallel_for(10, [](std::size_t, unsigned) { return Status(); });
        });
        return job == nullptr ? Status::out_of_memory() : job->wait();
    });
    EXPECT_GT(errors, 0);
}

TEST_P(AllocationFailures, OfKMeansAreOutOfMemory) {
    std::vector<float> elements;
    for (int i = 0; i < 300; ++i) elements.push_back(static_cast<float>(i * i % 97));
    const Vectors items{ElementType::float32, 100, 3, elements.data(), {}, {}};
    const long errors = fail_each_allocation(GetParam(), [&] {
        Execution execution(3);
        const auto answer = k_means({.k = 9, .iterations = 3}, items, execution);
        if (!answer.ok()) return answer.status();
        EXPECT_EQ(answer->clusters.size(), 100u);
        return Status();
    });
    EXPECT_GT(errors, 0);
}

TEST_P(AllocationFailures, OfNearDuplicatesAreOutOfMemory) {
    testing::RandomStrings random;
    std::vector<std::string> texts;
    for (int i = 0; i < 12; ++i) texts.push_back(random.string(400, "abcdefgh"));
    texts.push_back(texts.front() + "x");
    const testing::Packed packed(texts);
    for (const NearDuplicateMode mode : {NearDuplicateMode::ctph, NearDuplicateMode::exact}) {
        NearDuplicateParameters parameters;
        parameters.threshold = 0.1;
        parameters.mode = mode;
        const long errors = fail_each_allocation(GetParam(), [&] {
            Execution execution(3);
            const auto answer = near_duplicates(parameters, packed.documents(), {}, execution);
            return answer.status();
        });
        EXPECT_GT(errors, 10);
    }
}

TEST_P(AllocationFailures, OfATrainingAreOutOfMemory) {
    std::vector<std::uint32_t> words, positions;
    std::vector<std::uint64_t> counts(30);
    constexpr std::uint32_t tokens = testing::kSanitized ? 200 : 1000;
    for (std::uint32_t i = 0; i < tokens; ++i) {
        words.push_back(i * i % 30);
        positions.push_back(i);
        ++counts[words.back()];
    }
    TrainingParameters parameters;
    parameters.dimensions = 8;
    parameters.epochs = 2;
    parameters.batch = tokens / 2;
    parameters.learning_rate = 0.1f;
    const long errors = fail_each_allocation(GetParam(), [&] {
        TrainingRun run({parameters, 0, {words, positions}, counts, {}});
        Execution execution(3);
        Status status = run.prepare(execution);
        return status.ok() ? run.run_on_cpu(execution) : status;
    });
    EXPECT_GT(errors, 10);
}

INSTANTIATE_TEST_SUITE_P(EachOfThem, AllocationFailures, ::testing::Bool(),
                         [](const auto& test) { return test.param ? "AndAllBehindIt" : "Alone"; });

}  // namespace
}  // namespace gputext
