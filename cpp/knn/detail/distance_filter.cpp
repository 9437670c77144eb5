#include "cpp/knn/detail/distance_filter.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <type_traits>

#include "cpp/base/lanes.hpp"

#ifdef GPUTEXT_X86
#include <immintrin.h>
#endif

namespace gputext {
namespace {

/// Appends what the mask's bits choose of a vector.
template <class T, std::size_t Width>
[[gnu::always_inline]] inline void append_chosen(unsigned mask, const T (&values)[Width],
                                                 std::uint32_t position, T* scores,
                                                 std::uint32_t* positions) {
    for (; mask != 0; mask &= mask - 1) {
        const auto lane = static_cast<unsigned>(std::countr_zero(mask));
        *scores++ = values[lane];
        *positions++ = position + lane;
    }
}

namespace portable {

#define GPUTEXT_TILE_TARGET
#include "cpp/knn/detail/distance_filter_tile.hpp"

/// Vectors of sixteen bytes.
template <class Element>
struct Set {
    using T = Element;
    static constexpr std::size_t width = 16 / sizeof(T), queries = 4, vectors = 2;
    using V = Vector<T, width>;

    static V load(const T* from) {
        V loaded;
        std::memcpy(&loaded, from, sizeof loaded);
        return loaded;
    }
    static V everywhere(T value) { return V{} + value; }
    static V minus_product(V sum, V a, V b) { return sum - a * b; }
    static V plus_magnitude(V sum, V a, V b) {
        using Bits = Vector<std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>, width>;
        const V difference = a - b;
        Bits bits;
        std::memcpy(&bits, &difference, sizeof bits);
        bits &= std::numeric_limits<std::remove_cvref_t<decltype(bits[0])>>::max();
        V magnitude;
        std::memcpy(&magnitude, &bits, sizeof bits);
        return sum + magnitude;
    }
    static unsigned not_above(V sum, V gate) {
        unsigned mask = 0;
        for (std::size_t lane = 0; lane < width; ++lane)
            mask |= static_cast<unsigned>(sum[lane] <= gate[lane]) << lane;
        return mask;
    }
    static void append(unsigned mask, V sum, std::uint32_t position, T* scores,
                       std::uint32_t* positions) {
        T values[width];
        std::memcpy(values, &sum, sizeof values);
        append_chosen(mask, values, position, scores, positions);
    }
};
#undef GPUTEXT_TILE_TARGET

}  // namespace portable

#ifdef GPUTEXT_X86

namespace avx2 {

#define GPUTEXT_TILE_TARGET GPUTEXT_TARGET_AVX2
#include "cpp/knn/detail/distance_filter_tile.hpp"

struct Floats {
    using T = float;
    using V = __m256;
    static constexpr std::size_t width = 8, queries = 4, vectors = 3;

    GPUTEXT_TARGET_AVX2 static V load(const T* from) { return _mm256_loadu_ps(from); }
    GPUTEXT_TARGET_AVX2 static V everywhere(T value) { return _mm256_set1_ps(value); }
    GPUTEXT_TARGET_AVX2 static V minus_product(V sum, V a, V b) {
        return _mm256_fnmadd_ps(a, b, sum);
    }
    GPUTEXT_TARGET_AVX2 static V plus_magnitude(V sum, V a, V b) {
        return _mm256_add_ps(sum, _mm256_andnot_ps(_mm256_set1_ps(-0.0f), _mm256_sub_ps(a, b)));
    }
    GPUTEXT_TARGET_AVX2 static unsigned not_above(V sum, V gate) {
        return static_cast<unsigned>(_mm256_movemask_ps(_mm256_cmp_ps(sum, gate, _CMP_LE_OQ)));
    }
    GPUTEXT_TARGET_AVX2 static void append(unsigned mask, V sum, std::uint32_t position, T* scores,
                                           std::uint32_t* positions) {
        T values[width];
        _mm256_storeu_ps(values, sum);
        append_chosen(mask, values, position, scores, positions);
    }
};

struct Doubles {
    using T = double;
    using V = __m256d;
    static constexpr std::size_t width = 4, queries = 4, vectors = 3;

    GPUTEXT_TARGET_AVX2 static V load(const T* from) { return _mm256_loadu_pd(from); }
    GPUTEXT_TARGET_AVX2 static V everywhere(T value) { return _mm256_set1_pd(value); }
    GPUTEXT_TARGET_AVX2 static V minus_product(V sum, V a, V b) {
        return _mm256_fnmadd_pd(a, b, sum);
    }
    GPUTEXT_TARGET_AVX2 static V plus_magnitude(V sum, V a, V b) {
        return _mm256_add_pd(sum, _mm256_andnot_pd(_mm256_set1_pd(-0.0), _mm256_sub_pd(a, b)));
    }
    GPUTEXT_TARGET_AVX2 static unsigned not_above(V sum, V gate) {
        return static_cast<unsigned>(_mm256_movemask_pd(_mm256_cmp_pd(sum, gate, _CMP_LE_OQ)));
    }
    GPUTEXT_TARGET_AVX2 static void append(unsigned mask, V sum, std::uint32_t position, T* scores,
                                           std::uint32_t* positions) {
        T values[width];
        _mm256_storeu_pd(values, sum);
        append_chosen(mask, values, position, scores, positions);
    }
};
#undef GPUTEXT_TILE_TARGET

}  // namespace avx2

namespace avx512 {

#define GPUTEXT_TILE_TARGET GPUTEXT_TARGET_AVX512
#include "cpp/knn/detail/distance_filter_tile.hpp"

struct Floats {
    using T = float;
    using V = __m512;
    static constexpr std::size_t width = 16, queries = 8, vectors = 3;

