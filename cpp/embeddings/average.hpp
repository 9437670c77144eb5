// cpp/embeddings/average.hpp - the mean of models that were trained apart, word by word
//
// As replicas are averaged within a training (word2vec.hpp): models that began with the same
// vectors and were trained on parts of the texts become one.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"

namespace gputext {

/// Rows of several models: of each word those of the models that have it.
struct AveragedRows {
    std::uint32_t words = 0;
    std::size_t dimensions = 0;
    std::span<const std::uint32_t> row_words;  // below `words`
    /// What a row counts; a word whose rows all weigh 0 has their plain mean. None: all the same.
    std::span<const std::uint64_t> weights;
};

/// The mean of each word's vectors, words * dimensions numbers. `vectors` has `dimensions` finite
/// numbers for each row. Each number is computed in double precision from the rows' in ascending
/// order, and rounded once, so that the order of the rows does not matter. O(rows * dimensions *
/// log(models)) time, on the execution's threads. Errors: cancelled; memory_limit.
Status average_rows(const AveragedRows& rows, std::span<const float> vectors,
                    std::size_t memory_limit, Execution& execution, std::vector<float>& means);

}  // namespace gputext
