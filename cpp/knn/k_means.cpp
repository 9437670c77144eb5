#include "cpp/knn/k_means.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "cpp/base/memory_budget.hpp"
#include "cpp/base/stoppable.hpp"
#include "cpp/knn/detail/first_centroids.hpp"
#include "cpp/knn/detail/host_assignment.hpp"
#include "cpp/knn/detail/k_means_run.hpp"

namespace gputext {
namespace {

Status invalid(std::string message) {
    return {ErrorCode::invalid_argument, std::move(message)};
}

/// The items that are farthest from their centroids, in the order in which empty clusters take
/// them.
class FarthestItems {
public:
    FarthestItems(std::span<const double> distances, std::span<const std::uint32_t> clusters,
                  std::span<const std::int64_t> sizes)
        : distances_(distances),
          clusters_(clusters),
          sizes_(sizes),
          best_((distances.size() + block_items - 1) / block_items, unknown) {}

    /// The farthest item of a cluster of at least two; there is one where a cluster is empty.
    /// O(items) once, then O(block_items + items / block_items).
    Result<std::uint32_t> next(Stop stop) {
        std::uint32_t farthest = none;
        for (std::size_t block = 0; block < best_.size(); ++block) {
            if (best_[block] == unknown || (best_[block] != none && !may_leave(best_[block]))) {
                if (stop()) return Status::cancelled();
                best_[block] = best_of(block);
            }
            const std::uint32_t item = best_[block];
            if (item != none && (farthest == none || distances_[item] > distances_[farthest]))
                farthest = item;
        }
        return farthest;
    }
    /// After the item's cluster has become another one.
    void moved(std::uint32_t item) { best_[item / block_items] = unknown; }

private:
    static constexpr std::size_t block_items = 4096;
    static constexpr std::uint32_t unknown = UINT32_MAX, none = UINT32_MAX - 1;

    bool may_leave(std::uint32_t item) const { return sizes_[clusters_[item]] > 1; }

    std::uint32_t best_of(std::size_t block) const {
        std::uint32_t best = none;
        const std::size_t end = std::min(distances_.size(), (block + 1) * block_items);
        for (std::size_t i = block * block_items; i < end; ++i)
            if (may_leave(static_cast<std::uint32_t>(i)) &&
                (best == none || distances_[i] > distances_[best]))
                best = static_cast<std::uint32_t>(i);
        return best;
    }

    std::span<const double> distances_;
    std::span<const std::uint32_t> clusters_;
    std::span<const std::int64_t> sizes_;
    std::vector<std::uint32_t> best_;
};

class KMeansRun {
public:
    KMeansRun(const KMeansParameters& parameters, const Vectors& items, const ClusterMeans& means,
              ClusterAssignment& assignment, Execution& execution, KMeans& answer)
        : parameters_(parameters),
          items_(items),
          execution_(execution),
          part_(execution.threads(), execution),
          means_(means),
          elements_(parameters.metric, items),
          assignment_(assignment),
          answer_(answer) {}

    Status run() {
        answer_.centroids.resize(parameters_.k * items_.dimensions);
        answer_.dimensions = items_.dimensions;
        GPUTEXT_TRY(choose());
        execution_.begin_phase("assigning items", parameters_.iterations * assignment_.steps());
        while (answer_.iterations < parameters_.iterations && !answer_.converged)
            GPUTEXT_TRY(step());
        GPUTEXT_TRY(assignment_.fetch(part_));
        answer_.rescored = assignment_.rescored();
        return finish();
    }

private:
    /// Chooses the first centroids, and assigns all items to them.
    Status choose() {
        const std::size_t k = parameters_.k;
        execution_.begin_phase("choosing first centroids", k);
        CentroidDraws draws(parameters_.seed);
        FixedWeights weights(parameters_.metric, answer_.distances);
        std::vector<std::uint32_t> chosen;  // since the weights were fixed
        chosen.push_back(static_cast<std::uint32_t>(draws.below(items_.rows)));
        std::size_t centroids = 1, void_draws = 0;
        keep(0, chosen.back());
        for (;;) {
            const bool all = centroids == k;
            if (all || centroids == 1 || chosen.size() == kMostChosenAtOnce ||
                void_draws == kMostVoidDraws) {
                GPUTEXT_TRY(add(chosen, centroids - chosen.size()));
                if (all) return {};
                GPUTEXT_TRY(assignment_.fetch(part_));
                GPUTEXT_TRY(weights.fix(part_));
                if (weights.total() == 0) return too_few(centroids);
                chosen.clear();
                void_draws = 0;
            }
            if (execution_.stop_requested()) return Status::cancelled();
            const auto hit = weights.hit(draws.below(weights.total()));
            if (hit.above >= weights.weight(distance_by_now(hit.item, chosen))) {
                ++void_draws;
                continue;
            }
            chosen.push_back(static_cast<std::uint32_t>(hit.item));
            keep(centroids++, chosen.back());
        }
    }