    GPUTEXT_TARGET_AVX512 static V load(const T* from) { return _mm512_loadu_ps(from); }
    GPUTEXT_TARGET_AVX512 static V everywhere(T value) { return _mm512_set1_ps(value); }
    GPUTEXT_TARGET_AVX512 static V minus_product(V sum, V a, V b) {
        return _mm512_fnmadd_ps(a, b, sum);
    }
    GPUTEXT_TARGET_AVX512 static V plus_magnitude(V sum, V a, V b) {
        return _mm512_add_ps(sum, _mm512_abs_ps(_mm512_sub_ps(a, b)));
    }
    GPUTEXT_TARGET_AVX512 static unsigned not_above(V sum, V gate) {
        return _mm512_cmp_ps_mask(sum, gate, _CMP_LE_OQ);
    }
    // Compressed in registers: compressing into memory is slow on some processors. What is written
    // behind the chosen ones is written over or never read; the lists have room for it.
    GPUTEXT_TARGET_AVX512 static void append(unsigned mask, V sum, std::uint32_t position,
                                             T* scores, std::uint32_t* positions) {
        const auto chosen = static_cast<__mmask16>(mask);
        const __m512i lanes =
            _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
        const __m512i numbers =
            _mm512_add_epi32(lanes, _mm512_set1_epi32(static_cast<int>(position)));
        _mm512_storeu_ps(scores, _mm512_maskz_compress_ps(chosen, sum));
        _mm512_storeu_si512(positions, _mm512_maskz_compress_epi32(chosen, numbers));
    }
};

struct Doubles {
    using T = double;
    using V = __m512d;
    static constexpr std::size_t width = 8, queries = 8, vectors = 3;

    GPUTEXT_TARGET_AVX512 static V load(const T* from) { return _mm512_loadu_pd(from); }
    GPUTEXT_TARGET_AVX512 static V everywhere(T value) { return _mm512_set1_pd(value); }
    GPUTEXT_TARGET_AVX512 static V minus_product(V sum, V a, V b) {
        return _mm512_fnmadd_pd(a, b, sum);
    }
    GPUTEXT_TARGET_AVX512 static V plus_magnitude(V sum, V a, V b) {
        return _mm512_add_pd(sum, _mm512_abs_pd(_mm512_sub_pd(a, b)));
    }
    GPUTEXT_TARGET_AVX512 static unsigned not_above(V sum, V gate) {
        return _mm512_cmp_pd_mask(sum, gate, _CMP_LE_OQ);
    }
    GPUTEXT_TARGET_AVX512 static void append(unsigned mask, V sum, std::uint32_t position,
                                             T* scores, std::uint32_t* positions) {
        const auto chosen = static_cast<__mmask8>(mask);
        const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
        const __m256i numbers =
            _mm256_add_epi32(lanes, _mm256_set1_epi32(static_cast<int>(position)));
        _mm512_storeu_pd(scores, _mm512_maskz_compress_pd(chosen, sum));
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(positions),
                            _mm256_maskz_compress_epi32(chosen, numbers));
    }
};
#undef GPUTEXT_TILE_TARGET

}  // namespace avx512

#endif

}  // namespace

template <class T>
DistanceFilter<T> distance_filter(Score score, Simd simd) {
#ifdef GPUTEXT_X86
    constexpr bool floats = std::is_same_v<T, float>;
    using Avx512 = std::conditional_t<floats, avx512::Floats, avx512::Doubles>;
    using Avx2 = std::conditional_t<floats, avx2::Floats, avx2::Doubles>;
    if (simd >= Simd::avx512) return avx512::filter_of<Avx512>(score);
    if (simd == Simd::avx2) return avx2::filter_of<Avx2>(score);
#endif
    (void)simd;
    return portable::filter_of<portable::Set<T>>(score);
}

template <class T>
[[gnu::optimize("O3")]] void fill_panel(const T* from, std::size_t stride, std::size_t count,
                                        std::size_t dimensions, const PanelShape& shape,
                                        PanelNumber<T>* panel) {
    constexpr std::size_t step = 16;  // whose cache lines stay at hand while all rows are copied
    const std::size_t rows = shape.rows;
    for (std::size_t begin = 0; begin < dimensions; begin += step) {
        const std::size_t end = std::min(dimensions, begin + step);
        for (std::size_t row = 0; row < rows; ++row)
            for (std::size_t i = begin; i < end; ++i)
                panel[i * rows + row] = row < count ? from[row * stride + i] : T{0};
    }
}

template DistanceFilter<float> distance_filter(Score, Simd);
template DistanceFilter<double> distance_filter(Score, Simd);
template void fill_panel(const float*, std::size_t, std::size_t, std::size_t, const PanelShape&,
                         float*);
template void fill_panel(const double*, std::size_t, std::size_t, std::size_t, const PanelShape&,
                         double*);

}  // namespace gputext
