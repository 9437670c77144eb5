// tests/support/text_rows.hpp - random texts as sparse vectors, some of them hard to compare

#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "cpp/base/vectors.hpp"
#include "tests/support/plain_terms.hpp"
#include "tests/support/random_strings.hpp"

namespace gputext::testing {

/// Texts in the memory of an operator's input. Elements are rounded to float by whoever made them.
class TextRows {
public:
    TextRows(const PlainTexts& texts, ElementType type, std::size_t terms)
        : texts_(texts), type_(type), terms_(terms), begins_{0} {
        for (const PlainText& text : texts) {
            for (const auto& [term, element] : text) {
                columns_.push_back(term);
                floats_.push_back(static_cast<float>(element));
                ints_.push_back(type == ElementType::int32 ? static_cast<std::int32_t>(element)
                                                           : 0);
            }
            begins_.push_back(columns_.size());
        }
    }

    const PlainTexts& texts() const { return texts_; }
    Vectors vectors() const {
        const void* elements = type_ == ElementType::int32
                                   ? static_cast<const void*>(ints_.data())
                                   : static_cast<const void*>(floats_.data());
        return {type_, texts_.size(), terms_, elements, begins_, columns_};
    }

private:
    PlainTexts texts_;
    ElementType type_;
    std::size_t terms_;
    std::vector<std::uint64_t> begins_;
    std::vector<std::uint32_t> columns_;
    std::vector<float> floats_;
    std::vector<std::int32_t> ints_;
};

enum class TextShape {
    zipf,        // many terms, few of them in most texts
    vocabulary,  // few terms, and one in every text
    copies,      // few different texts
    zeros,       // elements that are stored, and zero
    negative,    // weights of either sign
    cancelling,  // weights whose products cancel out
    scales,      // weights from 1e-30 to 1e30
    near_ties    // texts that differ by less than a float sees
};
inline constexpr TextShape kAllTextShapes[] = {
    TextShape::zipf,     TextShape::vocabulary, TextShape::copies, TextShape::zeros,
    TextShape::negative, TextShape::cancelling, TextShape::scales, TextShape::near_ties};

/// Counts; the other shapes are of weights.
inline bool of_counts(TextShape shape) {
    return shape == TextShape::zipf || shape == TextShape::vocabulary ||
           shape == TextShape::copies || shape == TextShape::zeros;
}

class RandomTexts {
public:
    RandomTexts() : trace_(__FILE__, __LINE__, "GPUTEXT_TEST_SEED=" + std::to_string(seed())) {}

    std::size_t below(std::size_t bound) {
        return std::uniform_int_distribution<std::size_t>(0, bound - 1)(generator_);
    }

    PlainTexts texts(TextShape shape, std::size_t count, std::size_t terms) {
        PlainTexts texts(count);
        for (std::size_t i = 0; i < count; ++i) {
            if (shape == TextShape::copies && i > 2 && below(4) != 0) {
                texts[i] = texts[below(i)];
                continue;
            }
            const std::size_t length = below(16) == 0 ? 0 : 1 + below(below(8) == 0 ? 60 : 12);
            for (std::size_t word = 0; word < length; ++word)
                add(texts[i], shape, term_of(shape, terms));
            if (shape == TextShape::vocabulary) texts[i][0] = 1 + static_cast<double>(below(3));
            if (shape == TextShape::near_ties && !texts[i].empty()) {
                double& element = texts[i].begin()->second;
                element = static_cast<float>(element * (1 + 1e-6 * static_cast<double>(below(8))));
            }
        }
        return texts;
    }

private:
    std::uint32_t term_of(TextShape shape, std::size_t terms) {
        if (shape == TextShape::vocabulary || shape == TextShape::cancelling ||
            shape == TextShape::near_ties)
            terms = std::min<std::size_t>(terms, 6);
        // Ranks whose logarithm is uniform are Zipf's.
        const double at = std::uniform_real_distribution<double>()(generator_);
        const double rank = std::pow(static_cast<double>(terms), at) - 0.999;
        return static_cast<std::uint32_t>(std::min(terms - 1, static_cast<std::size_t>(rank)));
    }

    void add(PlainText& text, TextShape shape, std::uint32_t term) {
        switch (shape) {
            case TextShape::zeros:
                text[term] += static_cast<double>(below(2));
                return;
            case TextShape::negative:
                text[term] = std::normal_distribution<float>()(generator_);
                return;
            case TextShape::cancelling:
                text[term] = static_cast<double>(below(3)) - 1;
                return;
            case TextShape::scales:
                text[term] = static_cast<float>(
                    std::pow(10.0, std::uniform_real_distribution<double>(-30, 30)(generator_)));
                return;
            case TextShape::near_ties:
                text[term] = 1;
                return;
            default:
                text[term] += 1;
        }
    }

    std::mt19937_64 generator_{seed()};
    ::testing::ScopedTrace trace_;
};

}  // namespace gputext::testing
