// tests/support/text_pairs.hpp - random models and pairs of texts over them

#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "cpp/embeddings/word_movers.hpp"

namespace gputext {

/// A model whose vectors are random.
class RandomModel {
public:
    RandomModel(std::size_t words, std::size_t dimensions, unsigned seed, float spread = 1)
        : elements_(words * dimensions), words_(words), dimensions_(dimensions) {
        std::mt19937 random(seed);
        std::normal_distribution<float> element(0, spread);
        for (float& x : elements_) x = element(random);
    }

    WordVectors view() const { return {elements_.data(), words_, dimensions_}; }
    std::vector<float>& elements() { return elements_; }

private:
    std::vector<float> elements_;
    std::size_t words_, dimensions_;
};

/// Pairs that keep their tokens, too.
class PackedPairs {
public:
    void append(std::vector<std::uint32_t> first, std::vector<std::uint32_t> second) {
        std::vector<WordMass> left, right;
        totals_.push_back(append_masses(first, second, left, right));
        masses_.insert(masses_.end(), left.begin(), left.end());
        begins_.push_back(masses_.size());
        masses_.insert(masses_.end(), right.begin(), right.end());
        begins_.push_back(masses_.size());
        firsts.push_back(first);
        seconds.push_back(second);
    }

    TextPairs view() const { return {begins_, masses_, totals_}; }

    std::vector<std::vector<std::uint32_t>> firsts, seconds;  // sorted

private:
    std::vector<std::uint64_t> begins_{0};
    std::vector<WordMass> masses_;
    std::vector<std::uint32_t> totals_;
};

inline std::vector<std::uint32_t> random_text(std::mt19937& random, std::size_t words,
                                              std::size_t most_tokens) {
    std::uniform_int_distribution<std::size_t> length(0, most_tokens);
    // Some words are frequent.
    std::uniform_real_distribution<double> word(0, 1);
    std::vector<std::uint32_t> text(length(random));
    for (std::uint32_t& token : text) {
        const double x = word(random);
        token = static_cast<std::uint32_t>(x * x * static_cast<double>(words));
    }
    return text;
}

inline PackedPairs random_pairs(std::size_t pairs, std::size_t words, std::size_t most_tokens,
                                unsigned seed) {
    std::mt19937 random(seed);
    PackedPairs packed;
    for (std::size_t i = 0; i < pairs; ++i) {
        auto first = random_text(random, words, most_tokens);
        packed.append(std::move(first), random_text(random, words, most_tokens));
    }
    return packed;
}

}  // namespace gputext
