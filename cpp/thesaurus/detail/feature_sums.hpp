// cpp/thesaurus/detail/feature_sums.hpp - inner loops of cpp/thesaurus/word_similarity.cpp, for
// each instruction set
//
// Sums over shared features, of one word with many: either of pairs a + b, in 32 bits, or of
// products a * b, in doubles that are whole numbers below 2^53. Both are exact, so that the order
// and the instructions make no difference.
//
// Features that many words of a tile have are dense: a cell for every word, of kBlockWords words
// one behind the other. A word's sums with a block are kept in registers while its dense features
// go by.
//
//     pairs     a cell is the weight (low half) and whether there is one, 1 or 0 (high half), both
//               of 16 bits and signed; a term's factor is 1 or 0, and the word's weight. Their
//               scalar product, one instruction, is a + b for words with the feature, else 0.
//     products  a cell is the weight or 0, the factor the word's weight.

#pragma once

#include <cstddef>
#include <cstdint>

#include "cpp/base/simd.hpp"

namespace gputext {

inline constexpr std::size_t kBlockWords = 128;

/// A dense feature of a word.
struct DenseTerm {
    std::uint32_t column;  // of the block
    std::uint32_t factor;
};

/// A cell or factor for pairs; of weights up to kMostPairWeight.
inline constexpr std::uint32_t kMostPairWeight = 32767;
inline std::uint32_t pair_cell(std::uint32_t weight, bool has) {
    return weight | std::uint32_t{has} << 16;
}
inline std::uint32_t pair_factor(bool has, std::uint32_t weight) {
    return std::uint32_t{has} | weight << 16;
}

template <class Sum>
struct SumKernels {
    /// Sets kBlockWords sums to those over the terms.
    void (*add_dense)(const std::uint32_t* cells, const DenseTerm* terms, std::size_t count,
                      Sum* sums);

    /// Bit mask of the words among 64 whose sum is at least the lesser of `gate` and their own
    /// gate, times the sum of both sizes or, for `passing_product`, their product. In float.
    using Passing = std::uint64_t (*)(const Sum* sums, const float* sizes, const float* gates,
                                      float size, float gate);
    Passing passing_sum, passing_product;

    /// One in so many words of a tile with a feature makes it dense.
    std::size_t dense_part;
};

/// `vnni`: with AVX-512's dot products, if there are any.
SumKernels<std::uint32_t> pair_kernels(Simd simd, bool vnni = true);
SumKernels<double> product_kernels(Simd simd);

}  // namespace gputext
