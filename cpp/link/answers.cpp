#include "cpp/link/answers.hpp"

#include <cstring>

#include "cpp/base/exception_status.hpp"
#include "cpp/base/stoppable.hpp"
#include "cpp/link/input_files.hpp"

namespace gputext {

Result<std::uint64_t> KnnAnswer::file_size() const {
    if (summary.queries != queries) return broken_reply(kOtherRows);
    const auto layout = neighbors_layout(summary.queries, summary.neighbors);
    if (!layout) return broken_reply(kImpossibleSize);
    return layout->size;
}

Result<Neighbors> KnnAnswer::read(Stop stop) const noexcept {
    return status_or_exception([&]() -> Result<Neighbors> {
        auto answer =
            unpack_neighbors(file.bytes(), summary.queries, items, summary.neighbors, stop);
        if (!answer.ok()) return broken_reply(answer.status());
        (*answer).rescored = summary.rescored;
        (*answer).escalated = summary.escalated;
        return answer;
    });
}

std::optional<NeighborsLayout> neighbors_layout(std::uint32_t queries, std::uint64_t neighbors) {
    if (neighbors > kMostStored) return std::nullopt;
    NeighborsLayout layout{};
    layout.distances_begin = (std::uint64_t{queries} + 1) * sizeof(std::uint64_t);
    layout.items_begin = layout.distances_begin + neighbors * sizeof(double);
    layout.size = layout.items_begin + neighbors * sizeof(std::uint32_t);
    return layout;
}

Result<Neighbors> unpack_neighbors(std::span<const std::uint8_t> file, std::uint32_t queries,
                                     std::uint32_t items, std::uint64_t neighbors, Stop stop) {
    const auto layout = neighbors_layout(queries, neighbors);
    if (!layout || layout->size != file.size()) return broken("neighbors in a wrong size");
    Neighbors answer;
    const auto copy = [&](auto& to, std::uint64_t begin, std::uint64_t count) {
        if (!stoppable_assign(to, count, {}, stop)) return false;
        if (count > 0) std::memcpy(to.data(), file.data() + begin, count * sizeof to[0]);
        return true;
    };
    if (!copy(answer.begins, 0, queries + std::uint64_t{1}) ||
        !copy(answer.distances, layout->distances_begin, neighbors) ||
        !copy(answer.items, layout->items_begin, neighbors))
        return Status::cancelled();
    GPUTEXT_TRY(check_row_begins(answer.begins, neighbors, stop));
    for (std::uint64_t i = 0; i < neighbors; ++i) {
        if (i % kLookEvery == 0 && stop()) return Status::cancelled();
        if (answer.items[i] >= items) return broken("a neighbor that is no item");
    }
    return answer;
}

Result<std::uint64_t> ScoresAnswer::file_size() const {
    if (summary.rows != rows) return broken_reply(kOtherRows);
    return std::uint64_t{rows} * sizeof(double);
}

Result<std::vector<double>> ScoresAnswer::read(Stop stop) const noexcept {
    return status_or_exception([&]() -> Result<std::vector<double>> {
        std::vector<double> scores;
        if (!copy_array(file, 0, rows, scores, stop)) return Status::cancelled();
        return scores;
    });
}

}  // namespace gputext