    Status too_few(std::size_t distinct) const {
        const bool cosine = parameters_.metric == Metric::cosine;
        return invalid("k is " + std::to_string(parameters_.k) + ", but the items have only " +
                       std::to_string(distinct) +
                       (cosine ? " distinct direction" : " distinct vector") +
                       (distinct == 1 ? "" : "s"));
    }

    /// The distance to the nearest centroid so far, of which the last ones are items.
    double distance_by_now(std::size_t item, const std::vector<std::uint32_t>& chosen) {
        double least = answer_.distances[item];
        if (chosen.empty()) return least;
        Distances distances(parameters_.metric, items_, items_, parameters_.simd);
        distances.set_query(item);
        for (const std::uint32_t centroid : chosen) least = std::min(least, distances(centroid));
        return least;
    }

    /// Makes an item the cluster's centroid, until that has a mean.
    void keep(std::size_t cluster, std::uint32_t item) {
        execution_.advance(1);
        std::vector<double> row(items_.dimensions);
        elements_.copy(item, row.data());
        std::transform(row.begin(), row.end(), centroid(cluster),
                       [](double element) { return static_cast<float>(element); });
    }

    float* centroid(std::size_t cluster) {
        return answer_.centroids.data() + cluster * items_.dimensions;
    }

    /// Compares all items with some more centroids, which are items.
    Status add(const std::vector<std::uint32_t>& chosen, std::size_t first) {
        const std::size_t row_bytes = items_.dimensions * element_size(items_.type);
        std::vector<std::byte> rows(chosen.size() * row_bytes);
        for (std::size_t c = 0; c < chosen.size(); ++c)
            std::copy_n(items_.row_bytes(chosen[c]), row_bytes, rows.data() + c * row_bytes);
        Vectors centroids = items_;
        centroids.rows = chosen.size();
        centroids.elements = rows.data();
        return assignment_.add(centroids, static_cast<std::uint32_t>(first), part_);
    }

    Status step() {
        auto totals = assignment_.totals(part_);
        if (!totals.ok()) return totals.status();
        if (std::ranges::find(totals->sizes, 0) != totals->sizes.end()) {
            GPUTEXT_TRY(fill_empty_clusters(totals->sizes));
            totals = assignment_.totals(part_);
            if (!totals.ok()) return totals.status();
        }
        GPUTEXT_TRY(set_means(*totals));
        ++answer_.iterations;
        const Vectors centroids{ElementType::float32,
                                parameters_.k,
                                items_.dimensions,
                                answer_.centroids.data(),
                                {},
                                {}};
        const auto changed = assignment_.assign(centroids, execution_);
        if (!changed.ok()) return changed.status();
        answer_.converged = *changed == 0;
        return {};
    }

    Status fill_empty_clusters(std::span<const std::int64_t> totals) {
        GPUTEXT_TRY(assignment_.fetch(part_));
        std::vector<std::int64_t> sizes(totals.begin(), totals.end());
        FarthestItems farthest(answer_.distances, answer_.clusters, sizes);
        for (std::uint32_t c = 0; c < sizes.size(); ++c) {
            if (sizes[c] > 0) continue;
            const auto item = farthest.next(execution_.stop());
            if (!item.ok()) return item.status();
            --sizes[answer_.clusters[*item]];
            ++sizes[c];
            answer_.clusters[*item] = c;
            GPUTEXT_TRY(assignment_.move(*item, c));
            farthest.moved(*item);
        }
        return {};
    }

    Status set_means(const ClusterTotals& totals) {
        constexpr std::size_t step = 16;
        const std::size_t d = items_.dimensions;
        return part_.parallel_for(
            (parameters_.k + step - 1) / step, [&](std::size_t task, unsigned) -> Status {
                const std::size_t end = std::min(parameters_.k, (task + 1) * step);
                for (std::size_t c = task * step; c < end; ++c)
                    means_.mean(totals.sums.subspan(c * d, d), totals.sizes[c], centroid(c));
                return {};
            });
    }

    Status finish() {
        answer_.sizes.assign(parameters_.k, 0);
        for (std::size_t i = 0; i < items_.rows; ++i) {
            if (i % kLookEvery == 0 && execution_.stop_requested()) return Status::cancelled();
            ++answer_.sizes[answer_.clusters[i]];
            const double distance = answer_.distances[i];
            answer_.inertia +=
                parameters_.metric == Metric::cosine ? distance : distance * distance;
        }
        return {};
    }

