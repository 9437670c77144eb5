#include "cpp/knn/k_means.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <optional>
#include <string>

#include "cpp/base/memory_budget.hpp"
#include "cpp/base/stoppable.hpp"
#include "cpp/knn/detail/cluster_sums.hpp"
#include "cpp/knn/detail/first_centroids.hpp"
#include "cpp/knn/detail/nearest_centroid.hpp"

namespace gputext {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Bytes of what a search finds for an item.
constexpr std::uint64_t kBytesOfFound =
    sizeof(std::uint64_t) + sizeof(std::uint32_t) + sizeof(double);

Status invalid(std::string message) {
    return {ErrorCode::invalid_argument, std::move(message)};
}

/// The items that are farthest from their centroids, in the order in which empty clusters take
/// them.
class FarthestItems {
public:
    FarthestItems(std::span<const double> distances, std::span<const std::uint32_t> clusters,
                  std::span<const std::uint64_t> sizes)
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
    std::span<const std::uint64_t> sizes_;
    std::vector<std::uint32_t> best_;
};

class KMeansRun {
public:
    KMeansRun(const KMeansParameters& parameters, const Vectors& items, double largest,
              const CentroidSearch* search, Execution& execution, KMeans& answer)
        : parameters_(parameters),
          items_(items),
          execution_(execution),
          part_(execution.threads(), execution),
          sums_(parameters.metric, items, largest, parameters.k, parameters.simd),
          elements_(parameters.metric, items),
          search_(search),
          answer_(answer) {
        if (search == nullptr)
            nearest_.emplace(parameters.metric, items, largest, parameters.simd,
                             execution.threads());
    }

    Status run() {
        const Stop stop = execution_.stop();
        if (!stoppable_assign(answer_.clusters, items_.rows, NearestCentroid::no_cluster, stop) ||
            !stoppable_assign(answer_.distances, items_.rows, kInfinity, stop))
            return Status::cancelled();
        answer_.centroids.resize(parameters_.k * items_.dimensions);
        answer_.dimensions = items_.dimensions;
        if (Status status = choose(); !status.ok()) return status;
        if (nearest_ && !begin_bounds()) return Status::cancelled();
        const std::size_t blocks = nearest_ ? blocks_of(nearest_->block_rows()) : 1;
        execution_.begin_phase("assigning items", parameters_.iterations * blocks);
        while (answer_.iterations < parameters_.iterations && !answer_.converged)
            if (Status status = step(); !status.ok()) return status;
        return finish();
    }

private:
    static constexpr std::uint32_t no_first = UINT32_MAX;

    std::size_t blocks_of(std::size_t rows) const { return (items_.rows + rows - 1) / rows; }

    NearestCentroid::Block block_of(std::size_t number, std::size_t rows) {
        const std::size_t begin = number * rows;
        return {begin, std::min(items_.rows, begin + rows), answer_.clusters.data() + begin,
                answer_.distances.data() + begin};
    }

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
                Status status = assign(chosen, centroids - chosen.size());
                if (status.ok() && !all) status = weights.fix(part_);
                if (!status.ok() || all) return status;
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
    Status assign(const std::vector<std::uint32_t>& chosen, std::size_t first) {
        const std::size_t row_bytes = items_.dimensions * element_size(items_.type);
        std::vector<std::byte> rows(chosen.size() * row_bytes);
        for (std::size_t c = 0; c < chosen.size(); ++c)
            std::copy_n(items_.row_bytes(chosen[c]), row_bytes, rows.data() + c * row_bytes);
        Vectors centroids = items_;
        centroids.rows = chosen.size();
        centroids.elements = rows.data();
        const auto number_of_first = static_cast<std::uint32_t>(first);
        if (!nearest_) return search_among(centroids, number_of_first);
        Status status = nearest_->set(centroids, number_of_first, part_);
        if (!status.ok()) return status;
        const std::size_t step = nearest_->block_rows();
        return part_.parallel_for(blocks_of(step), [&](std::size_t number, unsigned worker) {
            auto block = block_of(number, step);
            Status assigned = nearest_->assign(worker, block, part_.stop());
            add_rescored(block.rescored);
            return assigned;
        });
    }

    void add_rescored(std::uint64_t count) {
        std::atomic_ref(answer_.rescored).fetch_add(count, std::memory_order_relaxed);
    }

