// cpp/knn/added_neighbors.hpp - an answer for items to which others were added

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "cpp/base/status.hpp"
#include "cpp/base/stop.hpp"
#include "cpp/knn/neighbors.hpp"

namespace gputext {

/// Leaves the k nearest neighbors of each query for which keeps(query, item) holds.
template <class Keeps>
void keep_nearest(std::size_t k, const Keeps& keeps, Neighbors& answer) {
    std::uint64_t kept = 0;
    for (std::size_t query = 0; query + 1 < answer.begins.size(); ++query) {
        const std::uint64_t begin = std::exchange(answer.begins[query], kept);
        const std::uint64_t end = answer.begins[query + 1];
        for (std::uint64_t i = begin; i < end && kept - answer.begins[query] < k; ++i) {
            if (!keeps(query, answer.items[i])) continue;
            answer.items[kept] = answer.items[i];
            answer.distances[kept++] = answer.distances[i];
        }
    }
    if (!answer.begins.empty()) answer.begins.back() = kept;
    answer.items.resize(kept);
    answer.distances.resize(kept);
}

/// Takes into an answer what was found for the same queries among items that were added, each at
/// its place in the order of all: before[n] of the others come before the n-th, whose number is
/// first + n in the answer. Keeps the k nearest. O(neighbors) time. Error: cancelled.
Status merge_added(const Neighbors& added, std::span<const std::uint32_t> before, std::size_t first,
                   std::size_t k, Stop stop, Neighbors& answer);

}  // namespace gputext
