#include "kernels/knn/list_download.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "kernels/base/launch.hpp"

namespace gputext::gpu {

Status append_kept(NeighbourLists& lists, std::uint32_t queries, MemoryBudget& budget,
                   Neighbours& answer) {
    try {
        std::vector<std::uint64_t> begins;
        std::vector<std::uint32_t> items;
        std::vector<double> distances;
        GPUTEXT_TRY(lists.download(queries, budget, begins, items, distances));
        if (answer.begins.size() == 1) {  // there are no earlier queries
            answer.begins = std::move(begins);
            answer.items = std::move(items);
            answer.distances = std::move(distances);
            return {};
        }
        const std::uint64_t before = answer.items.size();
        answer.items.insert(answer.items.end(), items.begin(), items.end());
        answer.distances.insert(answer.distances.end(), distances.begin(), distances.end());
        for (std::size_t q = 1; q < begins.size(); ++q) answer.begins.push_back(before + begins[q]);
    } catch (const std::bad_alloc&) {
        return Status::out_of_memory();
    }
    return {};
}

Status DownloadedLists::take(NeighbourLists& lists, std::uint32_t queries, MemoryBudget& budget) {
    try {
        Piece& piece = pieces_.emplace_back();
        GPUTEXT_TRY(lists.download(queries, budget, piece.begins, piece.items, piece.distances));
    } catch (const std::bad_alloc&) {
        return Status::out_of_memory();
    }
    if (pieces_.back().items.empty()) pieces_.pop_back();
    return lists.forget_kept(queries);
}

Status DownloadedLists::append_to(Neighbours& answer, std::size_t queries, MemoryBudget& budget,
                                  Execution& execution) {
    try {
        using Neighbour = std::pair<double, std::uint32_t>;
        std::size_t bytes = 0;
        for (const Piece& piece : pieces_) bytes += piece.items.size() * sizeof(Neighbour);
        GPUTEXT_TRY(budget.take(bytes, "the neighbours"));
        std::vector<std::vector<Neighbour>> sorted(queries);
        GPUTEXT_TRY(execution.parallel_for(queries, [&](std::size_t q, unsigned) {
            for (const Piece& piece : pieces_)
                for (auto i = piece.begins[q]; i < piece.begins[q + 1]; ++i)
                    sorted[q].emplace_back(piece.distances[i], piece.items[i]);
            if (pieces_.size() > 1) std::sort(sorted[q].begin(), sorted[q].end());
            return Status();
        }));
        pieces_.clear();
        for (const auto& list : sorted) {
            for (const auto& [distance, item] : list) {
                answer.items.push_back(item);
                answer.distances.push_back(distance);
            }
            answer.begins.push_back(answer.items.size());
        }
        budget.give_back(bytes);
    } catch (const std::bad_alloc&) {
        return Status::out_of_memory();
    }
    return {};
}

}  // namespace gputext::gpu
