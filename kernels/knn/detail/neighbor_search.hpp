// kernels/knn/detail/neighbor_search.hpp - finds the items of a batch that are near, and keeps them
// in lists

#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <functional>
#include <utility>

#include "cpp/base/execution.hpp"
#include "kernels/base/stream_event.hpp"
#include "kernels/knn/detail/direct_filter.hpp"
#include "kernels/knn/detail/fp16_search.hpp"
#include "kernels/knn/neighbor_lists.hpp"

namespace gputext::gpu {

/// Lists of the k nearest of so many items, where k is at most kMostShortK.
inline constexpr std::uint32_t kMostShortK = 1024;
inline NeighborLists::Shape short_lists(std::uint32_t k, std::size_t items) {
    if (k <= 128) return {k, items <= 1 << 17 ? 1024u : 2048u, false, false};
    return {k, NeighborLists::kShort, false, false};
}

/// Brings the lists of a tile of queries up to date with a batch of items, all on the device.
class NeighborSearch {
public:
    /// `item_keys` of all items, or null. `taken` is called whenever open lists hold items that
    /// the caller must take away.
    NeighborSearch(NeighborLists& lists, const std::uint32_t* item_keys,
                   unsigned long long* rescored, std::function<Status()> taken,
                   Execution& execution, cudaStream_t stream)
        : lists_(lists),
          item_keys_(item_keys),
          rescored_(rescored),
          taken_(std::move(taken)),
          execution_(execution),
          stream_(stream) {}

    /// By the filter in half precision, which was given the same queries and items, the items
    /// [begin, end) of the batch, and by differences where that fails; counts the queries for which
    /// it did. `timer` measures what the device does. `lists_are_empty`: nothing was searched
    /// before; then at least Fp16Search::kLeastItems items.
    Status search(const DirectFilterInput& input, Fp16Search& fp16, std::uint32_t begin,
                  std::uint32_t end, bool lists_are_empty, StreamTimer& timer,
                  std::uint64_t& escalated);

    /// By differences in double precision, the items [begin, end) of the batch: for all queries, or
    /// those that a first filter failed for. `lists_are_empty`: nothing was searched before.
    /// Errors: cancelled, out_of_memory, device_error.
    Status search_directly(const DirectFilterInput& input, const QuerySelection& selection,
                           std::uint32_t begin, std::uint32_t end, bool lists_are_empty);

private:
    Status search_part(const DirectFilterInput& input, Fp16Search& fp16, std::uint32_t begin,
                       std::uint32_t end, bool lists_are_empty, StreamTimer& timer,
                       std::uint64_t& escalated);
    Status search_range(const DirectFilterInput& input, const QuerySelection& selection,
                        std::uint32_t begin, std::uint32_t end);
    Status filter(const DirectFilterInput& input, const QuerySelection& selection,
                  std::uint32_t begin, std::uint32_t end);
    Status merge(const DirectFilterInput& input, const QuerySelection& selection,
                 const float* score_widths = nullptr, const MarkedItems& marked = {});

    NeighborLists& lists_;
    const std::uint32_t* item_keys_;
    unsigned long long* rescored_;
    std::function<Status()> taken_;
    Execution& execution_;
    cudaStream_t stream_;
};

}  // namespace gputext::gpu
