// bench/grouped_rows.hpp - rows in groups, for the benchmarks of clusters by distance

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "cpp/base/execution.hpp"

namespace gputext::bench {

/// Rows around centers of a normal distribution, about `per_group` around each, `spread` times as far
/// from one another as centers are. The rows of a group are far apart in their order, and one row of
/// ten is by itself.
inline std::vector<float> grouped_rows(std::size_t rows, std::size_t dimensions,
                                       std::size_t per_group, float spread, unsigned threads) {
    constexpr std::size_t kStep = 256, kAlone = 10;
    std::vector<float> elements(rows * dimensions);
    const std::size_t groups = std::max<std::size_t>(1, rows / per_group);
    Execution execution(threads);
    const auto fill = [&](std::size_t task, unsigned) {
        for (std::size_t row = task * kStep; row < std::min(rows, (task + 1) * kStep); ++row) {
            std::mt19937_64 own(row), shared(rows + row % groups);
            std::normal_distribution<float> noise(0, row % kAlone == 0 ? 1 : spread), center;
            for (std::size_t i = 0; i < dimensions; ++i)
                elements[row * dimensions + i] =
                    noise(own) + (row % kAlone == 0 ? 0 : center(shared));
        }
        return Status();
    };
    static_cast<void>(execution.parallel_for((rows + kStep - 1) / kStep, fill));
    return elements;
}

}  // namespace gputext::bench
