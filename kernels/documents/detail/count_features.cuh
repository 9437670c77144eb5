// kernels/documents/detail/count_features.cuh - computes and compares the features of
// cpp/documents/detail/count_filter.hpp on a device

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/documents/detail/count_filter.hpp"
#include "kernels/base/device_buffer.hpp"
#include "kernels/documents/detail/device_documents.hpp"

namespace gputext::gpu {

/// The features of one document, as in cpp/. But a bin of characters counts up to
/// `most_characters`, and what is beyond that counts as excess.
struct alignas(16) FeatureCounts {
    static constexpr std::uint16_t most_characters = INT16_MAX;

    std::uint16_t characters[DocumentFeatures::character_bins];
    std::uint8_t trigrams[DocumentFeatures::trigram_bins];
    std::uint32_t character_excess;
    std::uint32_t trigram_excess;
    std::uint64_t padding;
};

/// Where a character is counted.
__device__ inline unsigned character_bin(std::uint32_t symbol) {
    return symbol < 256 ? symbol : 128 + (symbol * 0x9e3779b1u >> 25);
}

/// A block of columns is looked at together.
inline constexpr unsigned kColumnBlock = 256;
inline constexpr unsigned kClassCount = CharacterClasses::classes;

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

}  // namespace gputext::gpu
