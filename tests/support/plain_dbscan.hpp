// tests/support/plain_dbscan.hpp - reference implementation of cpp/knn/dbscan.hpp

#pragma once

#include <cstdint>
#include <vector>

#include "cpp/knn/dbscan.hpp"
#include "tests/support/plain_knn.hpp"

namespace gputext::testing {

/// Cluster after cluster grows from its first core row, by all pairs of rows.
inline DbscanClusters plain_dbscan(const DbscanParameters& parameters, const DoubleRows& rows) {
    const std::size_t n = rows.size();
    const KnnParameters knn{.k = KnnParameters::all_items,
                            .metric = parameters.metric,
                            .radius = parameters.epsilon};
    std::vector<PlainNeighbors> near(n);
    DbscanClusters answer;
    for (std::size_t i = 0; i < n; ++i) {
        near[i] = plain_neighbors(knn, rows[i], rows);
        answer.core.push_back(near[i].size() >= parameters.min_points ? 1 : 0);
    }
    answer.clusters.assign(n, DbscanClusters::kNoise);
    for (std::uint32_t first = 0; first < n; ++first) {
        if (answer.core[first] == 0 || answer.clusters[first] != DbscanClusters::kNoise) continue;
        const std::uint32_t cluster = answer.count++;
        answer.clusters[first] = cluster;
        for (std::vector<std::uint32_t> grown{first}; !grown.empty();) {
            const std::uint32_t row = grown.back();
            grown.pop_back();
            if (answer.core[row] == 0) continue;
            for (const auto& [neighbor, distance] : near[row]) {
                if (answer.clusters[neighbor] != DbscanClusters::kNoise) continue;
                answer.clusters[neighbor] = cluster;
                grown.push_back(neighbor);
            }
        }
    }
    return answer;
}

}  // namespace gputext::testing
