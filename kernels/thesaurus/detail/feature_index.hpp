// kernels/thesaurus/detail/feature_index.hpp - inverted index of features: for each feature the
// words that have it
//
// Words are cut into tiles, whose sums fit into a processor's shared memory. Features of very many
// words are dense columns for the tensor cores (kernels/thesaurus/detail/byte_product.hpp); of each
// other one, which more than one word has, there is a list of those words for each tile, and what
// it weighs there.
//
// A dense column costs the same whatever it holds, 4 * words^2 operations of which one H200 does
// about 1.8e15 a second; a list costs the square of its length, at about 9e11 a second. So the cut
// is at four and a half per cent of the words.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/thesaurus/word_similarity.hpp"
#include "kernels/base/device_buffer.hpp"
#include "kernels/base/device_work.hpp"
#include "kernels/thesaurus/detail/byte_product.hpp"
#include "kernels/thesaurus/detail/feature_rows.hpp"

namespace gputext::gpu {

/// Words of a tile at most; half of it where sums have 64 bits.
inline constexpr std::uint32_t kWordTile = 24576;
/// Elements that may be read behind the last of WordIndex::rough.
inline constexpr std::uint32_t kRoughBehind = 4096;

/// The most frequent words have very many features: these are divided among blocks of threads.
struct WordPart {
    static constexpr std::uint32_t kFeatures = 2048;

    std::uint32_t word, rank;  // among such words, ascending alike
    std::uint64_t begin, end;  // of its features
};
inline constexpr std::uint32_t kUndivided = UINT32_MAX;
inline constexpr std::uint32_t kMostDivided = 1024;

struct WordIndexPlan {
    WordMeasure measure = WordMeasure::lin;
    std::vector<std::uint32_t> cuts;  // where tiles begin, and the end
    std::uint32_t padded = 0;         // rows of a tile, a multiple of kProductTile
    double dense_share = 0.045;       // of the words, from which on a feature is a dense column
    std::uint32_t most_divided = 0;   // words whose features may be divided
    std::uint64_t divided_from = 0;   // from which on they are; 0: by itself
    std::uint32_t most_dense = 0;     // dense columns, a multiple of 128; 0: none

    std::uint32_t tiles() const { return static_cast<std::uint32_t>(cuts.size() - 1); }
};

/// A view. Digits and marks are matrices in blocks (kernels/thesaurus/detail/byte_product.hpp),
/// tile by tile.
struct WordIndex {
    FeatureRows features;
    std::uint64_t columns = 0;
    std::uint32_t tiles = 0, padded = 0;
    const uint2* lists = nullptr;               // tile * columns + column: its postings' begin, end
    const std::uint32_t* postings = nullptr;    // word of the tile | weight << 16
    const unsigned long long* words = nullptr;  // what each is alone (measure.hpp)
    const float* rough = nullptr;               // rough_part() of it
    const WordPart* word_parts = nullptr;
    const std::uint32_t* divided_ranks = nullptr;  // of words, or kUndivided
    std::uint32_t dense = 0;                       // dense columns
    std::uint32_t column_blocks = 0;
    const std::uint8_t* upper = nullptr;
    const std::uint8_t* lower = nullptr;
    const std::uint8_t* marks = nullptr;
};

/// For those who measure and who plan.
struct WordIndexFacts {
    double dense_work = 0, cold_work = 0;  // sums of squares of the words that have a feature
    std::uint64_t cold_postings = 0;
    std::uint64_t largest = 0;  // of what words are alone
};

class WordIndexMemory {
public:
    /// While it is made, and later on.
    struct Bytes {
        std::uint64_t making, kept;
    };
    static Bytes bytes(const FeatureRows& features, std::uint32_t tiles, std::uint32_t padded,
                       std::uint32_t dense, WordMeasure measure);

    /// What each word is alone, and the largest of it. Waits for the stream.
    Status measure_words(const FeatureRows& features, WordMeasure measure, cudaStream_t stream);
    std::uint64_t largest() const { return facts_.largest; }

    /// After measure_words(). Waits for the stream. Errors: out_of_memory, device_error.
    Status build(const FeatureRows& features, const WordIndexPlan& plan, Execution& execution,
                 cudaStream_t stream);

    const WordIndex& view() const { return view_; }
    const WordIndexFacts& facts() const { return facts_; }
    /// The parts of divided words, ascending, and how many words those are.
    std::span<const WordPart> word_parts() const { return word_parts_; }
    std::uint32_t divided() const { return word_parts_.empty() ? 0 : word_parts_.back().rank + 1; }

private:
    Status sort(const FeatureRows& features, const WordIndexPlan& plan, Execution& execution,
                cudaStream_t stream);
    Status fill(const WordIndexPlan& plan, cudaStream_t stream);
    Status divide(const FeatureRows& features, const WordIndexPlan& plan, cudaStream_t stream);

    DeviceBuffer<uint2> lists_;
    DeviceBuffer<std::uint32_t> postings_, dense_ranks_, cuts_;
    DeviceBuffer<unsigned long long> words_;
    DeviceBuffer<float> rough_;
    DeviceBuffer<std::uint8_t> upper_, lower_, marks_;
    DeviceBuffer<WordPart> parts_;
    DeviceBuffer<std::uint32_t> divided_ranks_;
    std::vector<WordPart> word_parts_;
    WordIndex view_;
    WordIndexFacts facts_;
};

}  // namespace gputext::gpu
