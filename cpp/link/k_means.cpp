#include "cpp/link/k_means.hpp"

#include <algorithm>
#include <cmath>

#include "cpp/base/exception_status.hpp"

namespace gputext {

Status KMeansRequest::pack(Packed& packed, Stop stop) const {
    SubmitKMeans& message = packed.message;
    message.parameters = parameters;
    GPUTEXT_TRY(packed.files.add(items, message.items, stop));
    packed.expected.rows = message.items.rows;
    packed.expected.k = parameters.k;
    packed.expected.dimensions = message.items.dimensions;
    return {};
}

Result<std::uint64_t> KMeansAnswer::file_size() const {
    if (summary.rows != rows) return broken_reply(kOtherRows);
    if (summary.k != k || summary.dimensions != dimensions)
        return broken_reply("centroids of another number");
    return std::uint64_t{rows} * (sizeof(double) + sizeof(std::uint32_t)) +
           k * (sizeof(std::uint64_t) + dimensions * sizeof(float));
}

Result<KMeans> KMeansAnswer::read(Stop stop) const noexcept {
    return status_or_exception([&]() -> Result<KMeans> {
        KMeans answer;
        answer.dimensions = dimensions;
        answer.iterations = summary.iterations;
        answer.converged = summary.converged;
        answer.inertia = summary.inertia;
        answer.rescored = summary.rescored;
        std::size_t begin = 0;
        const auto copy = [&](auto& to, std::size_t count) {
            const bool all = copy_array(file, begin, count, to, stop);
            begin += count * sizeof(to[0]);
            return all;
        };
        if (!copy(answer.distances, rows) || !copy(answer.sizes, k) ||
            !copy(answer.clusters, rows) || !copy(answer.centroids, k * dimensions))
            return Status::cancelled();
        if (std::any_of(answer.clusters.begin(), answer.clusters.end(),
                        [&](std::uint32_t cluster) { return cluster >= k; }))
            return broken_reply("an item of no cluster");
        if (!std::all_of(answer.centroids.begin(), answer.centroids.end(),
                         [](float x) { return std::isfinite(x); }))
            return broken_reply("centroids that are not finite");
        return answer;
    });
}

}  // namespace gputext
