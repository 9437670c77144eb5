// cpp/embeddings/detail/sampling.hpp - which words a training keeps, and how it draws negatives
//
// Frequent words are left out at random (Mikolov et al. 2013, section 2.3, in the form of
// word2vec): a word whose share of all words is f stays with the probability sqrt(s / f) + s / f.
// Negative samples come from the distribution of the words' counts to the power of 3/4 (section
// 2.2), by Walker's alias method: two numbers of a draw's bits decide.

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cpp/base/counter_random.hpp"

namespace gputext {

/// Integers, so that all devices draw alike.
struct WordSampling {
    /// A word stays when 32 random bits are at most this.
    std::vector<std::uint32_t> keep;
    /// A draw takes one of the places: its own word when 32 further bits are at most `own`, else
    /// `other`.
    std::vector<std::uint32_t> own;
    std::vector<std::uint32_t> other;
};

/// Sampling of words with these counts, at least one above 0. `sample` 0 keeps all. O(words).
WordSampling word_sampling(std::span<const std::uint64_t> counts, double sample);

/// The word that 64 random bits draw.
inline std::uint32_t draw_word(const WordSampling& sampling, std::uint64_t bits) {
    const auto place = random_below(static_cast<std::uint32_t>(bits >> 32),
                                    static_cast<std::uint32_t>(sampling.own.size()));
    return static_cast<std::uint32_t>(bits) <= sampling.own[place] ? place : sampling.other[place];
}

}  // namespace gputext
