// What runs on several threads when memory runs out: each allocation fails once. The outcome is an
// answer or out_of_memory; an exception that reaches a thread's end, or leaves threads behind that
// nobody has joined, ends this program.

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <functional>
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
#include "cpp/resident/resident_values.hpp"
#include "tests/support/packed.hpp"
#include "tests/support/random_strings.hpp"
#include "tests/support/resident_value_files.hpp"

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

/// A store that keeps values of two tables.
class KeptValues {
public:
    explicit KeptValues(std::uint64_t limit) : store_({limit, 100}) {
        for (const std::uint32_t table : {kLarge, kSmall}) {
            const auto values = values_of(table);
            ValueRequest request = find(values);
            const auto bytes = testing::bytes_of_all(values);
            testing::ValueFiles files(bytes);
            EXPECT_TRUE(
                store_.add(request, {bytes.size(), files.shape}, std::move(files.files)).ok());
            store_.settle();
        }
        EXPECT_EQ(store_.bytes(), 500 * kCost);
    }

    /// For some of a table's values, all of which are kept.
    ValueRequest find(std::uint32_t table, std::size_t begin, std::size_t count) {
        const auto all = values_of(table);
        const auto first = all.begin() + static_cast<std::ptrdiff_t>(begin);
        return find({first, first + static_cast<std::ptrdiff_t>(count)});
    }
    Status take_part(ValueRequest& request) {
        Execution execution(1);
        const Status taken =
            store_.take(request, {.early = false, .again = true}, execution).status();
        // A copy that could not be filled
        return taken.code() == ErrorCode::unavailable ? Status::out_of_memory() : taken;
    }
    void add_part(std::uint32_t table, std::size_t begin, std::size_t count) {
        ValueRequest request = find(table, begin, count);
        EXPECT_TRUE(take_part(request).ok());
    }
    Status forget(std::uint32_t table) {
        return status_or_exception([&] {
            store_.forget(kKind.database, table);
            return Status();
        });
    }
    ResidentValues& store() { return store_; }

    static constexpr std::uint32_t kLarge = 3, kSmall = 5;
    static constexpr std::uint64_t kSize = 400, kCost = kSize + 96;

private:
    static testing::ResidentValueList values_of(std::uint32_t table) {
        return testing::some_values(table, 1, table == kLarge ? 300 : 200, kSize);
    }
    ValueRequest find(const testing::ResidentValueList& values) {
        ValueRequest request;
        const auto pointers = testing::pointer_file(values);
        EXPECT_TRUE(store_
                        .find({1, 100, kKind, static_cast<std::uint32_t>(values.size())},
                              pointers.get(), request, {})
                        .ok());
        return request;
    }

    static constexpr ValueKind kKind{7, ValueForm::vector, ElementType::float32, kSize / 4};
    ResidentValues store_;
};

/// They have what they say, whatever fails: nothing once all is forgotten.
TEST_P(AllocationFailures, OfKeptValuesLeaveTheirAccountsRight) {
    constexpr auto kLarge = KeptValues::kLarge, kSmall = KeptValues::kSmall;
    using Work = std::function<Status(KeptValues&, ValueRequest&)>;
    const auto fail_each = [](std::uint64_t limit, const std::function<void(KeptValues&)>& begin,
                              const Work& work) {
        return fail_each_allocation(GetParam(), [&] {
            const long number = allocations_left.exchange(-1);
            KeptValues kept(limit);
            begin(kept);
            kept.store().given_up();
            ValueRequest request = kept.find(kLarge, 100, 100);
            allocations_left = number;
            const Status status = work(kept, request);
            allocations_left = -1;
            const std::uint64_t bytes = kept.store().bytes();
            EXPECT_LE(bytes, kept.store().limit()) << "allocation " << number;
            EXPECT_TRUE(kept.forget(0).ok());
            EXPECT_EQ(kept.store().bytes(), 0u) << "allocation " << number << " of " << bytes;
            return status;
        });
    };
    const Work take_part = [](KeptValues& kept, ValueRequest& request) {
        return kept.take_part(request);
    };
    // For the part another one is given up, or the chunk that it is not of.
    const auto add_part = [](KeptValues& kept) { kept.add_part(kLarge, 0, 100); };
    EXPECT_GT(fail_each(300'000, add_part, take_part), 5);
    EXPECT_GT(fail_each(
                  260'000, [](KeptValues&) {}, take_part),
              5);
    // Parts are forgotten, but for the one between them.
    const auto add_parts = [](KeptValues& kept) {
        kept.add_part(kLarge, 0, 40);
        kept.add_part(kSmall, 0, 40);
        kept.add_part(kLarge, 40, 40);
    };
    const Work forget = [](KeptValues& kept, ValueRequest&) { return kept.forget(kLarge); };
    EXPECT_GT(fail_each(300'000, add_parts, forget), 0);
}

INSTANTIATE_TEST_SUITE_P(EachOfThem, AllocationFailures, ::testing::Bool(),
                         [](const auto& test) { return test.param ? "AndAllBehindIt" : "Alone"; });

}  // namespace
}  // namespace gputext
