#include "kernels/base/launch.hpp"
#include "kernels/knn/detail/device_rows.hpp"
#include "kernels/knn/exact_distance.cuh"

namespace gputext::gpu {
namespace {

constexpr unsigned kThreads = 256;
constexpr unsigned kRowsPerBlock = kThreads / kHalfWarp;

/// A half warp for each row.
template <class T>
__global__ void prepare_rows(bool cosine, const T* from, std::uint32_t rows,
                             std::uint32_t dimensions, double* to, double* squares) {
    const std::uint32_t row = blockIdx.x * kRowsPerBlock + threadIdx.x / kHalfWarp;
    if (row >= rows) return;
    const unsigned lanes = half_warp_lanes();
    from += std::size_t{row} * dimensions;
    const auto square_of = [=](int exponent) {
        return exact_sum(dimensions, lanes, [=](std::uint32_t i) {
            const double element = times_power_of_two(as_double(from[i]), exponent);
            return __dmul_rn(element, element);
        });
    };
    double square = square_of(0);
    int exponent = 0;
    if (cosine && square_needs_scale(square)) {
        if (cosine_exponent(from, dimensions, lanes, exponent))
            square = square_of(exponent);
        else
            square = 0;
    }
    const unsigned lane = threadIdx.x % kHalfWarp;
    if (lane == 0) squares[row] = square;
    if (to == nullptr) return;
    to += std::size_t{row} * dimensions;
    for (std::uint32_t i = lane; i < dimensions; i += kHalfWarp)
        to[i] = times_power_of_two(as_double(from[i]), exponent);
}

/// A thread for each element of the wider rows.
template <class T>
__global__ void widen_rows(const T* from, std::uint32_t rows, std::uint32_t dimensions,
                           std::uint32_t width, T* to) {
    const std::size_t at = std::size_t{blockIdx.x} * kThreads + threadIdx.x;
    const std::size_t row = at / width;
    const auto i = static_cast<std::uint32_t>(at - row * width);
    if (row < rows) to[at] = i < dimensions ? from[row * dimensions + i] : T(0);
}

Status run(bool cosine, const DeviceRows& rows, double* elements, double* squares,
           cudaStream_t stream) {
    if (rows.rows == 0) return {};
    with_element_type(rows.type, [&](auto element) {
        prepare_rows<<<blocks_for(rows.rows, kRowsPerBlock), kThreads, 0, stream>>>(
            cosine, static_cast<decltype(element)>(rows.elements), rows.rows, rows.dimensions,
            elements, squares);
    });
    return launched("converting vectors");
}

}  // namespace

Status align_rows(const DeviceRows& rows, std::uint32_t vectors, std::byte* to,
                  cudaStream_t stream) {
    if (rows.rows == 0) return {};
    with_element_type(rows.type, [&](auto element) {
        using T = std::remove_const_t<std::remove_pointer_t<decltype(element)>>;
        const auto width = static_cast<std::uint32_t>(vectors * 16 / sizeof(T));
        widen_rows<<<blocks_for(std::size_t{rows.rows} * width, kThreads), kThreads, 0, stream>>>(
            static_cast<const T*>(rows.elements), rows.rows, rows.dimensions, width,
            reinterpret_cast<T*>(to));
    });
    return launched("aligning vectors");
}

Status prepare_queries(Metric metric, const DeviceRows& rows, double* elements, double* squares,
                       cudaStream_t stream) {
    return run(metric == Metric::cosine, rows, elements, squares, stream);
}

Status row_squares(const DeviceRows& rows, double* squares, cudaStream_t stream) {
    return run(false, rows, nullptr, squares, stream);
}

}  // namespace gputext::gpu
