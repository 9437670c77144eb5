#include "cpp/knn/probed_clusters.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "cpp/knn/distinct_rows.hpp"
#include "cpp/knn/k_means.hpp"
#include "cpp/knn/knn.hpp"

namespace gputext {

Result<std::vector<float>> ProbedClusters::centroids_of(const Vectors& rows, Simd simd,
                                                        Execution& execution) {
    std::vector<std::uint32_t> sampled(std::min(rows.rows, sample));
    for (std::size_t i = 0; i < sampled.size(); ++i)
        sampled[i] = static_cast<std::uint32_t>(i * rows.rows / sampled.size());
    GatheredRows gathered;
    GPUTEXT_TRY(gathered.set(rows, sampled, execution));
    DistinctRows distinct;
    GPUTEXT_TRY(distinct.set(gathered.vectors(), execution));
    KMeansParameters parameters;
    parameters.k = std::min(clusters, distinct.size());
    parameters.iterations = 8;
    parameters.simd = std::min(simd, Simd::avx512);
    auto found = k_means(parameters, gathered.vectors(), execution);
    // To k-means rows are equal that differ in the signs of zeros alone.
    if (found.status().code() == ErrorCode::invalid_argument) return std::vector<float>();
    if (!found.ok()) return found.status();
    return std::move(found->centroids);
}

Status ProbedClusters::set(const Vectors& centroids, const Vectors& rows, Simd simd,
                           Execution& execution) {
    constexpr std::size_t together = 65536;
    centroids_ = centroids;
    std::vector<std::uint16_t> own;
    own.reserve(rows.rows);
    for (std::size_t begin = 0; begin < rows.rows; begin += together) {
        const RowRange some(rows, begin, std::min(rows.rows, begin + together));
        const auto found = nearest(some.vectors(), 1, simd, execution);
        if (!found.ok()) return found.status();
        own.insert(own.end(), found->begin(), found->end());
    }
    set(centroids.rows, std::move(own));
    return {};
}

void ProbedClusters::set(std::size_t count, std::vector<std::uint16_t> own) {
    own_ = std::move(own);
    begins_.assign(count + 1, 0);
    for (const std::uint16_t cluster : own_) ++begins_[cluster + 1];
    std::partial_sum(begins_.begin(), begins_.end(), begins_.begin());
    std::vector<std::uint32_t> ends(begins_.begin(), begins_.end() - 1);
    members_.resize(own_.size());
    for (std::uint32_t row = 0; row < own_.size(); ++row) members_[ends[own_[row]]++] = row;
}

std::span<const std::uint32_t> ProbedClusters::members_before(std::size_t cluster,
                                                              std::size_t row) const {
    const auto all =
        std::span(members_).subspan(begins_[cluster], begins_[cluster + 1] - begins_[cluster]);
    return {all.begin(), std::lower_bound(all.begin(), all.end(), row)};
}

Result<std::vector<std::uint16_t>> ProbedClusters::nearest(const Vectors& rows, std::size_t count,
                                                           Simd simd, Execution& execution) const {
    KnnParameters parameters;
    parameters.k = count;
    parameters.metric = Metric::euclidean;
    parameters.simd = simd;
    const auto found = knn(parameters, rows, centroids_, {}, execution);
    if (!found.ok()) return found.status();
    return std::vector<std::uint16_t>(found->items.begin(), found->items.end());
}

}  // namespace gputext
