#include "kernels/knn/detail/fp16_rows.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/base/early_launch.cuh"
#include "kernels/knn/exact_distance.cuh"

namespace gputext::gpu {
namespace {

constexpr unsigned kThreads = 256;
constexpr unsigned kRowsPerBlock = kThreads / kHalfWarp;
constexpr double kLargestHalf = 65504;
constexpr double kTiny = 0x1p-100;  // more than underflow may lose
constexpr double kUp = 1 + 0x1p-20;

struct RowBounds {
    double norm;
    double least_norm;
    double residual;
    double square;
    bool fits;
};

/// Converts a row by a half warp. `scale` is for all metrics but cosine, which scales each row by
/// its own norm.
template <class T>
__device__ RowBounds convert_row(const Fp16Space& space, const T* from, double scale, __half* to) {
    const unsigned lanes = half_warp_lanes();
    const unsigned lane = threadIdx.x % kHalfWarp;
    double before = 1;  // a power of two that keeps a square from over- and underflow
    if (space.metric == Metric::cosine) {
        double most = 0;
        for (std::uint32_t i = lane; i < space.dimensions; i += kHalfWarp)
            most = fmax(most, fabs(as_double(from[i])));
        most = most_of_half_warp(most, lanes);
        if (most > 0 && !(most >= 0x1p-150 && most <= 0x1p150)) {
            before = most > 1 ? 0x1p-600 : 0x1p600;
            if (most < 0x1p-700) before = 0x1p1000;
        }
        double square = 0;
        for (std::uint32_t i = lane; i < space.dimensions; i += kHalfWarp) {
            const double x = as_double(from[i]) * before;
            square = fma(x, x, square);
        }
        square = sum_of_half_warp(square, lanes);
        scale = square > 0 ? 1 / sqrt(square) : 0;
    }
    double square = 0;
    double residual = 0;
    bool fits = true;
    for (std::uint32_t i = lane; i < space.padded; i += kHalfWarp) {
        double y = 0;
        if (i < space.dimensions) {
            y = as_double(from[i]);
            if (space.center != nullptr) y -= space.center[i];
            y = y * before * scale;
        }
        fits = fits && fabs(y) <= kLargestHalf;
        const __half rounded = fits ? __double2half(y) : __half(0);
        to[i] = rounded;
        const double lost = y - as_double(rounded);
        square = fma(y, y, square);
        residual = fma(lost, lost, residual);
    }
    square = sum_of_half_warp(square, lanes);
    residual = sum_of_half_warp(residual, lanes);
    fits = __all_sync(lanes, fits && square < 0x1p100);
    RowBounds bounds;
    const double norm = sqrt(square);
    bounds.fits = fits;
    bounds.square = square;
    bounds.least_norm = norm * (1 - space.double_error);
    bounds.residual = sqrt(residual) * (1 + space.double_error) + space.double_error * norm;
    bounds.norm = norm * (1 + space.double_error) + bounds.residual;
    return bounds;
}

__device__ Fp16ItemBound bound_of_item(const Fp16Space& space, const RowBounds& row) {
    if (!row.fits) return {-INFINITY, 0, 0, 0};  // added to a product, it is infinity
    if (space.metric == Metric::cosine && row.norm == 0) return {INFINITY, 0, 0, 0};
    const double offset = space.metric == Metric::euclidean ? row.square / 2 : 0;
    const double own = space.sum_error * offset + space.double_error * row.norm * row.norm + kTiny;
    const double per_norm = row.residual + (space.sum_error + 2 * space.double_error) * row.norm;
    return {__double2float_rd(offset - own * kUp), __double2float_ru(per_norm * kUp),
            __double2float_ru(row.norm * kUp), 0};
}

/// A half warp for each row. `numbers`: of the rows in `from`, or null.
template <class T>
__global__ void convert_item_rows(Fp16Space space, const T* from, const std::uint32_t* numbers,
                                  std::uint32_t rows, __half* to, Fp16ItemBound* bounds,
                                  float* largest) {
    __shared__ unsigned most[2];
    if (threadIdx.x < 2) most[threadIdx.x] = 0;
    __syncthreads();
    const std::uint32_t row = blockIdx.x * kRowsPerBlock + threadIdx.x / kHalfWarp;
    if (row < rows) {
        const std::size_t number = numbers == nullptr ? row : numbers[row];
        const RowBounds converted =
            convert_row(space, from + number * space.dimensions, space.item_scale,
                        to + std::size_t{row} * space.padded);
        if (threadIdx.x % kHalfWarp == 0) {
            const Fp16ItemBound bound = bound_of_item(space, converted);
            bounds[row] = bound;
            // Floats that are not negative order as their bits do.
            atomicMax(&most[0], __float_as_uint(bound.per_norm));
            atomicMax(&most[1], __float_as_uint(bound.per_residual));
        }
    }
    __syncthreads();
    if (threadIdx.x < 2)
        atomicMax(reinterpret_cast<unsigned*>(largest) + threadIdx.x, most[threadIdx.x]);
}

/// The power of two that brings a magnitude into [1, 2), or as near as a power below infinity does.
__host__ __device__ double scale_to_one(double magnitude) {
    const int exponent = magnitude == 0 ? 0 : -ilogb(magnitude);
    return ldexp(1.0, exponent < 1023 ? exponent : 1023);
}

__global__ void convert_query_rows(Fp16Space space, DeviceQueries from, __half* to,
                                   Fp16QueryBound* bounds) {
    let_next_begin();
    wait_for_previous();
    const std::uint32_t row = blockIdx.x * kRowsPerBlock + threadIdx.x / kHalfWarp;
    if (row >= from.rows) return;
    const double* elements = from.elements + std::size_t{row} * from.dimensions;
    double scale = space.item_scale;
    if (space.metric == Metric::inner_product) {
        double most = 0;
        for (std::uint32_t i = threadIdx.x % kHalfWarp; i < from.dimensions; i += kHalfWarp)
            most = fmax(most, fabs(elements[i]));
        scale = scale_to_one(most_of_half_warp(most, half_warp_lanes()));
    }
    const RowBounds row_bounds =
        convert_row(space, elements, scale, to + std::size_t{row} * space.padded);
    if (threadIdx.x % kHalfWarp != 0) return;
    const double distance_scale =
        space.metric == Metric::inner_product ? scale * space.item_scale : scale;
    bounds[row] = {row_bounds.fits ? row_bounds.norm : INFINITY, row_bounds.residual,
                   row_bounds.least_norm, distance_scale};
}

/// A block for each group.
__global__ void bound_groups(const Fp16QueryBound* bounds, std::uint32_t rows, float2* groups) {
    __shared__ unsigned most[2];
    let_next_begin();
    wait_for_previous();
    if (threadIdx.x < 2) most[threadIdx.x] = 0;
    __syncthreads();
    const std::uint32_t row = blockIdx.x * kGroupQueries + threadIdx.x;
    if (row < rows && isfinite(bounds[row].norm)) {
        atomicMax(&most[0], __float_as_uint(__double2float_ru(bounds[row].norm * kUp)));
        atomicMax(&most[1], __float_as_uint(__double2float_ru(bounds[row].residual * kUp)));
    }
    __syncthreads();
    if (threadIdx.x == 0) groups[blockIdx.x] = {__uint_as_float(most[0]), __uint_as_float(most[1])};
}

/// One block.
__global__ void take_largest_of_groups(float2* groups, std::uint32_t count) {
    __shared__ unsigned most[2];
    if (threadIdx.x < 2) most[threadIdx.x] = 0;
    __syncthreads();
    for (std::uint32_t i = threadIdx.x; i < count; i += blockDim.x) {
        atomicMax(&most[0], __float_as_uint(groups[i].x));
        atomicMax(&most[1], __float_as_uint(groups[i].y));
    }
    __syncthreads();
    for (std::uint32_t i = threadIdx.x; i < count; i += blockDim.x)
        groups[i] = {__uint_as_float(most[0]), __uint_as_float(most[1])};
}

/// Blocks of 32 threads, one for each sample.
__global__ void copy_samples(Fp16Space space, Fp16Items from, std::uint32_t items,
                             std::uint32_t samples, uint4* rows, Fp16ItemBound* bounds) {
    const std::size_t item = std::size_t{blockIdx.x} * items / samples;
    const unsigned vectors = space.padded / 8;
    for (unsigned i = threadIdx.x; i < vectors; i += blockDim.x)
        rows[std::size_t{blockIdx.x} * vectors + i] =
            reinterpret_cast<const uint4*>(from.rows)[item * vectors + i];
    if (threadIdx.x == 0) bounds[blockIdx.x] = from.bounds[item];
}

/// Row by row, some of the items as doubles.
std::vector<double> some_items(const Vectors& items, std::size_t& samples) {
    constexpr std::size_t most_elements = 1 << 15;
    const std::size_t d = items.dimensions;
    samples = std::min(items.rows, std::clamp<std::size_t>(most_elements / d, 15, 127));
    std::vector<double> rows(samples * d);
    for (std::size_t i = 0; i < samples; ++i)
        copy_elements(items, items.begin(i * items.rows / samples), d, &rows[i * d]);
    return rows;
}

double median(std::vector<double>& values) {
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

}  // namespace

bool Fp16SpaceChoice::usable(Metric metric, const Vectors& items, double largest) {
    return metric != Metric::manhattan && items.dimensions > 0 &&
           items.dimensions <= std::size_t{1} << 16 && items.rows > 0 &&
           (metric == Metric::cosine || (largest >= 0x1p-300 && largest <= 0x1p300));
}

Status Fp16SpaceChoice::choose(Metric metric, const Vectors& items, cudaStream_t stream) {
    const std::size_t d = items.dimensions;
    const double dimensions = static_cast<double>(d);
    space_ = {metric, static_cast<std::uint32_t>(d), Fp16Space::padded_of(d),         nullptr,
              1,      (dimensions + 32) * 0x1p-22,   (dimensions / 16 + 32) * 0x1p-50};
    if (metric == Metric::cosine) return {};

    std::size_t samples = 0;
    std::vector<double> rows = some_items(items, samples);
    host_center_.assign(d, 0);
    if (metric == Metric::euclidean) {
        std::vector<double> column(samples);
        for (std::size_t j = 0; j < d; ++j) {
            for (std::size_t i = 0; i < samples; ++i) column[i] = rows[i * d + j];
            host_center_[j] = median(column);
        }
        GPUTEXT_TRY(center_.upload(host_center_, stream));
        space_.center = center_.data();
    }
    // So that elements 2^15 times as large still fit.
    std::vector<double> magnitudes(samples);
    double most = 0;
    for (std::size_t i = 0; i < samples; ++i) {
        for (std::size_t j = 0; j < d; ++j)
            magnitudes[i] = std::max(magnitudes[i], std::fabs(rows[i * d + j] - host_center_[j]));
        most = std::max(most, magnitudes[i]);
    }
    const double middle = median(magnitudes);
    space_.item_scale = scale_to_one(middle > 0 ? middle : most);
    return {};
}

Status convert_items(const Fp16Space& space, const DeviceRows& from, __half* rows,
                     Fp16ItemBound* bounds, float* largest, cudaStream_t stream) {
    return convert_items(space, from, nullptr, from.rows, rows, bounds, largest, stream);
}

Status convert_items(const Fp16Space& space, const DeviceRows& from, const std::uint32_t* numbers,
                     std::uint32_t count, __half* rows, Fp16ItemBound* bounds, float* largest,
                     cudaStream_t stream) {
    GPUTEXT_TRY(cuda_status(cudaMemsetAsync(largest, 0, 2 * sizeof(float), stream), "clearing"));
    if (count == 0) return {};
    with_element_type(from.type, [&](auto element) {
        convert_item_rows<<<blocks_for(count, kRowsPerBlock), kThreads, 0, stream>>>(
            space, static_cast<decltype(element)>(from.elements), numbers, count, rows, bounds,
            largest);
    });
    return launched("rounding items");
}

Status unite_groups(float2* groups, std::uint32_t queries, cudaStream_t stream) {
    take_largest_of_groups<<<1, kThreads, 0, stream>>>(groups, blocks_for(queries, kGroupQueries));
    return launched("bounding queries");
}

Status convert_queries(const Fp16Space& space, const DeviceQueries& from, __half* rows,
                       Fp16QueryBound* bounds, float2* groups, cudaStream_t stream) {
    if (from.rows == 0) return {};
    GPUTEXT_TRY(launch_early("rounding queries", convert_query_rows,
                             blocks_for(from.rows, kRowsPerBlock), kThreads, 0, stream, space, from,
                             rows, bounds));
    return launch_early("rounding queries", bound_groups, blocks_for(from.rows, kGroupQueries),
                        kGroupQueries, 0, stream, bounds, from.rows, groups);
}

Status sample_items(const Fp16Space& space, const Fp16Items& from, std::uint32_t items,
                    std::uint32_t samples, __half* rows, Fp16ItemBound* bounds,
                    cudaStream_t stream) {
    copy_samples<<<samples, 32, 0, stream>>>(space, from, items, samples,
                                             reinterpret_cast<uint4*>(rows), bounds);
    return launched("sampling items");
}

}  // namespace gputext::gpu
