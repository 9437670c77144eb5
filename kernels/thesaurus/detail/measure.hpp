// kernels/thesaurus/detail/measure.hpp - similarity measures of cpp/thesaurus/word_similarity.hpp
// for host and device
//
// What two words share is one integer: the sum of a[f] + b[f], of a[f] * b[f], or of 1, over the
// features that both have. A word alone is another: the sum of a[f], of a[f]^2, or of 1.

#pragma once

#include <cmath>
#include <cstdint>

#include "cpp/base/host_device.hpp"
#include "cpp/thesaurus/word_similarity.hpp"

namespace gputext::gpu {

/// Score from the sum that two words share, above 0, and each word's own sum.
template <WordMeasure Measure>
GPUTEXT_HOST_DEVICE inline double exact_similarity(std::uint64_t shared, std::uint64_t a,
                                                   std::uint64_t b) {
    if constexpr (Measure == WordMeasure::lin)
        return static_cast<double>(shared) / static_cast<double>(a + b);
    if constexpr (Measure == WordMeasure::jaccard)
        return static_cast<double>(shared) / static_cast<double>(a + b - shared);
    return static_cast<double>(shared) / std::sqrt(static_cast<double>(a) * static_cast<double>(b));
}

/// What of a word rough_sum() is made of.
template <WordMeasure Measure>
GPUTEXT_HOST_DEVICE inline float rough_part(std::uint64_t word) {
    if constexpr (Measure == WordMeasure::cosine)
        return static_cast<float>(std::sqrt(static_cast<double>(word)));
    return static_cast<float>(word);
}

/// What a rough_sum() is multiplied with for what two words have to share, about, for a similarity
/// of `gate`: never more than that if the gate is 2^-16 of itself too low.
template <WordMeasure Measure>
GPUTEXT_HOST_DEVICE inline float rough_factor(float gate) {
    if constexpr (Measure == WordMeasure::jaccard) return gate / (1 + gate);
    return gate;
}
template <WordMeasure Measure>
GPUTEXT_HOST_DEVICE inline float rough_sum(float a, float b) {
    // For a word without features the product is not 0 either.
    if constexpr (Measure == WordMeasure::cosine) return a * b > 1 ? a * b : 1;
    return a + b;
}

/// A gate for words that are as similar as that, or more.
GPUTEXT_HOST_DEVICE inline float gate_of(double similarity) {
    return static_cast<float>(similarity * (1 - 0x1p-16));
}

}  // namespace gputext::gpu
