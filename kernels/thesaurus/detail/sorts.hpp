// kernels/thesaurus/detail/sorts.hpp - sorts all similarities of some words

#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "cpp/base/status.hpp"
#include "kernels/base/device_buffer.hpp"

namespace gputext::gpu {

/// Rows of similarities to all words, and who they are.
class AllSimilarities {
public:
    /// What a row takes.
    static std::uint64_t bytes_of_row(std::uint32_t words) {
        return std::uint64_t{words} * 25 + 24;
    }
    /// What is sorted in some 20 ms.
    static constexpr std::uint64_t kMostElements = std::uint64_t{1} << 24;

    Status allocate(std::uint32_t rows, std::uint32_t words, cudaStream_t stream);

    /// To be filled: a row for each of some words, 0 for no similarity.
    std::uint64_t* similarities() const { return keys_a_.data(); }

    /// Sorts the first rows, the most similar first and of equal ones the first words, and counts
    /// those above 0.
    Status sort(std::uint32_t rows, cudaStream_t stream);

    const std::uint64_t* sorted() const { return sorted_; }
    const std::uint32_t* words() const { return words_; }
    const std::uint32_t* counts() const { return counts_.data(); }

private:
    std::uint32_t row_words_ = 0;
    const std::uint64_t* sorted_ = nullptr;
    const std::uint32_t* words_ = nullptr;
    DeviceBuffer<std::uint64_t> keys_a_, keys_b_;
    DeviceBuffer<std::uint32_t> words_a_, words_b_, counts_;
    DeviceBuffer<std::uint64_t> begins_;
    DeviceBuffer<std::uint8_t> scratch_;
};

}  // namespace gputext::gpu