    Status step() {
        const auto before = answer_.centroids;
        Status status = sums_.set(answer_.clusters, part_);
        if (status.ok()) status = fill_empty_clusters();
        if (status.ok()) status = set_means();
        const Vectors centroids{ElementType::float32,
                                parameters_.k,
                                items_.dimensions,
                                answer_.centroids.data(),
                                {},
                                {}};
        if (!status.ok()) return status;
        ++answer_.iterations;
        if (!nearest_) {
            status = search_among(centroids, no_first);
            return status.ok() ? execution_.checkpoint() : status;
        }
        NearestCentroid::Shifts shifts;
        status = nearest_->set(centroids, 0, part_);
        if (status.ok()) status = set_shifts(before, shifts);
        return status.ok() ? move(shifts) : status;
    }

    /// Assigns all items by the search: to these centroids alone, or where they have a first
    /// number, beside those that the items belong to. Sets answer_.converged.
    Status search_among(const Vectors& centroids, std::uint32_t first) {
        const auto found =
            (*search_)({.k = 1, .metric = parameters_.metric, .simd = parameters_.simd}, items_,
                       centroids, part_);
        if (!found.ok()) return found.status();
        if (found->items.size() != items_.rows)
            return {ErrorCode::internal_error, "an item has no nearest centroid"};
        answer_.rescored += found->rescored;
        std::atomic<std::uint64_t> changed{0};
        constexpr std::size_t rows = std::size_t{1} << 16;
        Status status =
            part_.parallel_for(blocks_of(rows), [&](std::size_t number, unsigned) -> Status {
                std::uint64_t changed_here = 0;
                for (std::size_t i = number * rows; i < std::min(items_.rows, (number + 1) * rows);
                     ++i) {
                    std::uint32_t cluster = found->items[i];
                    if (first != no_first) {
                        if (found->distances[i] >= answer_.distances[i]) continue;
                        cluster += first;
                    }
                    answer_.distances[i] = found->distances[i];
                    changed_here += cluster != answer_.clusters[i];
                    answer_.clusters[i] = cluster;
                }
                changed += changed_here;
                return {};
            });
        answer_.converged = first == no_first && changed == 0;
        return status;
    }

    /// Returns false when stopped.
    bool begin_bounds() {
        const std::span some =
            std::span(answer_.distances).first(std::min<std::size_t>(4096, items_.rows));
        most_reach_ = nearest_->most_apart(*std::max_element(some.begin(), some.end())) / 64;
        return stoppable_assign(lower_, items_.rows, -1.0f, execution_.stop());
    }

    Status fill_empty_clusters() {
        std::vector<std::uint64_t> sizes(parameters_.k);
        for (std::size_t c = 0; c < sizes.size(); ++c) sizes[c] = sums_.size(c);
        if (std::find(sizes.begin(), sizes.end(), 0u) == sizes.end()) return {};
        FarthestItems farthest(answer_.distances, answer_.clusters, sizes);
        for (std::size_t c = 0; c < sizes.size(); ++c) {
            if (sizes[c] > 0) continue;
            const auto item = farthest.next(execution_.stop());
            if (!item.ok()) return item.status();
            --sizes[answer_.clusters[*item]];
            ++sizes[c];
            answer_.clusters[*item] = static_cast<std::uint32_t>(c);
            if (nearest_) lower_[*item] = -1;
            farthest.moved(*item);
        }
        return sums_.set(answer_.clusters, part_);
    }

    Status set_means() {
        constexpr std::size_t step = 16;
        return part_.parallel_for(
            (parameters_.k + step - 1) / step, [&](std::size_t task, unsigned) -> Status {
                const std::size_t end = std::min(parameters_.k, (task + 1) * step);
                for (std::size_t c = task * step; c < end; ++c) sums_.mean(c, centroid(c));
                return {};
            });
    }

    /// How far the centroids have moved.
    Status set_shifts(const std::vector<float>& before, NearestCentroid::Shifts& shifts) {
        Vectors from{ElementType::float32, parameters_.k, items_.dimensions, before.data(), {}, {}};
        Vectors to = from;
        to.elements = answer_.centroids.data();
        std::vector<double> shift(parameters_.k);
        constexpr std::size_t step = 64;
        Status status = part_.parallel_for(
            (parameters_.k + step - 1) / step, [&](std::size_t task, unsigned) -> Status {
                Distances distances(parameters_.metric, from, to, parameters_.simd);
                const std::size_t end = std::min(parameters_.k, (task + 1) * step);
                for (std::size_t c = task * step; c < end; ++c) {
                    distances.set_query(c);
                    shift[c] = nearest_->most_apart(distances(c));
                }
                return {};
            });
        for (std::uint32_t c = 0; c < parameters_.k; ++c) {
            if (shift[c] > shifts.largest) {
                shifts.second = shifts.largest;
                shifts.largest = shift[c];
                shifts.of_largest = c;
            } else {
                shifts.second = std::max(shifts.second, shift[c]);
            }
        }
        return status;
    }

