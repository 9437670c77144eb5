#include "cpp/base/stoppable.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "tests/support/random_strings.hpp"

namespace gputext {
namespace {

/// Asks to stop at the look of this number; counts looks.
struct StopAt {
    int look;
    int looks = 0;

    Stop stop() {
        return {[](void* context) {
                    auto& at = *static_cast<StopAt*>(context);
                    return ++at.looks >= at.look;
                },
                this};
    }
};

std::vector<int> random_numbers(std::size_t count) {
    testing::RandomStrings random;
    std::vector<int> numbers(count);
    for (int& number : numbers) number = static_cast<int>(random.below(1000000));
    return numbers;
}

TEST(StoppableSort, SortsAsTheLibrary) {
    for (const std::size_t count : {0, 1, 2, 17, 100000}) {
        std::vector<int> numbers = random_numbers(count), sorted = numbers;
        std::sort(sorted.begin(), sorted.end(), std::greater<>());
        EXPECT_TRUE(stoppable_sort(numbers.begin(), numbers.end(), std::greater<>(), Stop()));
        EXPECT_EQ(numbers, sorted);
    }
}

TEST(StoppableSort, LooksOftenAndEndsAtTheLookThatSaysSo) {
    std::vector<int> numbers = random_numbers(100000);
    StopAt never{1000000};
    std::size_t compared = 0, between = 0;
    int looks = 0;
    const auto less = [&](int a, int b) {
        if (never.looks != looks) compared = 0;
        looks = never.looks;
        between = std::max(between, ++compared);
        return a < b;
    };
    EXPECT_TRUE(stoppable_sort(numbers.begin(), numbers.end(), less, never.stop()));
    EXPECT_GT(never.looks, 100);
    EXPECT_LE(between, 4096u);

    numbers = random_numbers(100000);
    StopAt third{3};
    EXPECT_FALSE(stoppable_sort(numbers.begin(), numbers.end(), std::less<>(), third.stop()));
    EXPECT_EQ(third.looks, 3);
}

TEST(StoppableSort, LooksAtEachComparisonOfVeryLongElements) {
    std::vector<int> numbers = random_numbers(1000);
    StopAt never{1000000};
    int compared = 0;
    const auto less = [&](int a, int b) {
        ++compared;
        return a < b;
    };
    EXPECT_TRUE(stoppable_sort(numbers.begin(), numbers.end(), less, never.stop(), 64 * kLookEvery));
    EXPECT_EQ(never.looks, compared);
}

}  // namespace
}  // namespace gputext
