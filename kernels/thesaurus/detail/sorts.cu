#include "kernels/thesaurus/detail/sorts.hpp"

#include <cub/device/device_segmented_radix_sort.cuh>

#include "kernels/base/binary_search.cuh"
#include "kernels/base/launch.hpp"

namespace gputext::gpu {
namespace {

constexpr unsigned kThreads = 256;

__global__ void name_words(std::uint32_t* names, std::uint64_t size, std::uint32_t words) {
    const std::uint64_t at = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (at < size) names[at] = static_cast<std::uint32_t>(at % words);
}

__global__ void begin_rows(std::uint64_t* begins, std::uint32_t rows, std::uint32_t words) {
    const std::uint32_t row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row <= rows) begins[row] = std::uint64_t{row} * words;
}

/// A thread for each row.
__global__ void count_similar(const std::uint64_t* sorted, std::uint32_t rows, std::uint32_t words,
                              std::uint32_t* counts) {
    const std::uint32_t row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    sorted += std::uint64_t{row} * words;
    counts[row] =
        partition_point(0u, words, [=](std::uint32_t place) { return sorted[place] != 0; });
}

}  // namespace

Status AllSimilarities::allocate(std::uint32_t rows, std::uint32_t words, cudaStream_t stream) {
    const std::size_t size = std::size_t{rows} * words;
    row_words_ = words;
    GPUTEXT_TRY(keys_a_.allocate(size, stream));
    GPUTEXT_TRY(keys_b_.allocate(size, stream));
    GPUTEXT_TRY(words_a_.allocate(size, stream));
    GPUTEXT_TRY(words_b_.allocate(size, stream));
    GPUTEXT_TRY(begins_.allocate(std::size_t{rows} + 1, stream));
    return counts_.allocate(rows, stream);
}

Status AllSimilarities::sort(std::uint32_t rows, cudaStream_t stream) {
    const std::size_t size = std::size_t{rows} * row_words_;
    name_words<<<blocks_for(size, kThreads), kThreads, 0, stream>>>(words_a_.data(), size,
                                                                    row_words_);
    begin_rows<<<blocks_for(rows + 1, kThreads), kThreads, 0, stream>>>(begins_.data(), rows,
                                                                        row_words_);
    GPUTEXT_TRY(launched("sorting similarities"));
    cub::DoubleBuffer<std::uint64_t> keys(keys_a_.data(), keys_b_.data());
    cub::DoubleBuffer<std::uint32_t> values(words_a_.data(), words_b_.data());
    GPUTEXT_TRY(with_scratch(scratch_, stream, [&](void* space, std::size_t& bytes) {
        return cub::DeviceSegmentedRadixSort::SortPairsDescending(
            space, bytes, keys, values, static_cast<std::int64_t>(size),
            static_cast<std::int64_t>(rows), begins_.data(), begins_.data() + 1, 0, 64, stream);
    }));
    sorted_ = keys.Current();
    words_ = values.Current();
    count_similar<<<blocks_for(rows, kThreads), kThreads, 0, stream>>>(sorted_, rows, row_words_,
                                                                       counts_.data());
    return launched("sorting similarities");
}

}  // namespace gputext::gpu
