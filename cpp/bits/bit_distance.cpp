#include "cpp/bits/bit_distance.hpp"

#include <bit>
#include <cstring>

#include "cpp/base/simd.hpp"

namespace gputext {
namespace {

/// Ones that two rows of so many bytes have in common.
[[gnu::always_inline]] inline std::size_t count_here(const std::byte* a, const std::byte* b,
                                                     std::size_t bytes) {
    std::size_t ones = 0;
    std::size_t at = 0;
    for (; at + sizeof(std::uint64_t) <= bytes; at += sizeof(std::uint64_t)) {
        std::uint64_t of_a, of_b;
        std::memcpy(&of_a, a + at, sizeof of_a);
        std::memcpy(&of_b, b + at, sizeof of_b);
        ones += static_cast<std::size_t>(std::popcount(of_a & of_b));
    }
    if (at == bytes) return ones;
    std::uint32_t of_a, of_b;
    std::memcpy(&of_a, a + at, sizeof of_a);
    std::memcpy(&of_b, b + at, sizeof of_b);
    return ones + static_cast<std::size_t>(std::popcount(of_a & of_b));
}

#ifdef GPUTEXT_X86
GPUTEXT_TARGET_AVX2 std::size_t count_avx2(const std::byte* a, const std::byte* b,
                                           std::size_t bytes) {
    return count_here(a, b, bytes);
}
#endif

}  // namespace

std::size_t common_ones(const Vectors& a, std::size_t row, const Vectors& b,
                        std::size_t other_row) {
    const std::size_t bytes = row_size(ElementType::bit, a.dimensions);
#ifdef GPUTEXT_X86
    if (best_simd() != Simd::portable)
        return count_avx2(a.row_bytes(row), b.row_bytes(other_row), bytes);
#endif
    return count_here(a.row_bytes(row), b.row_bytes(other_row), bytes);
}

double row_distance(BitMetric metric, const Vectors& a, std::size_t row, const Vectors& b,
                    std::size_t other_row) {
    return bit_distance(metric, count_ones(a, row), count_ones(b, other_row),
                        common_ones(a, row, b, other_row));
}

}  // namespace gputext
