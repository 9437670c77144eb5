// tests/support/random_keys.hpp - random keys of queries and items, uniform and skewed

#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "cpp/knn/key_groups.hpp"
#include "tests/support/random_strings.hpp"

namespace gputext::testing {

enum class KeyShape {
    uniform,    // about eight rows a key
    zipf,       // few keys have most rows
    one,        // all rows have one key
    different,  // each row has its own, which one of the other side may have, too
    large,      // any number, and some rows without a key
    none        // no row has a key
};
inline constexpr KeyShape kAllKeyShapes[] = {KeyShape::uniform,   KeyShape::zipf,  KeyShape::one,
                                             KeyShape::different, KeyShape::large, KeyShape::none};

class RandomKeys {
public:
    RandomKeys() : trace_(__FILE__, __LINE__, "GPUTEXT_TEST_SEED=" + std::to_string(seed())) {}

    std::vector<std::uint32_t> keys(KeyShape shape, std::size_t rows) {
        std::vector<std::uint32_t> keys(rows);
        const auto below = [this](std::size_t bound) {
            return static_cast<std::uint32_t>(
                std::uniform_int_distribution<std::size_t>(0, bound - 1)(generator_));
        };
        for (std::size_t row = 0; row < rows; ++row) switch (shape) {
                case KeyShape::uniform:
                    keys[row] = below(rows / 8 + 1);
                    break;
                case KeyShape::zipf:
                    // Ranks whose logarithm is uniform.
                    keys[row] = static_cast<std::uint32_t>(
                        std::pow(static_cast<double>(rows + 1),
                                 std::uniform_real_distribution<>()(generator_)));
                    break;
                case KeyShape::one:
                    keys[row] = 7;
                    break;
                case KeyShape::different:
                    keys[row] = static_cast<std::uint32_t>(row);
                    break;
                case KeyShape::large:
                    keys[row] = below(5) == 0 ? kNoKey : kNoKey - 1 - below(20) * 100000000;
                    break;
                case KeyShape::none:
                    keys[row] = kNoKey;
            }
        if (shape == KeyShape::different) std::shuffle(keys.begin(), keys.end(), generator_);
        return keys;
    }

private:
    std::mt19937_64 generator_{seed()};
    ::testing::ScopedTrace trace_;
};

}  // namespace gputext::testing
