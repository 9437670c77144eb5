#include "cpp/knn/detail/host_assignment.hpp"

#include <algorithm>
#include <atomic>

#include "cpp/base/stoppable.hpp"

namespace gputext {

HostAssignment::HostAssignment(const KMeansParameters& parameters, const Vectors& items,
                               double largest, const ClusterMeans& means, ItemClusters clusters,
                               unsigned threads)
    : metric_(parameters.metric),
      simd_(parameters.simd),
      items_(items),
      clusters_(clusters),
      nearest_(parameters.metric, items, largest, parameters.simd, threads),
      sums_(parameters.metric, items, means, parameters.k, parameters.simd) {}

std::uint64_t HostAssignment::bytes(const KMeansParameters& parameters, const Vectors& items,
                                    unsigned threads) {
    const std::uint64_t of_item = sizeof(float) + ClusterSums::bytes_of_item;
    const std::uint64_t of_element =
        sizeof(float) + NearestCentroid::bytes_of_element + ClusterSums::bytes_of_element;
    const std::uint64_t of_thread = NearestCentroid::bytes_of_thread(items.dimensions) +
                                    ClusterSums::bytes_of_thread(items.dimensions);
    return items.rows * of_item + parameters.k * items.dimensions * of_element +
           threads * of_thread;
}

std::size_t HostAssignment::blocks() const {
    const std::size_t rows = nearest_.block_rows();
    return (items_.rows + rows - 1) / rows;
}

NearestCentroid::Block HostAssignment::block(std::size_t number) {
    const std::size_t begin = number * nearest_.block_rows();
    return {begin, std::min(items_.rows, begin + nearest_.block_rows()),
            clusters_.clusters.data() + begin, clusters_.distances.data() + begin};
}

Status HostAssignment::add(const Vectors& centroids, std::uint32_t first, Execution& execution) {
    GPUTEXT_TRY(nearest_.set(centroids, first, execution));
    return execution.parallel_for(blocks(), [&](std::size_t number, unsigned worker) {
        auto some = block(number);
        Status status = nearest_.assign(worker, some, execution.stop());
        rescored_ += some.rescored;
        return status;
    });
}

Status HostAssignment::move(std::uint32_t item, std::uint32_t) {
    if (!lower_.empty()) lower_[item] = -1;
    return {};
}

Result<ClusterTotals> HostAssignment::totals(Execution& execution) {
    GPUTEXT_TRY(sums_.set(clusters_.clusters, execution));
    return ClusterTotals{sums_.sums(), sums_.sizes()};
}

Status HostAssignment::begin_bounds(Stop stop) {
    const auto some =
        clusters_.distances.first(std::min<std::size_t>(4096, clusters_.distances.size()));
    most_reach_ = nearest_.most_apart(*std::ranges::max_element(some)) / 64;
    return stoppable_assign(lower_, items_.rows, -1.0f, stop) ? Status() : Status::cancelled();
}

/// How far the centroids have moved since the last call of assign().
Status HostAssignment::set_shifts(const Vectors& centroids, NearestCentroid::Shifts& shifts,
                                  Execution& execution) const {
    Vectors before = centroids;
    before.elements = centroids_.data();
    std::vector<double> shift(centroids.rows);
    constexpr std::size_t step = 64;
    GPUTEXT_TRY(execution.parallel_for(
        (shift.size() + step - 1) / step, [&](std::size_t task, unsigned) -> Status {
            Distances distances(metric_, before, centroids, simd_);
            const std::size_t end = std::min(shift.size(), (task + 1) * step);
            for (std::size_t c = task * step; c < end; ++c) {
                distances.set_query(c);
                shift[c] = nearest_.most_apart(distances(c));
            }
            return {};
        }));
    for (std::uint32_t c = 0; c < shift.size(); ++c) {
        if (shift[c] > shifts.largest) {
            shifts.second = shifts.largest;
            shifts.largest = shift[c];
            shifts.of_largest = c;
        } else {
            shifts.second = std::max(shifts.second, shift[c]);
        }
    }
    return {};
}

Result<std::uint64_t> HostAssignment::assign(const Vectors& centroids, Execution& execution) {
    Execution part(execution.threads(), execution);  // for what does not count as progress
    NearestCentroid::Shifts shifts;
    const bool is_first = lower_.empty();  // nothing is known that shifts could change
    if (is_first)
        GPUTEXT_TRY(begin_bounds(execution.stop()));
    else
        GPUTEXT_TRY(set_shifts(centroids, shifts, part));
    const auto* elements = static_cast<const float*>(centroids.elements);
    centroids_.assign(elements, elements + centroids.rows * centroids.dimensions);
    GPUTEXT_TRY(nearest_.set(centroids, 0, part));

    // The next shift is about as large as this one. Looking farther than needed costs less than
    // looking again, unless there are many to be seen.
    const double reach = is_first ? most_reach_ : std::min(1.5 * shifts.largest, most_reach_);
    std::atomic<std::uint64_t> changed{0}, searched{0}, passed{0};
    GPUTEXT_TRY(execution.parallel_for(blocks(), [&](std::size_t number, unsigned worker) {
        auto some = block(number);
        Status status = nearest_.move(worker, some, lower_.data() + some.begin, shifts, reach,
                                      execution.stop());
        changed += some.changed;
        searched += some.searched;
        passed += some.passed;
        rescored_ += some.rescored;
        return status;
    }));
    if (passed > 4 * searched) most_reach_ = reach / 2;
    if (passed < 3 * searched) most_reach_ = 2 * reach;
    return changed.load();
}

}  // namespace gputext
