// cpp/embeddings/detail/word_vectors.hpp - view of the vectors of a model's words

#pragma once

#include <cstddef>
#include <cstdint>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"

namespace gputext {

/// A view: whoever made it keeps the memory. One row of `dimensions` elements for each word.
struct WordVectors {
    const float* elements = nullptr;
    std::size_t words = 0;
    std::size_t dimensions = 0;

    const float* of(std::uint32_t word) const { return elements + word * dimensions; }
};

/// The longest vector that a model may have: sums over two vectors then stay far from infinity.
inline constexpr float kLongestVector = 0x1p40f;

/// The largest Euclidean norm, sqrt(lane_dot(v, v)), 0 where there are no words. Errors:
/// invalid_argument for an element that is no number, and for a norm above kLongestVector;
/// cancelled. O(elements).
Result<float> longest_vector(const WordVectors& vectors, Execution& execution);

}  // namespace gputext