    const KMeansParameters& parameters_;
    const Vectors& items_;
    Execution& execution_;
    Execution part_;  // for what does not count as progress
    const ClusterMeans& means_;
    MeanElements elements_;
    ClusterAssignment& assignment_;
    KMeans& answer_;
};

/// Errors for the first item that can have no cluster. O(items), for float64 O(elements).
Status check_items(Metric metric, const Vectors& items, Stop stop) {
    const std::size_t look_every = std::max<std::size_t>(1, kLookEvery / (items.dimensions + 16));
    for (std::size_t i = 0; i < items.rows; ++i) {
        if (i % look_every == 0 && stop()) return Status::cancelled();
        if (const char* why = why_no_cluster(metric, items, i))
            return invalid("row " + std::to_string(i + 1) + " of the items " + why);
    }
    return {};
}

}  // namespace

std::uint64_t k_means_bytes(const KMeansParameters& parameters, const Vectors& items,
                            unsigned threads) {
    constexpr std::uint64_t of_item =
        sizeof(std::uint32_t) + sizeof(double) + FixedWeights::bytes_of_item;
    constexpr std::uint64_t of_cluster = 128;
    return items.rows * of_item + parameters.k * (items.dimensions * sizeof(float) + of_cluster) +
           HostAssignment::bytes(parameters, items, threads);
}

Status check_k_means(const KMeansParameters& parameters, const Vectors& items) {
    if (parameters.metric != Metric::euclidean && parameters.metric != Metric::cosine)
        return invalid("k-means knows the metrics euclidean and cosine only");
    if (items.sparse()) return invalid("k-means takes dense vectors only");
    if (parameters.iterations == 0) return invalid("the number of iterations must be at least 1");
    if (parameters.k == 0) return invalid("k must be at least 1");
    if (parameters.k > items.rows)
        return invalid("k is " + std::to_string(parameters.k) + ", but there " +
                       (items.rows == 1 ? "is only 1 item"
                                        : "are only " + std::to_string(items.rows) + " items"));
    return {};
}

const char* why_no_cluster(Metric metric, const Vectors& items, std::size_t row) {
    if (metric == Metric::cosine)
        return zero_row(items, row) ? "is all zeros, which has no direction" : nullptr;
    if (items.type != ElementType::float64) return nullptr;
    constexpr double most = std::numeric_limits<float>::max();
    const std::span elements(reinterpret_cast<const double*>(items.row_bytes(row)),
                             items.dimensions);
    const auto beyond = [](double element) { return std::fabs(element) > most; };
    if (std::ranges::any_of(elements, beyond))
        return "has elements beyond the range of real, which centroids have";
    const auto zero = [](double element) { return element == 0; };
    const auto zero_as_real = [](double element) { return static_cast<float>(element) == 0; };
    return std::ranges::all_of(elements, zero_as_real) && !std::ranges::all_of(elements, zero)
               ? "has only elements that are 0 as real, the type of centroids"
               : nullptr;
}

Result<double> check_clustered(const KMeansParameters& parameters, const Vectors& items,
                               Execution& execution) {
    GPUTEXT_TRY(check_k_means(parameters, items));
    const auto largest = largest_magnitude(items, "item", execution);
    if (!largest.ok()) return largest.status();
    GPUTEXT_TRY(check_items(parameters.metric, items, execution.stop()));
    return *largest;
}

Status check_host_memory(const KMeansParameters& parameters, const Vectors& items,
                         unsigned threads) {
    const std::uint64_t bytes = k_means_bytes(parameters, items, threads);
    if (bytes <= parameters.memory_limit) return {};
    return over_memory_limit("k-means", bytes, parameters.memory_limit);
}

Status clear_clusters(std::size_t items, Stop stop, KMeans& answer) {
    answer = {};
    constexpr double infinity = std::numeric_limits<double>::infinity();
    return stoppable_assign(answer.clusters, items, ItemClusters::none, stop) &&
                   stoppable_assign(answer.distances, items, infinity, stop)
               ? Status()
               : Status::cancelled();
}

Status run_k_means(const KMeansParameters& parameters, const Vectors& items,
                   const ClusterMeans& means, ClusterAssignment& assignment, Execution& execution,
                   KMeans& answer) {
    return KMeansRun(parameters, items, means, assignment, execution, answer).run();
}

Result<KMeans> k_means(const KMeansParameters& parameters, const Vectors& items,
                       Execution& execution) {
    GPUTEXT_TRY(check_k_means(parameters, items));
    GPUTEXT_TRY(check_host_memory(parameters, items, execution.threads()));
    const auto largest = check_clustered(parameters, items, execution);
    if (!largest.ok()) return largest.status();
    const ClusterMeans means(parameters.metric, items, *largest);
    KMeans answer;
    GPUTEXT_TRY(clear_clusters(items.rows, execution.stop(), answer));
    HostAssignment assignment(parameters, items, *largest, means,
                              {answer.clusters, answer.distances}, execution.threads());
    GPUTEXT_TRY(run_k_means(parameters, items, means, assignment, execution, answer));
    return answer;
}

}  // namespace gputext
