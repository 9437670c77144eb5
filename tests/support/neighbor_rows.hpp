// tests/support/neighbor_rows.hpp - answers with neighbors as rows, to be compared to the bit

#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "cpp/knn/knn.hpp"
#include "tests/support/plain_knn.hpp"

namespace gputext::testing {

/// An item and the bits of its distance, as 0.0 and -0.0 are equal numbers.
using NeighborRow = std::pair<std::uint32_t, std::uint64_t>;

inline std::vector<std::vector<NeighborRow>> rows_of(const Neighbors& neighbors) {
    std::vector<std::vector<NeighborRow>> rows(neighbors.begins.size() - 1);
    for (std::size_t q = 0; q < rows.size(); ++q)
        for (auto i = neighbors.begins[q]; i < neighbors.begins[q + 1]; ++i)
            rows[q].emplace_back(neighbors.items[i],
                                 std::bit_cast<std::uint64_t>(neighbors.distances[i]));
    return rows;
}

/// Neighbors of one query.
inline std::vector<NeighborRow> rows_of(const PlainNeighbors& neighbors) {
    std::vector<NeighborRow> rows;
    for (const auto& [item, distance] : neighbors)
        rows.emplace_back(item, std::bit_cast<std::uint64_t>(distance));
    return rows;
}

/// Counts the queries whose answer differs in any bit.
inline std::size_t differing(const Neighbors& found, const Neighbors& wanted) {
    if (found.begins.size() != wanted.begins.size()) return SIZE_MAX;
    const auto found_rows = rows_of(found), wanted_rows = rows_of(wanted);
    std::size_t count = 0;
    for (std::size_t q = 0; q < wanted_rows.size(); ++q) count += found_rows[q] != wanted_rows[q];
    return count;
}

}  // namespace gputext::testing
