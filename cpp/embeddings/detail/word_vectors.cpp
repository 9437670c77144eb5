#include "cpp/embeddings/detail/word_vectors.hpp"

#include <algorithm>
#include <cmath>

#include "cpp/base/lane_sums.hpp"

namespace gputext {
namespace {

/// Elements that a thread reads between two looks.
constexpr std::size_t kElementsOfStep = std::size_t{1} << 20;

}  // namespace

Result<float> longest_vector(const WordVectors& vectors, Execution& execution) {
    const LaneSum dot = lane_dot_by(best_simd());
    const std::size_t step =
        std::max<std::size_t>(1, kElementsOfStep / std::max<std::size_t>(1, vectors.dimensions));
    float longest = 0;
    execution.begin_phase("measuring vectors", vectors.words);
    for (std::size_t begin = 0; begin < vectors.words; begin += step) {
        const std::size_t end = std::min(begin + step, vectors.words);
        for (std::size_t word = begin; word < end; ++word) {
            const float* const v = vectors.elements + word * vectors.dimensions;
            const float square = dot(v, v, vectors.dimensions);
            // False for NaN as well.
            if (!(square <= kLongestVector * kLongestVector))
                return Status(ErrorCode::invalid_argument,
                              "a vector of the model is longer than 2^40, or has an element that "
                              "is no number",
                              "Multiply the vectors by a small number.");
            longest = std::max(longest, std::sqrt(square));
        }
        GPUTEXT_TRY(execution.checkpoint(end - begin));
    }
    return longest;
}

}  // namespace gputext
