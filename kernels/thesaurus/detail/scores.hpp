// kernels/thesaurus/detail/scores.hpp - sums of shared features with a tile of words, and the most
// similar of them
//
// A block of threads has the sums of one word and a whole tile in shared memory. They begin with
// the products of dense features (kernels/thesaurus/detail/byte_product.hpp) and have the others
// added from their lists; words with very many features have these divided among blocks, whose sums
// are added up before. What is above the word's gate, the similarity of the last of its nearest
// ones so far, is sorted with these. The first gate of a word is the k-th largest of what the
// threads have each, which is hardly below that of all. No other sum leaves the block.

#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "cpp/base/status.hpp"
#include "cpp/thesaurus/word_similarity.hpp"
#include "kernels/base/device_buffer.hpp"
#include "kernels/thesaurus/detail/feature_index.hpp"

namespace gputext::gpu {

/// The nearest words so far, the best first: a row of `top_k` for each of some words.
struct NearestWords {
    /// Where more neighbors are wanted, all similarities are kept.
    static constexpr std::uint32_t kMost = 1024;

    std::uint32_t first = 0;  // the word of row 0
    std::uint32_t top_k = 0;
    std::uint64_t* similarities = nullptr;  // bits of doubles
    std::uint32_t* words = nullptr;
    std::uint32_t* counts = nullptr;
    float* gates = nullptr;  // 0 until there are top_k
};

struct NearestWordsMemory {
    static std::uint64_t bytes_of_word(std::uint32_t top_k) {
        return std::uint64_t{12} * top_k + 8;
    }
    Status allocate(std::uint32_t words, std::uint32_t top_k, cudaStream_t stream);
    Status clear(std::uint32_t first, std::uint32_t count, cudaStream_t stream);

    DeviceBuffer<std::uint64_t> similarities;
    DeviceBuffer<std::uint32_t> words, counts;
    DeviceBuffer<float> gates;
    NearestWords view;
};

struct WordScoresJob {
    WordMeasure measure = WordMeasure::lin;
    bool wide = false;                 // sums of 64 bits; cosines have them always
    std::uint32_t first = 0, end = 0;  // words
    std::uint32_t tile = 0;            // beside which they are
    std::uint32_t tile_first = 0, tile_words = 0;
    /// Products of dense features, a row for each word from `dense_first` on; null for none. Of 32
    /// or 64 bits.
    const void* dense = nullptr;
    std::size_t dense_stride = 0;
    std::uint32_t dense_first = 0;
    /// Room for sums of words with very many features, and those on the host; null for none.
    void* divided_sums = nullptr;
    std::size_t divided_stride = 0;
    std::span<const WordPart> word_parts;
    NearestWords nearest;
    /// Unless null, where all similarities go instead: a row of `all_stride` for each word.
    std::uint64_t* all = nullptr;
    std::size_t all_stride = 0;
};

/// Words of a tile whose sums fit into the current device's shared memory, kWordTile at most.
std::uint32_t most_tile_words(bool wide);

Status score_words(const WordIndex& index, const WordScoresJob& job, cudaStream_t stream);

}  // namespace gputext::gpu
