// kernels/trie/detail/word_sort.hpp - sorts words on a device and drops repeated ones
//
// Words are sorted by seven bytes and how many of these they have (radix sort, eight passes). Only
// words that are equal so far and longer are sorted again, by their next seven bytes and by the
// group of such words that they belong to: each time fewer. After kOrderRounds of that the host
// sorts what is left, groups of words that begin with the same bytes.
//
// Source: Deshpande and Narayanan, "Can GPUs Sort Strings Efficiently?", HiPC 2013.

#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "cpp/base/execution.hpp"
#include "cpp/base/words.hpp"
#include "kernels/base/device_buffer.hpp"
#include "kernels/trie/detail/device_words.cuh"

namespace gputext::gpu {

inline constexpr unsigned kOrderRounds = 64;
inline constexpr std::size_t kMostOrderedWords = std::size_t{1} << 31;

/// Numbers of words, in the order of their bytes, each word once.
struct WordOrder {
    DeviceBuffer<std::uint32_t> words;  // with room for some more than `count`
    std::size_t count = 0;
};

/// Device memory that order_words() takes for a while, the order included.
std::size_t word_order_bytes(std::size_t words);

/// Sorts at most kMostOrderedWords words; `host_words` are their copy on the host. O(bytes up to
/// where words differ). Errors: cancelled, out_of_memory, device_error, device_lost.
Status order_words(const DeviceWords& words, const Words& host_words, cudaStream_t stream,
                   Execution& execution, WordOrder& order);

}  // namespace gputext::gpu
