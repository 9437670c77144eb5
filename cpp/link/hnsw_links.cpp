#include "cpp/link/hnsw_links.hpp"

#include "cpp/base/exception_status.hpp"
#include "cpp/base/stoppable.hpp"
#include "cpp/hnsw/graph.hpp"

namespace gputext {

bool SubmitHnswLinks::consistent() const {
    constexpr std::uint64_t most_places = 1 << 16;
    return values.consistent() && !values.sparse && linked <= values.rows &&
           parameters.candidates >= 1 && parameters.places >= 1 &&
           parameters.places <= most_places && parameters.block_rows >= 1 &&
           linked * parameters.places <= kMostStored;
}

Status HnswLinksRequest::pack(Packed& packed, Stop stop) const {
    SubmitHnswLinks& message = packed.message;
    message.parameters = parameters;
    message.linked = linked;
    message.back = back;
    GPUTEXT_TRY(packed.files.add(values, message.values, stop));
    packed.expected.linked = linked;
    packed.expected.places = parameters.places;
    packed.expected.back = back;
    return {};
}

Result<std::uint64_t> HnswLinksAnswer::file_size() const {
    if (summary.linked != linked) return broken_reply(kOtherRows);
    return linked * places * (sizeof(std::uint32_t) + (back ? 0 : sizeof(double)));
}

Result<LayerLinks> HnswLinksAnswer::read(Stop stop) const noexcept {
    return status_or_exception([&]() -> Result<LayerLinks> {
        LayerLinks links;
        const std::uint64_t count = linked * places, distances = back ? 0 : count;
        if (!copy_array(file, 0, distances, links.distances, stop) ||
            !copy_array(file, distances * sizeof(double), count, links.rows, stop))
            return Status::cancelled();
        for (std::uint64_t i = 0; i < count; ++i) {
            if (i % kLookEvery == 0 && stop()) return Status::cancelled();
            if (links.rows[i] >= linked && links.rows[i] != kNoElement)
                return broken_reply("a link to no row");
        }
        return links;
    });
}

}  // namespace gputext
