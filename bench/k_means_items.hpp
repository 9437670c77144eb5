// bench/k_means_items.hpp - items for the benchmarks of k-means

#pragma once

#include <cstddef>
#include <random>
#include <vector>

#include "bench/vector_files.hpp"

namespace gputext::bench {

/// Rows around `clusters` centres, which lie about as far from one another as rows from their
/// centre; of one normal distribution where that is 0.
inline std::vector<float> k_means_items(std::size_t rows, std::size_t dimensions,
                                        std::size_t clusters) {
    std::vector<float> items = floats(rows * dimensions, 1, nullptr);
    if (clusters == 0) return items;
    const std::vector<float> centers = floats(clusters * dimensions, 2, nullptr);
    std::mt19937_64 generator(3);
    for (std::size_t row = 0; row < rows; ++row) {
        const std::size_t cluster = generator() % clusters;
        for (std::size_t i = 0; i < dimensions; ++i)
            items[row * dimensions + i] += centers[cluster * dimensions + i];
    }
    return items;
}

}  // namespace gputext::bench
