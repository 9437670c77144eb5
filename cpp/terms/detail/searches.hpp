// cpp/terms/detail/searches.hpp - what the searches of cpp/terms/knn.cpp share

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/knn/distinct_rows.hpp"
#include "cpp/knn/nearest_lists.hpp"
#include "cpp/terms/detail/matrix.hpp"
#include "cpp/terms/knn.hpp"

namespace gputext {

/// What is searched. Whoever made it keeps what it points to.
struct TermKnnProblem {
    const TermKnnParameters& parameters;
    const Vectors& queries;
    const Vectors& items;
    const TermMatrix& query_weights;
    const TermMatrix& item_weights;
    const RowKeys& keys;
    NearestLists& nearest;
    Execution& execution;
    std::atomic<std::uint64_t> rescored{0};
};

/// Filters with an inverted index of the classes' first items, in as many parts as the memory limit
/// needs. Adds classes to search.nearest. Error: cancelled.
Status search_texts_indexed(TermKnnProblem& search, const DistinctRows& distinct);

}  // namespace gputext
