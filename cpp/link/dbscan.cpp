#include "cpp/link/dbscan.hpp"

#include "cpp/base/exception_status.hpp"
#include "cpp/base/stoppable.hpp"

namespace gputext {

Status DbscanRequest::pack(Packed& packed, Stop stop) const {
    packed.message.parameters = parameters;
    GPUTEXT_TRY(packed.files.add(items, packed.message.items, stop));
    packed.expected.rows = packed.message.items.rows;
    return {};
}

Result<std::uint64_t> DbscanAnswer::file_size() const {
    if (summary.rows != rows) return broken_reply(kOtherRows);
    return std::uint64_t{rows} * (sizeof(std::uint32_t) + sizeof(std::uint8_t));
}

Result<DbscanClusters> DbscanAnswer::read(Stop stop) const noexcept {
    return status_or_exception([&]() -> Result<DbscanClusters> {
        DbscanClusters answer;
        answer.count = summary.count;
        if (!copy_array(file, 0, rows, answer.clusters, stop) ||
            !copy_array(file, rows * sizeof(std::uint32_t), rows, answer.core, stop))
            return Status::cancelled();
        for (std::size_t row = 0; row < rows; ++row) {
            if (row % kLookEvery == 0 && stop()) return Status::cancelled();
            const bool noise = answer.clusters[row] == DbscanClusters::kNoise;
            if (!noise && answer.clusters[row] >= answer.count)
                return broken_reply("an item of no cluster");
            if (answer.core[row] > (noise ? 0 : 1))
                return broken_reply("an item that cannot be core");
        }
        return answer;
    });
}

}  // namespace gputext
