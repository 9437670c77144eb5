// kernels/knn/exact_distance.cuh - distances of cpp/knn/distance.hpp by half warps, to the bit
//
// Sixteen lanes take the definition's sixteen partial sums of a pair; adding lanes j and j ^ 8,
// then 4, 2, 1 is its tree. Operations are the intrinsics that round once and are never fused.
// Functions are called by all sixteen lanes of a half warp, which `lanes` names, and give all of
// them the result.

#pragma once

#include <cuda_fp16.h>

#include <cstdint>

#include "cpp/base/vectors.hpp"
#include "cpp/knn/distance.hpp"
#include "kernels/base/warp.cuh"

namespace gputext::gpu {

inline constexpr unsigned kHalfWarp = 16;

/// The half warp of the calling thread.
__device__ inline unsigned half_warp_lanes() {
    return threadIdx.x & 16 ? 0xffff0000u : 0x0000ffffu;
}

__device__ inline double as_double(__half x) {
    return static_cast<double>(__half2float(x));
}
__device__ inline double as_double(float x) {
    return static_cast<double>(x);
}
__device__ inline double as_double(double x) {
    return x;
}
__device__ inline double as_double(std::int32_t x) {
    return static_cast<double>(x);
}

/// Calls `of` with a null pointer to the type's elements, on the host.
template <class Function>
auto with_element_type(ElementType type, Function&& of) {
    switch (type) {
        case ElementType::float16:
            return of(static_cast<const __half*>(nullptr));
        case ElementType::float32:
            return of(static_cast<const float*>(nullptr));
        case ElementType::float64:
            return of(static_cast<const double*>(nullptr));
        default:
            return of(static_cast<const std::int32_t*>(nullptr));
    }
}

__device__ inline double sum_of_half_warp(double sum, unsigned lanes) {
    return warp_sum<kHalfWarp>(sum, lanes);
}

__device__ inline double most_of_half_warp(double value, unsigned lanes) {
    return warp_max<kHalfWarp>(value, lanes);
}

/// The terms of the definition's sums, added to what was summed so far.
struct SquareTerms {
    static constexpr unsigned sums = 1;
    __device__ static void add(double a, double b, double (&to)[1]) {
        const double difference = __dsub_rn(a, b);
        to[0] = __dadd_rn(to[0], __dmul_rn(difference, difference));
    }
};
struct MagnitudeTerms {
    static constexpr unsigned sums = 1;
    __device__ static void add(double a, double b, double (&to)[1]) {
        to[0] = __dadd_rn(to[0], fabs(__dsub_rn(a, b)));
    }
};
struct ProductTerms {
    static constexpr unsigned sums = 1;
    __device__ static void add(double a, double b, double (&to)[1]) {
        to[0] = __dadd_rn(to[0], __dmul_rn(a, b));
    }
};
struct ProductAndSquareTerms {
    static constexpr unsigned sums = 2;
    __device__ static void add(double a, double b, double (&to)[2]) {
        to[0] = __dadd_rn(to[0], __dmul_rn(a, b));
        to[1] = __dadd_rn(to[1], __dmul_rn(b, b));
    }
};

/// Number of the pair, among the N of a half warp, whose result the calling lane has.
template <unsigned N>
__device__ unsigned own_pair() {
    static_assert(kHalfWarp % N == 0);
    return threadIdx.x % kHalfWarp / (kHalfWarp / N);
}

/// The sums of partial sums for the lane's own pair. At each step lanes give away those of half of
/// the pairs. `sums` is scratch afterwards.
template <unsigned N, unsigned Sums>
__device__ void sum_own_pair(double (&sums)[N][Sums], unsigned lanes, double (&own)[Sums]) {
    unsigned distance = kHalfWarp / 2;
#pragma unroll
    for (unsigned left = N / 2; left > 0; left /= 2, distance /= 2) {
        const bool upper = threadIdx.x & distance;
#pragma unroll
        for (unsigned n = 0; n < left; ++n)
#pragma unroll
            for (unsigned s = 0; s < Sums; ++s) {
                const double kept = upper ? sums[n + left][s] : sums[n][s];
                const double given = upper ? sums[n][s] : sums[n + left][s];
                sums[n][s] = __dadd_rn(kept, __shfl_xor_sync(lanes, given, distance));
            }
    }
#pragma unroll
    for (; distance > 0; distance /= 2)
        for (double& sum : sums[0]) sum = __dadd_rn(sum, __shfl_xor_sync(lanes, sum, distance));
#pragma unroll
    for (unsigned s = 0; s < Sums; ++s) own[s] = sums[0][s];
}

/// The definition's sums for N pairs at a time, each lane gets its own pair's. Elements are read
/// well before they are summed, so that many reads are under way.
template <class Terms, unsigned N, class Q, class T>
__device__ void exact_sums(const Q* const (&queries)[N], const T* const (&rows)[N],
                           std::uint32_t dimensions, unsigned lanes, double (&own)[Terms::sums]) {
    double sums[N][Terms::sums];
    constexpr unsigned kAhead = N < 4 ? 16 / N : 4;
#pragma unroll
    for (unsigned n = 0; n < N; ++n)
        for (double& sum : sums[n]) sum = 0;
    std::uint32_t i = threadIdx.x % kHalfWarp;
    for (; i + (kAhead - 1) * kHalfWarp < dimensions; i += kAhead * kHalfWarp) {
        T elements[kAhead][N];
#pragma unroll
        for (unsigned ahead = 0; ahead < kAhead; ++ahead)
#pragma unroll
            for (unsigned n = 0; n < N; ++n) elements[ahead][n] = rows[n][i + ahead * kHalfWarp];
#pragma unroll
        for (unsigned ahead = 0; ahead < kAhead; ++ahead)
#pragma unroll
            for (unsigned n = 0; n < N; ++n)
                Terms::add(as_double(queries[n][i + ahead * kHalfWarp]),
                           as_double(elements[ahead][n]), sums[n]);
    }
    if (i < dimensions) {
        // Zeros behind the last element add zeros, which change nothing.
        T elements[kAhead - 1][N];
#pragma unroll
        for (unsigned ahead = 0; ahead + 1 < kAhead; ++ahead)
#pragma unroll
            for (unsigned n = 0; n < N; ++n)
                elements[ahead][n] =
                    i + ahead * kHalfWarp < dimensions ? rows[n][i + ahead * kHalfWarp] : T(0);
#pragma unroll
        for (unsigned ahead = 0; ahead + 1 < kAhead; ++ahead)
#pragma unroll
            for (unsigned n = 0; n < N; ++n)
                Terms::add(i + ahead * kHalfWarp < dimensions
                               ? as_double(queries[n][i + ahead * kHalfWarp])
                               : 0.0,
                           as_double(elements[ahead][n]), sums[n]);
    }
    sum_own_pair(sums, lanes, own);
}

/// The definition's sum of term(i).
template <class Term>
__device__ double exact_sum(std::uint32_t dimensions, unsigned lanes, Term&& term) {
    double sum = 0;
    for (std::uint32_t i = threadIdx.x % kHalfWarp; i < dimensions; i += kHalfWarp)
        sum = __dadd_rn(sum, term(i));
    return sum_of_half_warp(sum, lanes);
}

/// x * 2^exponent for exponents from -1023 to 1074, rounded once: where it rounds at all, the
/// exponent is below 0.
__device__ inline double times_power_of_two(double x, int exponent) {
    if (exponent > 1000) {
        x = __dmul_rn(x, 0x1p1000);
        exponent -= 1000;
    }
    const long long bits = exponent == -1023 ? 1ll << 51 : (exponent + 1023ll) << 52;
    return __dmul_rn(x, __longlong_as_double(bits));
}

__device__ inline bool square_needs_scale(double square) {
    return !(square >= 0x1p-300 && square <= 0x1p300);
}

/// What metric cosine multiplies a row by, as an exponent of two. False for a row of zeros.
template <class T>
__device__ bool cosine_exponent(const T* row, std::uint32_t dimensions, unsigned lanes,
                                int& exponent) {
    double most = 0;
    for (std::uint32_t i = threadIdx.x % kHalfWarp; i < dimensions; i += kHalfWarp)
        most = fmax(most, fabs(as_double(row[i])));
    most = most_of_half_warp(most, lanes);
    if (most == 0) return false;
    exponent = -ilogb(most);
    return true;
}

struct ExactQuery {
    const double* elements;
    double square;  // cosine only
};

/// Similarity from sums over rows that were scaled where they need it.
__device__ inline double similarity_of(double products, double query_square, double square) {
    if (query_square == 0 || square == 0) return nan("");
    const double similarity = __ddiv_rn(products, __dsqrt_rn(__dmul_rn(query_square, square)));
    return similarity < -1 ? -1.0 : similarity > 1 ? 1.0 : similarity;
}

/// Where the row's square is out of range; NaN where there is none.
template <class T>
__device__ double scaled_similarity(const ExactQuery& query, const T* row, std::uint32_t dimensions,
                                    unsigned lanes) {
    int exponent = 0;
    if (!cosine_exponent(row, dimensions, lanes, exponent)) return nan("");
    const auto scaled = [=](std::uint32_t i) {
        return times_power_of_two(as_double(row[i]), exponent);
    };
    const double square = exact_sum(
        dimensions, lanes, [=](std::uint32_t i) { return __dmul_rn(scaled(i), scaled(i)); });
    const double products = exact_sum(dimensions, lanes, [=](std::uint32_t i) {
        return __dmul_rn(query.elements[i], scaled(i));
    });
    return similarity_of(products, query.square, square);
}

/// Where the sum of squares over- or underflows. A sum of 0 comes here too, and remains 0.
template <class Q, class T>
__device__ double scaled_euclidean(bool large, const Q* query, const T* row,
                                   std::uint32_t dimensions, unsigned lanes) {
    const double again = exact_sum(dimensions, lanes, [=](std::uint32_t i) {
        const double a = as_double(query[i]);
        const double b = as_double(row[i]);
        const double difference = large ? __dsub_rn(__dmul_rn(a, 0x1p-600), __dmul_rn(b, 0x1p-600))
                                        : __dmul_rn(__dsub_rn(a, b), 0x1p600);
        return __dmul_rn(difference, difference);
    });
    return __dmul_rn(__dsqrt_rn(again), large ? 0x1p600 : 0x1p-600);
}

/// Where the sum of products overflows.
template <class T>
__device__ double scaled_inner_product(const double* query, const T* row, std::uint32_t dimensions,
                                       unsigned lanes) {
    const double again = exact_sum(dimensions, lanes, [=](std::uint32_t i) {
        return __dmul_rn(__dmul_rn(query[i], 0x1p-600), __dmul_rn(as_double(row[i]), 0x1p-600));
    });
    return __dsub_rn(0, __dmul_rn(__dmul_rn(again, 0x1p600), 0x1p600));
}

/// N times the same row.
template <unsigned N, class T>
struct SameRow {
    const T* rows[N];