    /// Assigns all items to the nearest centroids.
    Status move(const NearestCentroid::Shifts& shifts) {
        // The next shift is about as large as this one. Looking farther than needed costs less than
        // looking again, unless there are many to be seen.
        const double reach = std::min(1.5 * shifts.largest, most_reach_);
        std::atomic<std::uint64_t> changed{0}, searched{0}, passed{0};
        const std::size_t rows = nearest_->block_rows();
        Status status =
            execution_.parallel_for(blocks_of(rows), [&](std::size_t number, unsigned worker) {
                auto block = block_of(number, rows);
                Status moved = nearest_->move(worker, block, lower_.data() + block.begin, shifts,
                                              reach, execution_.stop());
                changed += block.changed;
                searched += block.searched;
                passed += block.passed;
                add_rescored(block.rescored);
                return moved;
            });
        if (!status.ok()) return status;
        answer_.converged = changed == 0;
        if (passed > 4 * searched) most_reach_ = reach / 2;
        if (passed < 3 * searched) most_reach_ = 2 * reach;
        return {};
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
    Execution part_;                          // for what does not count as progress
    std::optional<NearestCentroid> nearest_;  // unless there is a search
    ClusterSums sums_;
    MeanElements elements_;
    std::vector<float> lower_;  // by item, see NearestCentroid
    double most_reach_ = 0;
    const CentroidSearch* search_;
    KMeans& answer_;
};

/// Errors for the first item without direction, or with elements that no centroid can have.
Status check_items(const KMeansParameters& parameters, const Vectors& items, double largest,
                   Stop stop) {
    constexpr double most = std::numeric_limits<float>::max();
    if (parameters.metric != Metric::cosine && largest <= most) return {};
    std::vector<double> row(items.dimensions);
    const std::size_t look_every = std::max<std::size_t>(1, kLookEvery / (items.dimensions + 16));
    for (std::size_t i = 0; i < items.rows; ++i) {
        if (i % look_every == 0 && stop()) return Status::cancelled();
        if (parameters.metric == Metric::cosine) {
            if (zero_row(items, i))
                return invalid("row " + std::to_string(i + 1) +
                               " of the items is all zeros, which has no direction");
            continue;
        }
        copy_elements(items, items.begin(i), row.size(), row.data());
        for (const double element : row)
            if (std::fabs(element) > most)
                return invalid(
                    "row " + std::to_string(i + 1) +
                    " of the items has elements beyond the range of real, which centroids have");
    }
    return {};
}

Result<KMeans> k_means_by(const KMeansParameters& parameters, const Vectors& items,
                          const CentroidSearch* search, Execution& execution) {
    if (Status status = check_k_means(parameters, items); !status.ok()) return status;
    std::uint64_t bytes = k_means_bytes(parameters, items, execution.threads());
    if (search != nullptr) bytes += items.rows * kBytesOfFound;
    if (bytes > parameters.memory_limit)
        return over_memory_limit("k-means", bytes, parameters.memory_limit);
    const auto largest = largest_magnitude(items, "item", execution);
    if (!largest.ok()) return largest.status();
    Status status = check_items(parameters, items, *largest, execution.stop());
    if (!status.ok()) return status;
    KMeans answer;
    status = KMeansRun(parameters, items, *largest, search, execution, answer).run();
    if (!status.ok()) return status;
    return answer;
}

}  // namespace

std::uint64_t k_means_bytes(const KMeansParameters& parameters, const Vectors& items,
                            unsigned threads) {
    const std::uint64_t of_item = sizeof(std::uint32_t) + sizeof(double) + sizeof(float) +
                                  ClusterSums::bytes_of_item + FixedWeights::bytes_of_item;
    const std::uint64_t of_element =
        2 * sizeof(float) + NearestCentroid::bytes_of_element + ClusterSums::bytes_of_element;
    const std::uint64_t of_thread = NearestCentroid::bytes_of_thread(items.dimensions) +
                                    ClusterSums::bytes_of_thread(items.dimensions);
    constexpr std::uint64_t of_cluster = 128;
    return items.rows * of_item + parameters.k * (items.dimensions * of_element + of_cluster) +
           threads * of_thread;
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

Result<KMeans> k_means(const KMeansParameters& parameters, const Vectors& items,
                       Execution& execution) {
    return k_means_by(parameters, items, nullptr, execution);
}

Result<KMeans> k_means(const KMeansParameters& parameters, const Vectors& items,
                       const CentroidSearch& search, Execution& execution) {
    return k_means_by(parameters, items, &search, execution);
}

}  // namespace gputext
