#include "cpp/embeddings/average.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "tests/support/random_strings.hpp"

namespace gputext {
namespace {

using testing::RandomStrings;

constexpr std::size_t kUnlimited = std::numeric_limits<std::size_t>::max();

std::vector<float> averaged(const AveragedRows& rows, const std::vector<float>& vectors) {
    std::vector<float> means;
    Execution execution(3);
    EXPECT_TRUE(average_rows(rows, vectors, kUnlimited, execution, means).ok());
    return means;
}

TEST(Average, IsTheMeanOfTheRowsThatAWordHas) {
    const std::vector<std::uint32_t> words{0, 1, 0, 2};
    const std::vector<float> vectors{1, 2, 3, 4, 5, 8, 7, 7};
    EXPECT_EQ(averaged({3, 2, words, {}}, vectors), (std::vector<float>{3, 5, 3, 4, 7, 7}));
    const std::vector<std::uint64_t> weights{3, 0, 1, 5};
    EXPECT_EQ(averaged({3, 2, words, weights}, vectors), (std::vector<float>{2, 3.5, 3, 4, 7, 7}));
}

/// Rows and their order, against a plain sum in long double
TEST(Average, DoesNotDependOnTheOrderOfRows) {
    RandomStrings random;
    for (int round = 0; round < 50; ++round) {
        const auto words = static_cast<std::uint32_t>(1 + random.below(300));
        const std::size_t dimensions = 1 + random.below(20), rows = random.below(2000);
        std::vector<std::uint32_t> row_words(rows), order(rows);
        for (std::uint32_t& word : row_words)
            word = static_cast<std::uint32_t>(random.below(words));
        std::vector<float> vectors(rows * dimensions);
        for (float& x : vectors)
            x = std::ldexp(static_cast<float>(random.below(1 << 24)) - (1 << 23),
                           static_cast<int>(random.below(60)) - 40);
        std::vector<std::uint64_t> weights(round % 2 == 0 ? rows : 0);
        for (std::uint64_t& weight : weights) weight = random.below(3);
        const auto means = averaged({words, dimensions, row_words, weights}, vectors);

        std::iota(order.begin(), order.end(), 0u);
        for (std::size_t i = rows; i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
        std::vector<std::uint32_t> mixed_words;
        std::vector<std::uint64_t> mixed_weights;
        std::vector<float> mixed;
        for (const std::uint32_t row : order) {
            mixed_words.push_back(row_words[row]);
            if (!weights.empty()) mixed_weights.push_back(weights[row]);
            mixed.insert(mixed.end(),
                         vectors.begin() + static_cast<std::ptrdiff_t>(row * dimensions),
                         vectors.begin() + static_cast<std::ptrdiff_t>((row + 1) * dimensions));
        }
        EXPECT_EQ(averaged({words, dimensions, mixed_words, mixed_weights}, mixed).size(),
                  means.size());
        const auto again = averaged({words, dimensions, mixed_words, mixed_weights}, mixed);
        for (std::uint32_t word = 0; word < words; ++word) {
            long double all = 0;
            bool any = false;
            for (std::size_t row = 0; row < rows; ++row)
                if (row_words[row] == word) {
                    any = true;
                    if (!weights.empty()) all += static_cast<long double>(weights[row]);
                }
            if (!any) continue;
            for (std::size_t i = 0; i < dimensions; ++i) {
                long double sum = 0, count = 0, size = 0;
                for (std::size_t row = 0; row < rows; ++row)
                    if (row_words[row] == word) {
                        const long double weight =
                            all > 0 ? static_cast<long double>(weights[row]) : 1;
                        const long double x = vectors[row * dimensions + i];
                        sum += weight * x;
                        size += weight * std::abs(x);
                        count += weight;
                    }
                ASSERT_EQ(means[word * dimensions + i], again[word * dimensions + i]);
                ASSERT_LE(std::abs(means[word * dimensions + i] - sum / count),
                          1e-7L * std::abs(sum / count) + 1e-12L * size);
            }
        }
    }
}

TEST(Average, EndsWithAnErrorBeyondTheLimitAndWhenStopped) {
    const std::vector<std::uint32_t> words{0, 1};
    const std::vector<float> vectors{1, 2, 3, 4};
    std::vector<float> means;
    Execution execution(2);
    EXPECT_EQ(average_rows({2, 2, words, {}}, vectors, 15, execution, means).code(),
              ErrorCode::memory_limit);
    execution.request_stop();
    EXPECT_EQ(average_rows({2, 2, words, {}}, vectors, 16, execution, means).code(),
              ErrorCode::cancelled);
}

}  // namespace
}  // namespace gputext
