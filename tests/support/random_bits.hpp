// tests/support/random_bits.hpp - rows of bits for tests, and their plain nearest ones

#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "cpp/base/vectors.hpp"
#include "cpp/bits/nearest_bits.hpp"
#include "tests/support/plain_knn.hpp"
#include "tests/support/random_strings.hpp"

namespace gputext::testing {

inline constexpr BitMetric kAllBitMetrics[] = {BitMetric::hamming, BitMetric::jaccard};

using BitRow = std::vector<bool>;

/// Rows as a matrix.
class BitRows {
public:
    explicit BitRows(const std::vector<BitRow>& rows, std::size_t bits = 0)
        : rows_(rows.size()), bits_(rows.empty() ? bits : rows[0].size()) {
        const std::size_t words = (bits_ + 31) / 32;
        words_.resize(rows.size() * words);
        for (std::size_t row = 0; row < rows.size(); ++row)
            for (std::size_t bit = 0; bit < bits_; ++bit)
                if (rows[row][bit]) words_[row * words + bit / 32] |= 1u << bit % 32;
    }
    Vectors view() const { return {ElementType::bit, rows_, bits_, words_.data(), {}, {}}; }

private:
    std::size_t rows_, bits_;
    std::vector<std::uint32_t> words_;
};

class RandomBits {
public:
    RandomBits() : trace_(__FILE__, __LINE__, "GPUTEXT_TEST_SEED=" + std::to_string(seed())) {}

    std::size_t below(std::size_t bound) {
        return std::uniform_int_distribution<std::size_t>(0, bound - 1)(generator_);
    }
    /// Some of them anew, with many, few or no ones, and others with a few bits changed.
    std::vector<BitRow> rows(std::size_t count, std::size_t bits) {
        std::vector<BitRow> rows;
        for (std::size_t row = 0; row < count; ++row) {
            if (row > 0 && below(3) > 0) {
                rows.push_back(rows[below(row)]);
                for (std::size_t changes = below(4); changes > 0; --changes) {
                    const std::size_t bit = below(bits);
                    rows.back()[bit] = !rows.back()[bit];
                }
                continue;
            }
            const std::size_t of_eight = below(4) == 0 ? below(9) : 4;
            BitRow anew(bits);
            for (std::size_t bit = 0; bit < bits; ++bit) anew[bit] = below(8) < of_eight;
            rows.push_back(std::move(anew));
        }
        return rows;
    }

private:
    std::mt19937_64 generator_{seed()};
    ::testing::ScopedTrace trace_;
};

inline double plain_bit_distance(BitMetric metric, const BitRow& a, const BitRow& b) {
    std::size_t both = 0, either = 0;
    for (std::size_t bit = 0; bit < a.size(); ++bit) {
        both += a[bit] && b[bit];
        either += a[bit] || b[bit];
    }
    if (metric == BitMetric::hamming) return static_cast<double>(either - both);
    return both == 0 ? 1.0 : 1 - static_cast<double>(both) / static_cast<double>(either);
}

inline PlainNeighbors plain_nearest(const NearestBitsParameters& parameters, const BitRow& query,
                                    std::size_t number, const std::vector<BitRow>& items,
                                    const MatchKeys& match, const RowKeys& excluded) {
    PlainNeighbors all;
    for (std::uint32_t item = 0; item < items.size(); ++item) {
        if (!match.match(number, item) || !excluded.differ(number, item)) continue;
        const double distance = plain_bit_distance(parameters.metric, query, items[item]);
        if (distance <= parameters.radius) all.emplace_back(item, distance);
    }
    std::stable_sort(all.begin(), all.end(),
                     [](const auto& a, const auto& b) { return a.second < b.second; });
    all.resize(std::min(parameters.k, all.size()));
    return all;
}

}  // namespace gputext::testing
