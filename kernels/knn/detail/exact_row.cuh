// kernels/knn/detail/exact_row.cuh - distances of cpp/knn/distance.hpp by one thread a row, to the
// bit
//
// A thread keeps the definition's sixteen partial sums in registers and adds them as its tree does.
// Rows of few dimensions cost less this way than in half warps (kernels/knn/exact_distance.cuh),
// whose lanes have little to do beside passing sums around. Rows lie in shared memory, as vectors
// of 16 bytes with zeros behind the last element: they add zeros, which change nothing.

#pragma once

#include "kernels/knn/exact_distance.cuh"

namespace gputext::gpu {

/// Adds sums j and j + Left for j < Left.
template <unsigned Left, unsigned Sums>
__device__ void add_upper_half(double (&sums)[kHalfWarp][Sums]) {
#pragma unroll
    for (unsigned j = 0; j < Left; ++j)
#pragma unroll
        for (unsigned s = 0; s < Sums; ++s) sums[j][s] = __dadd_rn(sums[j][s], sums[j + Left][s]);
}

/// The definition's sums. `query` has as many elements as the row's vectors.
template <class Terms, class T>
__device__ void sums_of_row(const double2* query, const uint4* row, unsigned vectors,
                            double (&own)[Terms::sums]) {
    constexpr unsigned kElements = sizeof(uint4) / sizeof(T);
    constexpr unsigned kAtOnce = kHalfWarp / kElements;
    double sums[kHalfWarp][Terms::sums];
#pragma unroll
    for (auto& partial : sums)
#pragma unroll
        for (double& sum : partial) sum = 0;
    for (unsigned first = 0; first < vectors; first += kAtOnce) {
#pragma unroll
        for (unsigned v = 0; v < kAtOnce; ++v) {
            if (first + v >= vectors) break;
            const uint4 words = row[first + v];
            T elements[kElements];
            memcpy(elements, &words, sizeof words);
#pragma unroll
            for (unsigned e = 0; e < kElements; e += 2) {
                const double2 two = query[((first + v) * kElements + e) / 2];
                Terms::add(two.x, as_double(elements[e]), sums[v * kElements + e]);
                Terms::add(two.y, as_double(elements[e + 1]), sums[v * kElements + e + 1]);
            }
        }
    }
    add_upper_half<8>(sums);
    add_upper_half<4>(sums);
    add_upper_half<2>(sums);
    add_upper_half<1>(sums);
#pragma unroll
    for (unsigned s = 0; s < Terms::sums; ++s) own[s] = sums[0][s];
}

/// Only with float64 may sums be out of range: see cpp/knn/distance.hpp.
template <class T>
inline constexpr bool needs_second_looks = std::is_same_v<T, double>;

/// Replaces the results of the lanes that ask for it. `of` is called by both half warps of a whole
/// warp, for a lane.
template <class Of>
__device__ void replace_rows(bool again, double& own, Of&& of) {
    for (unsigned asking = __ballot_sync(~0u, again); asking != 0; asking &= asking - 1) {
        const unsigned lane = __ffs(static_cast<int>(asking)) - 1;
        const double result = of(lane);
        if (threadIdx.x % 32 == lane) own = result;
    }
}

/// The distance of each lane's row; NaN where there is none. Called by whole warps. `elements` is
/// the query as vectors are, `raw(lane)` a lane's row in device memory; `is`: whether the lane has
/// a row at all, and its result a meaning.
template <Metric Of, class T, class Raw>
__device__ double distance_of_row(const ExactQuery& query, const double2* elements,
                                  const uint4* row, unsigned vectors, std::uint32_t dimensions,
                                  bool is, Raw&& raw) {
    const unsigned lanes = half_warp_lanes();
    double distance = 0;
    if constexpr (Of == Metric::euclidean) {
        double sum[1];
        sums_of_row<SquareTerms, T>(elements, row, vectors, sum);
        distance = __dsqrt_rn(sum[0]);
        if constexpr (needs_second_looks<T>)
            replace_rows(
                is && !(sum[0] >= 0x1p-900 && sum[0] <= 0x1p1000), distance, [&](unsigned lane) {
                    const bool large = __shfl_sync(~0u, sum[0] > 1, lane);
                    return scaled_euclidean(large, query.elements, raw(lane), dimensions, lanes);
                });
    } else if constexpr (Of == Metric::manhattan) {
        double sum[1];
        sums_of_row<MagnitudeTerms, T>(elements, row, vectors, sum);
        distance = sum[0];
    } else if constexpr (Of == Metric::inner_product) {
        double sum[1];
        sums_of_row<ProductTerms, T>(elements, row, vectors, sum);
        distance = __dsub_rn(0, sum[0]);
        if constexpr (needs_second_looks<T>)
            replace_rows(is && !isfinite(sum[0]), distance, [&](unsigned lane) {
                return scaled_inner_product(query.elements, raw(lane), dimensions, lanes);
            });
    } else {
        double sums[2];
        sums_of_row<ProductAndSquareTerms, T>(elements, row, vectors, sums);
        distance = similarity_of(sums[0], query.square, sums[1]);
        if constexpr (needs_second_looks<T>)
            replace_rows(is && square_needs_scale(sums[1]), distance, [&](unsigned lane) {
                return scaled_similarity(query, raw(lane), dimensions, lanes);
            });
        distance = __dsub_rn(1, distance);
    }
    return distance;
}

}  // namespace gputext::gpu
