// kernels/knn/fill_lists.hpp - searches again, in halves, where lists were too short for what was
// found

#pragma once

#include <functional>

#include "kernels/knn/neighbour_lists.hpp"

namespace gputext::gpu {

/// Calls search(selection, begin, end), which adds what it finds of items [begin, end) to lists and
/// keeps the nearest. For queries whose list overflowed each half of the items is searched alone.
/// `taken` is called whenever open lists hold items that the caller must take away. Errors: those
/// of both functions, out_of_memory, device_error.
template <class Search>
Status fill_lists(NeighbourLists& lists, const QuerySelection& selection, std::uint32_t begin,
                  std::uint32_t end, const std::function<Status()>& taken, cudaStream_t stream,
                  const Search& search) {
    GPUTEXT_TRY(search(selection, begin, end));
    DeviceBuffer<std::uint32_t> failed;
    std::uint32_t count = 0;
    // As many as there is room for never overflow.
    if (end - begin > lists.shape().room()) {
        GPUTEXT_TRY(failed.allocate(selection.count, stream));
        GPUTEXT_TRY(lists.take_failed(selection, nullptr, nullptr, failed.data(), count));
    }
    if (lists.shape().open) GPUTEXT_TRY(taken());
    if (count == 0) return {};
    const QuerySelection again{failed.data(), count};
    const std::uint32_t middle = begin + (end - begin) / 2;
    GPUTEXT_TRY(fill_lists(lists, again, begin, middle, taken, stream, search));
    return fill_lists(lists, again, middle, end, taken, stream, search);
}

}  // namespace gputext::gpu
