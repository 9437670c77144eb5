#include "cpp/embeddings/detail/training_rows.hpp"

#include <cmath>

#ifdef __x86_64__
#include <immintrin.h>
#endif

#include "cpp/embeddings/trainer.hpp"

namespace gputext {
namespace {

constexpr float kUnits = 1 << TrainerParameters::kFractionBits;
constexpr float kUnit = 1 / kUnits;
constexpr float kMostStep = TrainerParameters::kMostStep;

// ---- Element by element ----

float weighted_element(const float* const* rows, const float* weights, std::size_t count,
                       std::size_t element) {
    float sum = 0;
    for (std::size_t i = 0; i < count; ++i) sum = std::fma(weights[i], rows[i][element], sum);
    return sum;
}

void weighted_sum_portable(const float* const* rows, const float* weights, std::size_t count,
                           std::size_t size, float* out) {
    for (std::size_t e = 0; e < size; ++e) out[e] = weighted_element(rows, weights, count, e);
}

void add_weighted_portable(const float* const* rows, const float* weights, std::size_t count,
                           std::size_t size, std::int32_t* steps) {
    for (std::size_t e = 0; e < size; ++e) {
        const float units = weighted_element(rows, weights, count, e) * kUnits;
        const float within = std::fmin(std::fmax(units, -kMostStep), kMostStep);
        steps[e] = static_cast<std::int32_t>(static_cast<std::uint32_t>(steps[e]) +
                                             static_cast<std::uint32_t>(std::lrint(within)));
    }
}

void take_steps_portable(const std::int32_t* steps, float quotient, std::size_t size, float* row) {
    for (std::size_t e = 0; e < size; ++e)
        row[e] = std::fma(static_cast<float>(steps[e]) * kUnit, quotient, row[e]);
}

#ifdef GPUTEXT_X86

// ---- By instruction sets ----
//
// Two registers at a time, so that one row's multiply-adds need not wait for the row before.

GPUTEXT_TARGET_AVX2 inline __m256i units_of(__m256 values) {
    const __m256 units = _mm256_mul_ps(values, _mm256_set1_ps(kUnits));
    const __m256 most = _mm256_set1_ps(kMostStep), least = _mm256_set1_ps(-kMostStep);
    return _mm256_cvtps_epi32(_mm256_min_ps(_mm256_max_ps(units, least), most));
}

struct Sums256 {
    __m256 parts[4];
};

GPUTEXT_TARGET_AVX2 inline Sums256 weighted_256(const float* const* rows, const float* weights,
                                                std::size_t count, std::size_t begin) {
    Sums256 sums{
        {_mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps(), _mm256_setzero_ps()}};
    for (std::size_t i = 0; i < count; ++i) {
        const __m256 weight = _mm256_set1_ps(weights[i]);
        const float* const row = rows[i] + begin;
        for (std::size_t v = 0; v < 4; ++v)
            sums.parts[v] = _mm256_fmadd_ps(weight, _mm256_loadu_ps(row + 8 * v), sums.parts[v]);
    }
    return sums;
}

GPUTEXT_TARGET_AVX2 void weighted_sum_avx2(const float* const* rows, const float* weights,
                                           std::size_t count, std::size_t size, float* out) {
    for (std::size_t e = 0; e < size; e += kRowUnit) {
        const Sums256 sums = weighted_256(rows, weights, count, e);
        for (std::size_t v = 0; v < 4; ++v) _mm256_storeu_ps(out + e + 8 * v, sums.parts[v]);
    }
}

GPUTEXT_TARGET_AVX2 void add_weighted_avx2(const float* const* rows, const float* weights,
                                           std::size_t count, std::size_t size,
                                           std::int32_t* steps) {
    for (std::size_t e = 0; e < size; e += kRowUnit) {
        const Sums256 sums = weighted_256(rows, weights, count, e);
        for (std::size_t v = 0; v < 4; ++v) {
            auto* const to = reinterpret_cast<__m256i*>(steps + e + 8 * v);
            _mm256_storeu_si256(to,
                                _mm256_add_epi32(_mm256_loadu_si256(to), units_of(sums.parts[v])));
        }
    }
}

GPUTEXT_TARGET_AVX2 void take_steps_avx2(const std::int32_t* steps, float quotient,
                                         std::size_t size, float* row) {
    const __m256 factor = _mm256_set1_ps(quotient), unit = _mm256_set1_ps(kUnit);
    for (std::size_t e = 0; e < size; e += 8) {
        const auto* const from = reinterpret_cast<const __m256i*>(steps + e);
        const __m256 step = _mm256_mul_ps(_mm256_cvtepi32_ps(_mm256_loadu_si256(from)), unit);
        _mm256_storeu_ps(row + e, _mm256_fmadd_ps(step, factor, _mm256_loadu_ps(row + e)));
    }
}

// The masked forms: GCC 12 warns of the others' undefined operand.
constexpr __mmask16 kAll = 0xffff;

GPUTEXT_TARGET_AVX512 inline __m512i units_of(__m512 values) {
    const __m512 units = _mm512_mul_ps(values, _mm512_set1_ps(kUnits));
    const __m512 most = _mm512_set1_ps(kMostStep), least = _mm512_set1_ps(-kMostStep);
    return _mm512_maskz_cvtps_epi32(
        kAll, _mm512_maskz_min_ps(kAll, _mm512_maskz_max_ps(kAll, units, least), most));
}

struct Sums512 {
    __m512 low, high;
};

GPUTEXT_TARGET_AVX512 inline Sums512 weighted_512(const float* const* rows, const float* weights,
                                                  std::size_t count, std::size_t begin) {
    Sums512 sums{_mm512_setzero_ps(), _mm512_setzero_ps()};
    for (std::size_t i = 0; i < count; ++i) {
        const __m512 weight = _mm512_set1_ps(weights[i]);
        const float* const row = rows[i] + begin;
        sums.low = _mm512_fmadd_ps(weight, _mm512_loadu_ps(row), sums.low);
        sums.high = _mm512_fmadd_ps(weight, _mm512_loadu_ps(row + 16), sums.high);
    }
    return sums;
}

GPUTEXT_TARGET_AVX512 void weighted_sum_avx512(const float* const* rows, const float* weights,
                                               std::size_t count, std::size_t size, float* out) {
    for (std::size_t e = 0; e < size; e += kRowUnit) {
        const Sums512 sums = weighted_512(rows, weights, count, e);
        _mm512_storeu_ps(out + e, sums.low);
        _mm512_storeu_ps(out + e + 16, sums.high);
    }
}

GPUTEXT_TARGET_AVX512 inline void add_units(std::int32_t* steps, __m512 values) {
    _mm512_storeu_si512(steps, _mm512_add_epi32(_mm512_loadu_si512(steps), units_of(values)));
}

GPUTEXT_TARGET_AVX512 void add_weighted_avx512(const float* const* rows, const float* weights,
                                               std::size_t count, std::size_t size,
                                               std::int32_t* steps) {
    for (std::size_t e = 0; e < size; e += kRowUnit) {
        const Sums512 sums = weighted_512(rows, weights, count, e);
        add_units(steps + e, sums.low);
        add_units(steps + e + 16, sums.high);
    }
}

GPUTEXT_TARGET_AVX512 void take_steps_avx512(const std::int32_t* steps, float quotient,
                                             std::size_t size, float* row) {
    const __m512 factor = _mm512_set1_ps(quotient), unit = _mm512_set1_ps(kUnit);
    for (std::size_t e = 0; e < size; e += 16) {
        const __m512 step =
            _mm512_mul_ps(_mm512_maskz_cvtepi32_ps(kAll, _mm512_loadu_si512(steps + e)), unit);
        _mm512_storeu_ps(row + e, _mm512_fmadd_ps(step, factor, _mm512_loadu_ps(row + e)));
    }
}

#endif

}  // namespace

RowFunctions row_functions(Simd simd) {
#ifdef GPUTEXT_X86
    if (simd == Simd::avx512) return {weighted_sum_avx512, add_weighted_avx512, take_steps_avx512};
    if (simd == Simd::avx2) return {weighted_sum_avx2, add_weighted_avx2, take_steps_avx2};
#endif
    (void)simd;
    return {weighted_sum_portable, add_weighted_portable, take_steps_portable};
}

}  // namespace gputext