    __device__ explicit SameRow(const T* row) {
#pragma unroll
        for (unsigned n = 0; n < N; ++n) rows[n] = row;
    }
};

/// Computes results anew by `of`, for each of the N pairs for which its lane sets `again`. `of` is
/// called by whole half warps.
template <unsigned N, class Of>
__device__ void replace_results(bool again, unsigned lanes, double& own, Of&& of) {
    const unsigned asking = __ballot_sync(lanes, again) & lanes;
    if (asking == 0) return;
    const unsigned first = threadIdx.x / kHalfWarp % 2 * kHalfWarp;
    for (unsigned n = 0; n < N; ++n) {
        if ((asking >> (first + n * (kHalfWarp / N)) & 1) == 0) continue;
        const double result = of(n);
        if (own_pair<N>() == n) own = result;
    }
}

/// The similarity of the lane's own of N items; NaN where there is none.
template <unsigned N, class T>
__device__ double exact_similarity(const ExactQuery& query, const T* const (&rows)[N],
                                   std::uint32_t dimensions, unsigned lanes) {
    const SameRow<N, double> queries(query.elements);
    double sums[2];
    exact_sums<ProductAndSquareTerms>(queries.rows, rows, dimensions, lanes, sums);
    double similarity = similarity_of(sums[0], query.square, sums[1]);
    replace_results<N>(square_needs_scale(sums[1]), lanes, similarity, [&](unsigned n) {
        return scaled_similarity(query, rows[n], dimensions, lanes);
    });
    return similarity;
}

/// The euclidean distance of the lane's own of N items. The query may be a row of any type.
template <unsigned N, class Q, class T>
__device__ double exact_euclidean(const Q* query, const T* const (&rows)[N],
                                  std::uint32_t dimensions, unsigned lanes) {
    const SameRow<N, Q> queries(query);
    double sum[1];
    exact_sums<SquareTerms>(queries.rows, rows, dimensions, lanes, sum);
    double distance = __dsqrt_rn(sum[0]);
    replace_results<N>(
        !(sum[0] >= 0x1p-900 && sum[0] <= 0x1p1000), lanes, distance, [&](unsigned n) {
            const bool large = __shfl_sync(lanes, sum[0] > 1, n * (kHalfWarp / N), kHalfWarp);
            return scaled_euclidean(large, query, rows[n], dimensions, lanes);
        });
    return distance;
}

/// The distance of the lane's own of N items; NaN where there is none.
template <unsigned N, class T>
__device__ double exact_distance(Metric metric, const ExactQuery& query, const T* const (&rows)[N],
                                 std::uint32_t dimensions, unsigned lanes) {
    const SameRow<N, double> queries(query.elements);
    double sum[1];
    double distance = 0;
    switch (metric) {
        case Metric::euclidean:
            return exact_euclidean(query.elements, rows, dimensions, lanes);
        case Metric::manhattan:
            exact_sums<MagnitudeTerms>(queries.rows, rows, dimensions, lanes, sum);
            return sum[0];
        case Metric::inner_product:
            exact_sums<ProductTerms>(queries.rows, rows, dimensions, lanes, sum);
            distance = __dsub_rn(0, sum[0]);
            replace_results<N>(!isfinite(sum[0]), lanes, distance, [&](unsigned n) {
                return scaled_inner_product(query.elements, rows[n], dimensions, lanes);
            });
            return distance;
        default:
            return __dsub_rn(1, exact_similarity(query, rows, dimensions, lanes));
    }
}

}  // namespace gputext::gpu
