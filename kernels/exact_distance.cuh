// kernels/exact_distance.cuh - the distances of cpp/distance.hpp on a device, to the bit
//
// Sixteen lanes take the definition's sixteen partial sums of a pair; adding lanes j and j ^ 8,
// then 4, 2, 1 is its tree. Operations are the intrinsics that round once and are never fused.
// Functions are called by all sixteen lanes of a half warp, which `lanes` names, and give all of
// them the result.

#pragma once

#include <cuda_fp16.h>

#include <cstdint>

#include "cpp/distance.hpp"
#include "cpp/vectors.hpp"

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
#pragma unroll
    for (unsigned distance = kHalfWarp / 2; distance > 0; distance /= 2)
        sum = __dadd_rn(sum, __shfl_xor_sync(lanes, sum, distance));
    return sum;
}

__device__ inline double most_of_half_warp(double value, unsigned lanes) {
#pragma unroll
    for (unsigned distance = kHalfWarp / 2; distance > 0; distance /= 2)
        value = fmax(value, __shfl_xor_sync(lanes, value, distance));
    return value;
}

/// The definition's sum of term(i).
template <class Term>
__device__ double exact_sum(std::uint32_t dimensions, unsigned lanes, Term&& term) {
    double sum = 0;
#pragma unroll 4
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

/// Of sums over rows that are scaled where they need it.
__device__ inline double similarity_of(double products, double query_square, double square) {
    if (query_square == 0 || square == 0) return nan("");
    const double similarity = __ddiv_rn(products, __dsqrt_rn(__dmul_rn(query_square, square)));
    return similarity < -1 ? -1.0 : similarity > 1 ? 1.0 : similarity;
}

/// NaN where there is none.
template <class T>
__device__ double exact_similarity(const ExactQuery& query, const T* row, std::uint32_t dimensions,
                                   unsigned lanes) {
    double products = 0;
    double squares = 0;
#pragma unroll 4
    for (std::uint32_t i = threadIdx.x % kHalfWarp; i < dimensions; i += kHalfWarp) {
        const double element = as_double(row[i]);
        products = __dadd_rn(products, __dmul_rn(query.elements[i], element));
        squares = __dadd_rn(squares, __dmul_rn(element, element));
    }
    products = sum_of_half_warp(products, lanes);
    double square = sum_of_half_warp(squares, lanes);
    if (square_needs_scale(square)) {
        int exponent = 0;
        if (!cosine_exponent(row, dimensions, lanes, exponent)) return nan("");
        const auto scaled = [=](std::uint32_t i) {
            return times_power_of_two(as_double(row[i]), exponent);
        };
        square = exact_sum(dimensions, lanes,
                           [=](std::uint32_t i) { return __dmul_rn(scaled(i), scaled(i)); });
        products = exact_sum(dimensions, lanes, [=](std::uint32_t i) {
            return __dmul_rn(query.elements[i], scaled(i));
        });
    }
    return similarity_of(products, query.square, square);
}

template <class T>
__device__ double exact_euclidean(const double* query, const T* row, std::uint32_t dimensions,
                                  unsigned lanes) {
    const double sum = exact_sum(dimensions, lanes, [=](std::uint32_t i) {
        const double difference = __dsub_rn(query[i], as_double(row[i]));
        return __dmul_rn(difference, difference);
    });
    // Where no element is float64, only a sum of 0 is out of this range, and remains 0.
    if (sum >= 0x1p-900 && sum <= 0x1p1000) return __dsqrt_rn(sum);
    const bool large = sum > 1;
    const double again = exact_sum(dimensions, lanes, [=](std::uint32_t i) {
        const double a = query[i];
        const double b = as_double(row[i]);
        const double difference = large ? __dsub_rn(__dmul_rn(a, 0x1p-600), __dmul_rn(b, 0x1p-600))
                                        : __dmul_rn(__dsub_rn(a, b), 0x1p600);
        return __dmul_rn(difference, difference);
    });
    return __dmul_rn(__dsqrt_rn(again), large ? 0x1p600 : 0x1p-600);
}

template <class T>
__device__ double exact_inner_product(const double* query, const T* row, std::uint32_t dimensions,
                                      unsigned lanes) {
    const double sum = exact_sum(
        dimensions, lanes, [=](std::uint32_t i) { return __dmul_rn(query[i], as_double(row[i])); });
    if (isfinite(sum)) return __dsub_rn(0, sum);
    const double again = exact_sum(dimensions, lanes, [=](std::uint32_t i) {
        return __dmul_rn(__dmul_rn(query[i], 0x1p-600), __dmul_rn(as_double(row[i]), 0x1p-600));
    });
    return __dsub_rn(0, __dmul_rn(__dmul_rn(again, 0x1p600), 0x1p600));
}

template <class T>
__device__ double exact_manhattan(const double* query, const T* row, std::uint32_t dimensions,
                                  unsigned lanes) {
    return exact_sum(dimensions, lanes,
                     [=](std::uint32_t i) { return fabs(__dsub_rn(query[i], as_double(row[i]))); });
}

/// NaN where there is none.
template <class T>
__device__ double exact_distance(Metric metric, const ExactQuery& query, const T* row,
                                 std::uint32_t dimensions, unsigned lanes) {
    switch (metric) {
        case Metric::euclidean:
            return exact_euclidean(query.elements, row, dimensions, lanes);
        case Metric::manhattan:
            return exact_manhattan(query.elements, row, dimensions, lanes);
        case Metric::inner_product:
            return exact_inner_product(query.elements, row, dimensions, lanes);
        default:
            return __dsub_rn(1, exact_similarity(query, row, dimensions, lanes));
    }
}

}  // namespace gputext::gpu
