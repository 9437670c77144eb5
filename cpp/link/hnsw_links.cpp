#include "cpp/link/hnsw_links.hpp"

#include "cpp/base/exception_status.hpp"
#include "cpp/base/stoppable.hpp"
#include "cpp/hnsw/graph.hpp"

namespace gputext {

bool SubmitHnswLinks::consistent() const {
    constexpr std::uint64_t most_places = 1 << 16;
    constexpr std::uint32_t kMostCentroids = UINT16_MAX;
    return values.consistent() && !values.sparse && linked <= values.rows &&
           centroids.consistent() && !centroids.sparse && centroids.rows <= kMostCentroids &&
           (centroids.rows == 0 || (centroids.element == ElementType::float32 &&
                                    centroids.dimensions == values.dimensions)) &&
           parameters.candidates >= 1 && parameters.places >= 1 &&
           parameters.places <= most_places && parameters.block_rows >= 1 &&
           parameters.probing_rows >= 1 && linked * parameters.places <= kMostStored;
}

Status HnswLinksRequest::pack(Packed& packed, Stop stop) const {
    SubmitHnswLinks& message = packed.message;
    message.parameters = parameters;
    message.linked = linked;
    GPUTEXT_TRY(packed.files.add(values, message.values, stop));
    GPUTEXT_TRY(packed.files.add(VectorFiles{centroids, {}, -1}, message.centroids, stop));
    packed.expected.linked = linked;
    packed.expected.places = parameters.places;
    return {};
}

Result<std::uint64_t> HnswLinksAnswer::file_size() const {
    if (summary.linked != linked) return broken_reply(kOtherRows);
    return linked * places * sizeof(std::uint32_t);
}

Result<std::vector<std::uint32_t>> HnswLinksAnswer::read(Stop stop) const noexcept {
    return status_or_exception([&]() -> Result<std::vector<std::uint32_t>> {
        std::vector<std::uint32_t> neighbors;
        if (!copy_array(file, 0, linked * places, neighbors, stop)) return Status::cancelled();
        for (std::size_t i = 0; i < neighbors.size(); ++i) {
            if (i % kLookEvery == 0 && stop()) return Status::cancelled();
            if (neighbors[i] >= linked && neighbors[i] != kNoElement)
                return broken_reply("a link to no row");
        }
        return neighbors;
    });
}

}  // namespace gputext
