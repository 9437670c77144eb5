#include "kernels/base/launch.hpp"
#include "kernels/terms/detail/rows.cuh"

namespace gputext::gpu {
namespace {

constexpr unsigned kThreads = 256;
constexpr unsigned kWarps = kThreads / 32;

/// A warp for each row.
template <class T>
__global__ __launch_bounds__(kThreads) void square_rows(TermRows rows, double* squares,
                                                        unsigned long long* largest) {
    __shared__ double sums[kWarps][OrderedSum::size];
    const unsigned warp = threadIdx.x / 32;
    const std::uint32_t row = blockIdx.x * kWarps + warp;
    if (row >= rows.rows) return;
    const RowSpan span = span_of_row(rows, row);
    OrderedSum sum(sums[warp]);
    for (std::uint64_t base = span.begin; base < span.end; base += 32) {
        const std::uint64_t at = base + threadIdx.x % 32;
        const bool has = at < span.end;
        const std::uint32_t column = has ? rows.columns[at] : 0;
        const double weight = has ? weight_at<T>(rows, at, column) : 0;
        sum.add(has, column, __dmul_rn(weight, weight));
    }
    const double square = sum.total();
    if (threadIdx.x % 32 != 0) return;
    squares[row] = square;
    if (rows.metric == Metric::inner_product)
        atomicMax(largest, static_cast<unsigned long long>(__double_as_longlong(square)));
}

__global__ void level_squares(std::uint32_t rows, const unsigned long long* largest,
                              double* squares) {
    const std::uint32_t row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row < rows) squares[row] = __longlong_as_double(static_cast<long long>(*largest));
}

}  // namespace

Status TermRowsMemory::allocate(std::size_t rows, std::size_t elements, cudaStream_t stream) {
    stream_ = stream;
    GPUTEXT_TRY(event_.create());
    GPUTEXT_TRY(begins_.allocate(rows + 1, stream));
    GPUTEXT_TRY(squares_.allocate(rows, stream));
    GPUTEXT_TRY(largest_.allocate(1, stream));
    GPUTEXT_TRY(keys_.allocate(rows, stream));
    GPUTEXT_TRY(columns_.allocate(elements, stream));
    return elements_.allocate(elements, stream);
}

Status TermRowsMemory::copy(void* to, const void* from, std::size_t bytes, UploadRing& ring,
                            Execution& execution) {
    if (bytes == 0) return {};
    return ring.copy(static_cast<std::uint8_t*>(to),
                     {static_cast<const std::uint8_t*>(from), bytes}, execution);
}

Status TermRowsMemory::load(const Vectors& from, std::size_t begin, std::size_t end,
                            std::span<const std::uint32_t> keys, const double* factors,
                            UploadRing& ring, Execution& execution, Metric metric) {
    const std::uint64_t first = from.row_begins[begin];
    const std::uint64_t stored = from.row_begins[end] - first;
    GPUTEXT_TRY(event_.hold(ring.stream(), stream_));
    GPUTEXT_TRY(copy(begins_.data(), &from.row_begins[begin],
                     (end - begin + 1) * sizeof(std::uint64_t), ring, execution));
    GPUTEXT_TRY(copy(columns_.data(), from.columns.data() + first, stored * sizeof(std::uint32_t),
                     ring, execution));
    GPUTEXT_TRY(copy(elements_.data(), from.row_bytes(begin), stored * sizeof(std::uint32_t), ring,
                     execution));
    if (!keys.empty())
        GPUTEXT_TRY(copy(keys_.data(), keys.data() + begin, (end - begin) * sizeof(std::uint32_t),
                         ring, execution));
    GPUTEXT_TRY(event_.hold(stream_, ring.stream()));
    view_ = {from.type,        static_cast<std::uint32_t>(end - begin),
             stored,           first,
             begins_.data(),   columns_.data(),
             elements_.data(), factors,
             squares_.data(),  keys.empty() ? nullptr : keys_.data(),
             metric};
    if (begin == end) return {};
    GPUTEXT_TRY(
        cuda_status(cudaMemsetAsync(largest_.data(), 0, sizeof(unsigned long long), stream_),
                    "clearing a square"));
    with_term_type(from.type, [&](auto element) {
        square_rows<decltype(element)><<<blocks_for(end - begin, kWarps), kThreads, 0, stream_>>>(
            view_, squares_.data(), largest_.data());
    });
    GPUTEXT_TRY(launched("weighing terms"));
    if (metric != Metric::inner_product) return {};
    level_squares<<<blocks_for(end - begin, kThreads), kThreads, 0, stream_>>>(
        view_.rows, largest_.data(), squares_.data());
    return launched("taking the largest square");
}

}  // namespace gputext::gpu
