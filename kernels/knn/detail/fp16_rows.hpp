// kernels/knn/detail/fp16_rows.hpp - rows in half precision, and the bounds of what their products
// say
//
// Rows are moved and scaled as in cpp/knn/detail/filter_space.hpp, and rounded to binary16. With a'
// and b' a query and an item after that, in exact arithmetic, and a~ and b~ rounded, a score t that
// falls strictly with the distance D is
//
//   euclidean      a' = (a - c) s, b' = (b - c) s   t = (|a'|^2 - (s D)^2) / 2 = a' b' - |b'|^2 / 2
//   cosine         a' = a / |a|, b' = b / |b|       t = 1 - D                  = a' b'
//   inner_product  a' = a s_q, b' = b s_i           t = - s_q s_i D            = a' b'
//
// The tensor cores compute v = a~ b~ - offset in binary32. With N a bound of a row's norm, before
// and after rounding, R = |a' - a~| its residual and H = |b'|^2 / 2 or 0,
//
//   |v - t| <= r = G (H + Nq Ni) + Rq Ni + Nq Ri + E (Nq + Ni)^2 + tiny
//
// where E = (d / 16 + 32) 2^-50 bounds the error of D itself, as in
// cpp/knn/detail/filter_space.hpp, and G = (d + 32) 2^-22 that of the products' sum. Tensor cores
// take sums of b = 4 (compute capability 7), 8 or 16 products and the sum so far; each is cut, not
// rounded, below 2^-23 of the largest (Fasi, Higham, Mikaitis, Pranesh, Numerical behavior of
// NVIDIA tensor cores, 2021), which is below the sum of all magnitudes M <= H + Nq Ni: (b + 2) / b
// * d * 2^-23 M at most, for b = 4 three quarters of G. The rest is far more than the few roundings
// of what is added to a product.
//
// An item is left out for a query when v + r < T, with T at most the t of a distance within which
// there are k items; what is added to v depends on the item and on bounds that 256 queries share.
// A row that binary16 cannot hold gets no bound: such an item always passes, and such a query
// lets every item pass.

#pragma once

#include <cuda_fp16.h>

#include <cstdint>
#include <vector>

#include "kernels/base/device_buffer.hpp"
#include "kernels/knn/detail/device_rows.hpp"

namespace gputext::gpu {

inline constexpr std::uint32_t kGroupQueries = 256;  // that share bounds

/// How rows are moved and scaled, with the numbers that bound what is lost. Passed to kernels.
struct Fp16Space {
    Metric metric = Metric::euclidean;
    std::uint32_t dimensions = 0;
    std::uint32_t padded = 0;        // elements of a row: zeros behind the dimensions
    const double* center = nullptr;  // on the device; euclidean only
    double item_scale = 1;
    double sum_error = 0;     // G
    double double_error = 0;  // E

    /// `padded` for rows of so many dimensions.
    static constexpr std::uint32_t padded_of(std::size_t dimensions) {
        const std::size_t unit = dimensions <= 64 ? 16 : 64;
        return static_cast<std::uint32_t>((dimensions + unit - 1) / unit * unit);
    }
};

/// Chooses center and scale by looking at about a hundred of the items.
class Fp16SpaceChoice {
public:
    /// Whether half precision can help with such vectors at all.
    static bool usable(Metric metric, const Vectors& items, double largest);

    /// Reads some of the items on the host unless the metric is cosine. Errors: out_of_memory,
    /// device_error.
    Status choose(Metric metric, const Vectors& items, cudaStream_t stream);
    const Fp16Space& space() const { return space_; }

private:
    Fp16Space space_;
    std::vector<double> host_center_;  // until it is copied
    DeviceBuffer<double> center_;
};

/// What is added to an item's product for a query: per_norm * norm + per_residual * residual -
/// offset, which is -(H - r's own terms). Rounded to the safe side.
struct Fp16ItemBound {
    float offset;
    float per_norm;
    float per_residual;
    float unused;
};

/// A query's bounds of norm and residual, and how its limit becomes a score.
struct Fp16QueryBound {
    double norm;
    double residual;
    double least_norm;
    double scale;  // of distances
};

struct Fp16Items {
    const __half* rows = nullptr;
    const Fp16ItemBound* bounds = nullptr;
    const float* largest = nullptr;  // per_norm and per_residual of any item that has a bound
};

struct Fp16Queries {
    const __half* rows = nullptr;
    const Fp16QueryBound* bounds = nullptr;
    const float2* groups = nullptr;  // largest norm and residual of 256 queries
};

/// Items of `from` to rows of halves: all in their order, or `count` of them by their numbers.
/// `largest` is overwritten. O(elements).
Status convert_items(const Fp16Space& space, const DeviceRows& from, __half* rows,
                     Fp16ItemBound* bounds, float* largest, cudaStream_t stream);
Status convert_items(const Fp16Space& space, const DeviceRows& from, const std::uint32_t* numbers,
                     std::uint32_t count, __half* rows, Fp16ItemBound* bounds, float* largest,
                     cudaStream_t stream);
Status convert_queries(const Fp16Space& space, const DeviceQueries& from, __half* rows,
                       Fp16QueryBound* bounds, float2* groups, cudaStream_t stream);

/// All groups get the largest of their bounds.
Status unite_groups(float2* groups, std::uint32_t queries, cudaStream_t stream);

/// Copies every stride-th row and its bound: rows n * stride / of.
Status sample_items(const Fp16Space& space, const Fp16Items& from, std::uint32_t items,
                    std::uint32_t samples, __half* rows, Fp16ItemBound* bounds,
                    cudaStream_t stream);

}  // namespace gputext::gpu
