#include "cpp/hnsw/detail/chosen_rows.hpp"

#include <algorithm>

#ifdef GPUTEXT_X86
#include <immintrin.h>
#endif

namespace gputext {
namespace {

/// Numbers of a vector of bfloat16.
constexpr std::size_t kTogether = 32;
/// Of fewer dimensions floats are as fast.
constexpr std::size_t kFewest = 64;
/// With room for what is rounded in floats and doubles, and what underflows.
constexpr double kRounding = 0x1p-9 * (1 + 0x1p-7);
/// Of smaller distances, what underflows counts.
constexpr double kLeastDistance = 0x1p-40;

#ifdef GPUTEXT_X86

[[gnu::always_inline]] inline GPUTEXT_TARGET_BFLOAT16 __m512 difference(const float* a,
                                                                        const float* b,
                                                                        __mmask16 lanes) {
    return _mm512_sub_ps(_mm512_maskz_loadu_ps(lanes, a), _mm512_maskz_loadu_ps(lanes, b));
}

[[gnu::always_inline]] inline GPUTEXT_TARGET_BFLOAT16 void add_products(const std::uint16_t* a,
                                                                        const std::uint16_t* b,
                                                                        __m512& sum) {
    sum = _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(_mm512_loadu_si512(a)),
                           reinterpret_cast<__m512bh>(_mm512_loadu_si512(b)));
}

[[gnu::always_inline]] inline GPUTEXT_TARGET_BFLOAT16 float sum_of_lanes(__m512 vector) {
    float lanes[kTogether / 2];
    _mm512_storeu_ps(lanes, vector);
    for (std::size_t step = kTogether / 4; step > 0; step /= 2)
        for (std::size_t lane = 0; lane < step; ++lane) lanes[lane] += lanes[lane + step];
    return lanes[0];
}

/// Writes a - b as bfloat16, with zeros up to a multiple of kTogether, and returns their square.
[[gnu::optimize("O3")]] GPUTEXT_TARGET_BFLOAT16 float round_differences(const float* a,
                                                                        const float* b,
                                                                        std::size_t dimensions,
                                                                        std::uint16_t* out) {
    constexpr std::size_t half = kTogether / 2;
    __m512 sum = _mm512_setzero_ps();
    for (std::size_t i = 0; i < dimensions; i += kTogether) {
        const std::size_t left = std::min(kTogether, dimensions - i);
        const std::uint32_t lanes = static_cast<std::uint32_t>((std::uint64_t{1} << left) - 1);
        const __m512 low = difference(a + i, b + i, static_cast<__mmask16>(lanes));
        const __m512 high =
            difference(a + i + half, b + i + half, static_cast<__mmask16>(lanes >> half));
        const __m512bh rounded = _mm512_cvtne2ps_pbh(high, low);
        _mm512_storeu_si512(out + i, reinterpret_cast<__m512i>(rounded));
        sum = _mm512_dpbf16_ps(sum, rounded, rounded);
    }
    return sum_of_lanes(sum);
}

[[gnu::optimize("O3")]] GPUTEXT_TARGET_BFLOAT16 float product_of(const std::uint16_t* a,
                                                                 const std::uint16_t* b,
                                                                 std::size_t padded) {
    constexpr std::size_t chains = 4;  // each addition waits for the one before
    __m512 sums[chains] = {};
    std::size_t i = 0;
    for (; i + chains * kTogether <= padded; i += chains * kTogether)
        for (std::size_t c = 0; c < chains; ++c)
            add_products(a + i + c * kTogether, b + i + c * kTogether, sums[c]);
    for (; i < padded; i += kTogether) add_products(a + i, b + i, sums[0]);
    return sum_of_lanes(
        _mm512_add_ps(_mm512_add_ps(sums[0], sums[1]), _mm512_add_ps(sums[2], sums[3])));
}

#else

float round_differences(const float*, const float*, std::size_t, std::uint16_t*) {
    return 0;
}
float product_of(const std::uint16_t*, const std::uint16_t*, std::size_t) {
    return 0;
}

#endif

}  // namespace

ChosenRows::ChosenRows(Metric metric, const Vectors& rows, Simd simd)
    : nearness_(metric, rows, simd),
      rounds_(metric == Metric::euclidean && nearness_.has_floats() && rows.dimensions >= kFewest &&
              simd >= Simd::bfloat16 && simd_available(Simd::bfloat16)),
      dimensions_(rows.dimensions),
      padded_((rows.dimensions + kTogether - 1) / kTogether * kTogether) {
    // Sums in floats, in any order (cpp/knn/detail/filter_space.hpp)
    const double roundings = static_cast<double>(dimensions_ + 8) * 0x1p-24;
    bound_ = {kRounding, 0, roundings / (1 - roundings)};
}

void ChosenRows::begin(std::uint32_t row) {
    chosen_.clear();
    if (!rounds_) return;
    nearness_.set(row);
    from_.assign(nearness_.floats(), nearness_.floats() + dimensions_);
}

SideOfLimit ChosenRows::side_of(double limit, const Row& chosen) const {
    if (!rounds_ || limit < kLeastDistance) return SideOfLimit::unknown;
    const auto* const at = differences_.data();
    const double square =
        last_.square + chosen.square -
        2 * static_cast<double>(product_of(at + last_.place, at + chosen.place, padded_));
    return bound_.side_of(limit, last_.distance + chosen.distance, square);
}

bool ChosenRows::has_nearer(std::uint32_t row, double distance, double limit) {
    nearness_.set(row);
    last_ = {row, distance, 0, chosen_.size() * padded_};
    if (rounds_) {
        differences_.resize(std::max(differences_.size(), last_.place + padded_));
        last_.square = static_cast<double>(round_differences(
            nearness_.floats(), from_.data(), dimensions_, differences_.data() + last_.place));
    }
    const auto nearer = std::find_if(chosen_.begin(), chosen_.end(), [&](const Row& chosen) {
        const SideOfLimit side = side_of(limit, chosen);
        return side == SideOfLimit::unknown ? nearness_.at_most(limit, chosen.row)
                                            : side == SideOfLimit::below;
    });
    if (nearer == chosen_.end()) return false;
    std::rotate(chosen_.begin(), nearer, nearer + 1);
    return true;
}

void ChosenRows::choose() {
    chosen_.push_back(last_);
}

}  // namespace gputext
