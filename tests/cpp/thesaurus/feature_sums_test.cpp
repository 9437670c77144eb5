#include "cpp/thesaurus/detail/feature_sums.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tests/support/random_strings.hpp"

namespace gputext {
namespace {

using testing::RandomStrings;

struct Form {
    Simd simd;
    bool vnni;
};
constexpr Form kForms[] = {
    {Simd::portable, false}, {Simd::avx2, false}, {Simd::avx512, false}, {Simd::avx512, true}};

/// Weights of a block's words and features, 0 for none; and of one word with some of them.
struct Block {
    explicit Block(RandomStrings& random)
        : columns(random.below(50)), weights(columns * kBlockWords), word(columns) {
        for (auto* all : {&weights, &word})
            for (auto& weight : *all)
                weight = random.below(2) == 0   ? 0
                         : random.below(4) == 0 ? kMostPairWeight
                                                : static_cast<std::uint32_t>(random.below(32768));
    }
    std::size_t columns;
    std::vector<std::uint32_t> weights, word;
};

TEST(WordSums, AreSumsOverSharedFeatures) {
    RandomStrings random;
    for (int round = 0; round < 300; ++round) {
        const Block block(random);
        std::vector<std::uint32_t> cells;
        std::vector<DenseTerm> pair_terms, product_terms;
        for (const std::uint32_t weight : block.weights)
            cells.push_back(pair_cell(weight, weight != 0));
        for (std::uint32_t c = 0; c < block.columns; ++c)
            if (const std::uint32_t weight = block.word[c]; weight != 0) {
                // In one term, or the two of a weight that is too large for one.
                if (round % 2 == 0) {
                    pair_terms.push_back({c, pair_factor(true, weight)});
                } else {
                    pair_terms.push_back({c, pair_factor(true, weight / 2)});
                    pair_terms.push_back({c, pair_factor(false, weight - weight / 2)});
                }
                product_terms.push_back({c, weight});
            }
        std::vector<std::uint32_t> pairs(kBlockWords);
        std::vector<double> products(kBlockWords);
        for (std::size_t c = 0; c < block.columns; ++c)
            for (std::size_t i = 0; i < kBlockWords; ++i) {
                const std::uint32_t its = block.weights[c * kBlockWords + i];
                if (its == 0 || block.word[c] == 0) continue;
                pairs[i] += its + block.word[c];
                products[i] += static_cast<double>(std::uint64_t{its} * block.word[c]);
            }
        for (const auto& [simd, vnni] : kForms) {
            if (!simd_available(simd)) continue;
            std::vector<std::uint32_t> found(kBlockWords, 7);
            pair_kernels(simd, vnni)
                .add_dense(cells.data(), pair_terms.data(), pair_terms.size(), found.data());
            ASSERT_EQ(found, pairs) << simd_name(simd) << vnni;
            std::vector<double> found_products(kBlockWords, 7);
            product_kernels(simd).add_dense(block.weights.data(), product_terms.data(),
                                            product_terms.size(), found_products.data());
            ASSERT_EQ(found_products, products) << simd_name(simd);
        }
    }
}

template <class Sum>
void expect_passing(RandomStrings& random, const SumKernels<Sum>& kernels) {
    std::vector<Sum> sums(64);
    std::vector<float> sizes(64), gates(64);
    for (std::size_t i = 0; i < 64; ++i) {
        sums[i] = static_cast<Sum>(random.below(3) == 0 ? random.below(std::size_t{1} << 32)
                                                        : random.below(20));
        sizes[i] = static_cast<float>(random.below(3) == 0 ? random.below(std::size_t{1} << 32)
                                                           : random.below(20));
        gates[i] = random.below(4) == 0 ? std::numeric_limits<float>::infinity()
                                        : static_cast<float>(random.below(1000)) / 1000;
    }
    const float size = sizes[random.below(64)];
    const float gate = static_cast<float>(random.below(1000)) / 1000;
    const std::uint64_t of_sum = kernels.passing_sum(sums.data(), sizes.data(), gates.data(), size,
                                                     gate),
                        of_product = kernels.passing_product(sums.data(), sizes.data(),
                                                             gates.data(), size, gate);
    for (std::size_t i = 0; i < 64; ++i) {
        const double least = std::min(gate, gates[i]), sum = static_cast<double>(sums[i]);
        const double sum_bound = least * (static_cast<double>(sizes[i]) + size);
        const double product_bound = least * static_cast<double>(sizes[i]) * size;
        if (std::abs(sum - sum_bound) > 1e-6 * sum) {
            ASSERT_EQ(of_sum >> i & 1, sum >= sum_bound) << sum << " " << sum_bound;
        }
        if (std::abs(sum - product_bound) > 1e-6 * sum) {
            ASSERT_EQ(of_product >> i & 1, sum >= product_bound);
        }
    }
}

TEST(WordSums, PassAtTheLowerGate) {
    RandomStrings random;
    for (int round = 0; round < 300; ++round)
        for (const auto& [simd, vnni] : kForms) {
            if (!simd_available(simd)) continue;
            ASSERT_NO_FATAL_FAILURE(expect_passing(random, pair_kernels(simd, vnni)));
            ASSERT_NO_FATAL_FAILURE(expect_passing(random, product_kernels(simd)));
        }
}

}  // namespace
}  // namespace gputext
