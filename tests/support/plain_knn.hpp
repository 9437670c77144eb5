// tests/support/plain_knn.hpp - reference implementation of distances and neighbors

#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "cpp/knn/distance.hpp"
#include "cpp/knn/knn.hpp"

namespace gputext::testing {

using DoubleRow = std::vector<double>;
using DoubleRows = std::vector<DoubleRow>;

/// cpp/knn/distance.hpp's sum.
template <class Term>
double plain_sum(std::size_t d, Term term) {
    std::array<double, 16> s{};
    for (std::size_t i = 0; i < d; ++i) s[i % 16] += term(i);
    for (int j = 0; j < 8; ++j) s[j] += s[j + 8];
    for (int j = 0; j < 4; ++j) s[j] += s[j + 4];
    return (s[0] + s[2]) + (s[1] + s[3]);
}

inline double plain_euclidean(const DoubleRow& a, const DoubleRow& b) {
    const std::size_t d = a.size();
    const double sum = plain_sum(d, [&](auto i) { return (a[i] - b[i]) * (a[i] - b[i]); });
    if (sum > std::ldexp(1.0, 1000))
        return std::ldexp(std::sqrt(plain_sum(d,
                                              [&](auto i) {
                                                  const double x = std::ldexp(a[i], -600);
                                                  const double y = std::ldexp(b[i], -600);
                                                  return (x - y) * (x - y);
                                              })),
                          600);
    if (sum < std::ldexp(1.0, -900))
        return std::ldexp(std::sqrt(plain_sum(d,
                                              [&](auto i) {
                                                  const double x = std::ldexp(a[i] - b[i], 600);
                                                  return x * x;
                                              })),
                          -600);
    return std::sqrt(sum);
}

inline double plain_inner_product(const DoubleRow& a, const DoubleRow& b) {
    const double sum = plain_sum(a.size(), [&](auto i) { return a[i] * b[i]; });
    if (std::isfinite(sum)) return 0 - sum;
    const double scaled = plain_sum(
        a.size(), [&](auto i) { return std::ldexp(a[i], -600) * std::ldexp(b[i], -600); });
    return 0 - std::ldexp(std::ldexp(scaled, 600), 600);
}

inline std::optional<double> plain_similarity(DoubleRow a, DoubleRow b) {
    const auto square_of = [](DoubleRow& row) {
        const auto square = [&] {
            return plain_sum(row.size(), [&](auto i) { return row[i] * row[i]; });
        };
        const double first = square();
        if (first >= std::ldexp(1.0, -300) && first <= std::ldexp(1.0, 300)) return first;
        double largest = 0;
        for (const double x : row) largest = std::max(largest, std::fabs(x));
        if (largest == 0) return 0.0;
        int exponent;
        std::frexp(largest, &exponent);  // largest in [2^(exponent - 1), 2^exponent)
        for (double& x : row) x = std::ldexp(x, 1 - exponent);
        return square();
    };
    const double square_a = square_of(a), square_b = square_of(b);
    if (square_a == 0 || square_b == 0) return std::nullopt;
    const double products = plain_sum(a.size(), [&](auto i) { return a[i] * b[i]; });
    return std::clamp(products / std::sqrt(square_a * square_b), -1.0, 1.0);
}

inline std::optional<double> plain_distance(Metric metric, const DoubleRow& a, const DoubleRow& b) {
    switch (metric) {
        case Metric::euclidean:
            return plain_euclidean(a, b);
        case Metric::inner_product:
            return plain_inner_product(a, b);
        case Metric::manhattan:
            return plain_sum(a.size(), [&](auto i) { return std::fabs(a[i] - b[i]); });
        default: {
            const auto similarity = plain_similarity(a, b);
            if (!similarity) return std::nullopt;
            return 1 - *similarity;
        }
    }
}

/// (item, distance) by (distance, item).
using PlainNeighbors = std::vector<std::pair<std::uint32_t, double>>;

inline PlainNeighbors plain_neighbors(const KnnParameters& parameters, const DoubleRow& query,
                                        const DoubleRows& items,
                                        const std::vector<bool>& excluded = {}) {
    PlainNeighbors all;
    for (std::uint32_t i = 0; i < items.size(); ++i) {
        if (!excluded.empty() && excluded[i]) continue;
        const auto distance = plain_distance(parameters.metric, query, items[i]);
        if (distance && *distance <= parameters.radius) all.emplace_back(i, *distance);
    }
    std::stable_sort(all.begin(), all.end(),
                     [](const auto& a, const auto& b) { return a.second < b.second; });
    std::size_t size = std::min(parameters.k, all.size());
    while (parameters.include_ties && size > 0 && size < all.size() &&
           all[size].second == all[size - 1].second)
        ++size;
    all.resize(size);
    return all;
}

}  // namespace gputext::testing
