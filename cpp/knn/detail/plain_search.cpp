#include <algorithm>

#include "cpp/base/stoppable.hpp"
#include "cpp/knn/detail/searches.hpp"

namespace gputext {
namespace {

/// A query among some of the classes.
class PlainTask {
public:
    PlainTask(KnnProblem& search, std::uint32_t query, Distances& distances)
        : search_(search), query_(query), distances_(distances) {
        distances_.set_query(query);
    }

    Status run(std::size_t begin, std::size_t end) {
        const Stop stop = search_.execution.stop();
        const std::size_t k = search_.nearest.k();
        const std::size_t look_every =
            std::max<std::size_t>(1, (kLookEvery / 4) / (search_.items.dimensions + 16));
        double limit = search_.nearest.limit(query_);
        std::size_t most = 2 * k + 1024;  // candidates
        for (std::size_t i = begin; i < end; ++i) {
            if (i % look_every == 0 && stop()) return Status::cancelled();
            search_.rescore(query_, static_cast<std::uint32_t>(i), limit, distances_, candidates_);
            if (candidates_.size() < most) continue;
            limit = keep_nearest(k, limit);
            // All of them may be as far as the k-th.
            most = std::max(most, 2 * candidates_.size());
        }
        search_.rescored += end - begin;
        return search_.nearest.add(query_, candidates_, stop);
    }

private:
    /// Leaves the k nearest and those as far as the k-th; returns its distance.
    double keep_nearest(std::size_t k, double limit) {
        const auto kth = candidates_.begin() + static_cast<std::ptrdiff_t>(k - 1);
        std::nth_element(candidates_.begin(), kth, candidates_.end());
        limit = std::min(limit, kth->distance);
        std::erase_if(candidates_, [limit](const Candidate& c) { return c.distance > limit; });
        return limit;
    }

    KnnProblem& search_;
    std::uint32_t query_;
    Distances& distances_;
    std::vector<Candidate> candidates_;
};

}  // namespace

Status search_plainly(KnnProblem& search) {
    const std::size_t classes = search.distinct.size(), queries = search.queries.rows;
    if (classes == 0 || queries == 0) return {};
    // Parts only where the queries alone are too few for all threads, and of a millisecond or more.
    const std::size_t threads = search.execution.threads();
    const std::size_t least = std::max<std::size_t>(1, kLookEvery / (search.items.dimensions + 16));
    const std::size_t parts = std::clamp<std::size_t>(
        std::min((4 * threads + queries - 1) / queries, classes / least), 1, classes);
    std::vector<Distances> distances(threads, search.distances());
    search.execution.begin_phase("computing distances", queries * parts);
    return search.execution.parallel_for(queries * parts, [&](std::size_t task, unsigned worker) {
        const std::size_t part = task % parts;
        return PlainTask(search, static_cast<std::uint32_t>(task / parts), distances[worker])
            .run(classes * part / parts, classes * (part + 1) / parts);
    });
}

}  // namespace gputext
