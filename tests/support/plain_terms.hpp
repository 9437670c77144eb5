// tests/support/plain_terms.hpp - the nearest texts as cpp/terms/tfidf.hpp and cpp/terms/knn.hpp
// define them, word by word

#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "cpp/terms/knn.hpp"
#include "cpp/terms/tfidf.hpp"
#include "tests/support/plain_knn.hpp"

namespace gputext::testing {

/// A text: how often it has a term, or what it weighs there.
using PlainText = std::map<std::uint32_t, double>;
using PlainTexts = std::vector<PlainText>;

inline std::vector<double> plain_factors(const TermParameters& parameters, const PlainTexts& items,
                                         std::size_t terms) {
    std::vector<double> factors(terms);
    for (std::uint32_t term = 0; term < terms; ++term) {
        std::size_t frequency = 0;
        for (const PlainText& item : items) {
            const auto found = item.find(term);
            if (found != item.end() && found->second != 0) ++frequency;
        }
        if (frequency == 0 || frequency < parameters.min_document_frequency)
            factors[term] = 0;
        else if (parameters.weighting == TermWeighting::given)
            factors[term] = 1;
        else if (parameters.weighting == TermWeighting::tf_idf)
            factors[term] =
                std::log(static_cast<double>(items.size()) / static_cast<double>(frequency));
        else
            factors[term] = std::log(1 + (static_cast<double>(items.size() - frequency) + 0.5) /
                                             (static_cast<double>(frequency) + 0.5));
    }
    return factors;
}

/// The items' weights by cpp/terms/bm25.hpp.
inline PlainTexts plain_bm25(const TermParameters& parameters, PlainTexts items,
                             const std::vector<double>& factors) {
    double average = parameters.average_length;
    std::vector<double> lengths;
    for (const PlainText& item : items) {
        lengths.push_back(0);
        for (const auto& [term, count] : item) lengths.back() += count;
    }
    if (average == 0)
        average = std::accumulate(lengths.begin(), lengths.end(), 0.0) /
                  static_cast<double>(items.size());
    const double k1 = parameters.k1, b = parameters.b;
    for (std::size_t i = 0; i < items.size(); ++i)
        for (auto& [term, element] : items[i])
            if (const double count = element; count > 0)
                element = static_cast<float>(
                    factors[term] * (count / (count + k1 * (1 - b + b * lengths[i] / average))));
    return items;
}

/// Terms of weight 0 count as none.
inline PlainText plain_weights(const PlainText& text, const std::vector<double>& factors) {
    PlainText weights;
    for (const auto& [term, element] : text)
        if (element * factors[term] != 0) weights[term] = element * factors[term];
    return weights;
}

/// The sum of the terms at their columns, in sixteen partial sums.
inline double plain_column_sum(const PlainText& terms) {
    double partial[16] = {};
    for (const auto& [column, term] : terms) partial[column % 16] += term;
    for (const int width : {8, 4, 2, 1})
        for (int j = 0; j < width; ++j) partial[j] = partial[j] + partial[j + width];
    return partial[0];
}

inline PlainText plain_products(const PlainText& a, const PlainText& b) {
    PlainText products;
    for (const auto& [term, weight] : a)
        if (const auto found = b.find(term); found != b.end())
            products[term] = weight * found->second;
    return products;
}

/// None for rows of weights that share no term.
inline std::optional<double> plain_term_distance(Metric metric, const PlainText& a,
                                                 const PlainText& b, double square_a,
                                                 double square_b) {
    const PlainText products = plain_products(a, b);
    if (products.empty()) return std::nullopt;
    if (metric == Metric::inner_product) return 0 - plain_column_sum(products);
    const double similarity = plain_column_sum(products) / std::sqrt(square_a * square_b);
    return 1 - std::clamp(similarity, -1.0, 1.0);
}

/// Rows of weights and their squares.
struct PlainWeights {
    PlainWeights(const PlainTexts& texts, const std::vector<double>& factors) {
        for (const PlainText& text : texts) {
            rows.push_back(plain_weights(text, factors));
            squares.push_back(plain_column_sum(plain_products(rows.back(), rows.back())));
        }
    }
    PlainTexts rows;
    std::vector<double> squares;
};

inline PlainNeighbors plain_term_neighbors(const TermKnnParameters& parameters,
                                           const PlainWeights& queries, std::size_t query,
                                           const PlainWeights& items, const RowKeys& keys) {
    PlainNeighbors all;
    for (std::uint32_t item = 0; item < items.rows.size(); ++item) {
        if (!keys.differ(query, item)) continue;
        const auto distance =
            plain_term_distance(parameters.metric, queries.rows[query], items.rows[item],
                                queries.squares[query], items.squares[item]);
        if (distance && *distance <= parameters.radius) all.emplace_back(item, *distance);
    }
    std::stable_sort(all.begin(), all.end(),
                     [](const auto& a, const auto& b) { return a.second < b.second; });
    all.resize(std::min(parameters.k, all.size()));
    return all;
}

}  // namespace gputext::testing
