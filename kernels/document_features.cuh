// kernels/document_features.cuh - counts documents' characters and trigrams on a device
//
// An edit destroys at most one character and three trigrams of a document, so documents within
// distance k share max(|a|, |b|) - k characters and max(|a|, |b|) - 2 - 3k trigrams, counted as
// multisets. Hashing characters or trigrams into bins, and stopping a bin's count at its largest
// value with the rest kept aside, can only make that number look larger: no pair is lost.
// (Ukkonen 1992; Gravano et al. 2001.)

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cpp/execution.hpp"
#include "kernels/device_buffer.hpp"
#include "kernels/device_documents.hpp"

namespace gputext::device {

inline constexpr unsigned kCharacterBins = 256;
inline constexpr unsigned kTrigramBins = 4096;
/// The largest counts of a bin. What is above is excess.
inline constexpr std::uint16_t kMostCharacters = INT16_MAX;
inline constexpr std::uint8_t kMostTrigrams = UINT8_MAX;

/// The features of one document.
struct alignas(16) FeatureCounts {
    std::uint16_t characters[kCharacterBins];
    std::uint8_t trigrams[kTrigramBins];
    std::uint32_t character_excess;
    std::uint32_t trigram_excess;
    std::uint64_t padding;
};

/// Where a character is counted. Characters below 0x80 have a bin each; the others share the upper
/// half, where single-byte characters again have one each.
__device__ inline unsigned character_bin(std::uint32_t symbol) {
    return symbol < 256 ? symbol : 128 + (symbol * 0x9e3779b1u >> 25);
}

/// A block of columns is looked at together.
inline constexpr unsigned kColumnBlock = 256;
/// Characters are also counted in a few classes of bins, for a first and cheapest look at pairs.
inline constexpr unsigned kClassCount = 16;

/// Features of a range of documents, and their classes: class k of document c at
/// classes[k * stride + c].
class FeatureTile {
public:
    static constexpr std::size_t kDocumentBytes =
        sizeof(FeatureCounts) + kClassCount * sizeof(std::uint16_t) + 2 * sizeof(std::uint32_t);

    /// `which` are the documents, `wide` tells by document which of them are not narrow. Decodes
    /// as many of those at a time as `memory_limit` holds, or one. O(bytes).
    /// Errors: cancelled, out_of_memory, device_error.
    Status compute(const DeviceDocuments& documents, std::span<const std::uint32_t> which,
                   std::span<const std::uint8_t> wide, std::size_t memory_limit,
                   const Execution& execution, cudaStream_t stream);

    const FeatureCounts* counts() const { return counts_.data(); }
    const std::uint16_t* classes() const { return classes_.data(); }
    std::size_t stride() const { return stride_; }

private:
    DeviceBuffer<FeatureCounts> counts_;
    DeviceBuffer<std::uint16_t> classes_;
    std::size_t stride_ = 0;
};

}  // namespace gputext::device
