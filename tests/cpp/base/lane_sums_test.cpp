#include "cpp/base/lane_sums.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

namespace gputext {
namespace {

/// The header's definition, word by word.
template <class Add>
float by_definition(std::size_t dimensions, Add add) {
    float lanes[32] = {};
    for (std::size_t i = 0; i < dimensions; ++i) lanes[i % 32] = add(i, lanes[i % 32]);
    for (const std::size_t other : {16u, 8u, 4u, 2u, 1u}) {
        float sums[32];
        for (std::size_t l = 0; l < 32; ++l) sums[l] = lanes[l] + lanes[l ^ other];
        std::copy(sums, sums + 32, lanes);
    }
    return lanes[0];
}

void expect_bits(float got, float wanted, const char* what, Simd simd, std::size_t dimensions) {
    EXPECT_EQ(std::bit_cast<std::uint32_t>(got), std::bit_cast<std::uint32_t>(wanted))
        << what << " by " << simd_name(simd) << " of " << dimensions << ": " << got << " and "
        << wanted;
}

TEST(LaneSums, HaveTheSameBitsByEveryInstructionSet) {
    std::mt19937 random(5);
    std::uniform_int_distribution<std::uint32_t> bits;
    for (std::size_t dimensions = 0; dimensions < 200; ++dimensions) {
        // Numbers of all magnitudes, subnormal ones included.
        std::vector<float> a(dimensions), b(dimensions);
        const std::uint32_t exponent = dimensions % 5 == 0 ? 20u : 120u;
        for (auto* row : {&a, &b})
            for (float& x : *row)
                x = std::bit_cast<float>((bits(random) & 0x807fffffu) |
                                         (exponent + bits(random) % 12) << 23);
        const float dot = by_definition(
            dimensions, [&](std::size_t i, float lane) { return std::fma(a[i], b[i], lane); });
        const float square = by_definition(dimensions, [&](std::size_t i, float lane) {
            const float d = a[i] - b[i];
            return std::fma(d, d, lane);
        });
        // At the very end of their memory.
        for (const Simd simd : {Simd::portable, Simd::avx2, Simd::avx512}) {
            if (!simd_available(simd)) continue;
            expect_bits(lane_dot_by(simd)(a.data(), b.data(), dimensions), dot, "product", simd,
                        dimensions);
            expect_bits(lane_squared_distance_by(simd)(a.data(), b.data(), dimensions), square,
                        "distance", simd, dimensions);
        }
        expect_bits(lane_dot_by(best_simd())(b.data(), a.data(), dimensions), dot, "product",
                    best_simd(), dimensions);
        expect_bits(lane_squared_distance_by(best_simd())(b.data(), a.data(), dimensions), square,
                    "distance", best_simd(), dimensions);
    }
}

}  // namespace
}  // namespace gputext
