// kernels/knn/list_download.hpp - copies lists of neighbours from the device to the answer, in
// pieces

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/memory_budget.hpp"
#include "cpp/knn/knn.hpp"
#include "kernels/knn/neighbour_lists.hpp"

namespace gputext::gpu {

/// What the lists of a tile of queries keep, behind the answer for earlier queries. Takes
/// kBytesOfNeighbour each from the budget. Waits for the stream.
Status append_kept(NeighbourLists& lists, std::uint32_t queries, MemoryBudget& budget,
                   Neighbours& answer);

/// What open lists of a tile of queries held at several times, on the host.
class DownloadedLists {
public:
    /// Takes what they hold, and kBytesOfNeighbour each from the budget; empties them. Waits for
    /// the stream.
    Status take(NeighbourLists& lists, std::uint32_t queries, MemoryBudget& budget);

    /// All that was taken, in order, behind the answer for earlier queries; nothing is left. Takes
    /// 16 bytes for each neighbour from the budget while they are sorted.
    Status append_to(Neighbours& answer, std::size_t queries, MemoryBudget& budget,
                     Execution& execution);

private:
    /// As Neighbours are packed.
    struct Piece {
        std::vector<std::uint64_t> begins;
        std::vector<std::uint32_t> items;
        std::vector<double> distances;
    };

    std::vector<Piece> pieces_;
};

}  // namespace gputext::gpu
