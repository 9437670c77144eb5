// tests/support/token_sequences.hpp - random sequences of tokens that a model knows

#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "cpp/embeddings/sequence_probability.hpp"
#include "tests/support/text_pairs.hpp"

namespace gputext {

class PackedSequences {
public:
    void append(const std::vector<std::uint32_t>& tokens) {
        tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
        begins_.push_back(tokens_.size());
    }

    TokenSequences view() const { return {begins_, tokens_}; }

private:
    std::vector<std::uint64_t> begins_{0};
    std::vector<std::uint32_t> tokens_;
};

inline PackedSequences random_sequences(std::size_t sequences, std::size_t words,
                                        std::size_t most_tokens, unsigned seed) {
    std::mt19937 random(seed);
    PackedSequences packed;
    for (std::size_t i = 0; i < sequences; ++i)
        packed.append(random_text(random, words, most_tokens));
    return packed;
}

}  // namespace gputext
