#include "kernels/knn/detail/search.hpp"

#include <algorithm>

#include "kernels/base/launch.hpp"
#include "kernels/knn/fill_lists.hpp"

namespace gputext::gpu {
namespace {

/// Pairs times dimensions of a launch: some 20 ms.
constexpr double kWorkOfLaunch = 1e11;

}  // namespace

Status NeighbourSearch::search(const DirectFilterInput& input, Fp16Search& fp16,
                               std::uint32_t begin, std::uint32_t end, bool lists_are_empty,
                               StreamTimer& timer, std::uint64_t& escalated) {
    const QuerySelection all{nullptr, input.queries.rows};
    const bool open = lists_.shape().open;
    DeviceBuffer<std::uint32_t> failed;
    GPUTEXT_TRY(failed.allocate(all.count, stream_));
    timer.begin();
    GPUTEXT_TRY(fp16.filter(lists_, begin, end, lists_are_empty && !open, execution_));
    GPUTEXT_TRY(merge(input, all, open ? nullptr : fp16.widths(), fp16.marked()));
    GPUTEXT_TRY(fp16.prove(lists_));
    timer.end();
    std::uint32_t count = 0;
    GPUTEXT_TRY(lists_.take_failed(all, fp16.gates(), fp16.proven(), failed.data(), count));
    if (open) GPUTEXT_TRY(taken_());
    if (count == 0) return {};
    escalated += count;
    timer.begin();
    GPUTEXT_TRY(
        search_directly(input, {failed.data(), count}, begin, end, lists_are_empty && !open));
    timer.end();
    return {};
}

Status NeighbourSearch::search_directly(const DirectFilterInput& input,
                                        const QuerySelection& selection, std::uint32_t begin,
                                        std::uint32_t end, bool lists_are_empty) {
    if (begin == end || selection.count == 0) return {};
    std::uint32_t next = begin;
    std::uint32_t step = end - begin;
    if (lists_are_empty) {
        // The first items are neighbours whatever their distances, which then bound the others'.
        step = std::min(step, lists_.shape().capacity);
        next += step;
        GPUTEXT_TRY(add_all_items(selection, begin, next, lists_.view(), stream_));
        GPUTEXT_TRY(merge(input, selection));
    }
    // Twice as many items each time: about k of them are nearer than the items kept.
    while (next < end) {
        step = end - next > step && step < end / 2 ? 2 * step : end - next;
        const std::uint32_t last = end - next > step ? next + step : end;
        GPUTEXT_TRY(search_range(input, selection, next, last));
        next = last;
    }
    return {};
}

Status NeighbourSearch::search_range(const DirectFilterInput& input,
                                     const QuerySelection& selection, std::uint32_t begin,
                                     std::uint32_t end) {
    const auto search = [&](const QuerySelection& some, std::uint32_t first, std::uint32_t last) {
        GPUTEXT_TRY(filter(input, some, first, last));
        return merge(input, some);
    };
    return fill_lists(lists_, selection, begin, end, taken_, stream_, search);
}

Status NeighbourSearch::filter(const DirectFilterInput& input, const QuerySelection& selection,
                               std::uint32_t begin, std::uint32_t end) {
    const double work_of_item =
        static_cast<double>(selection.count) * (input.queries.dimensions + 8.0);
    const auto most =
        static_cast<std::uint32_t>(std::clamp(kWorkOfLaunch / work_of_item, 64.0, 1e9));
    for (std::uint32_t next = begin; next < end;) {
        const std::uint32_t last = end - next > most ? next + most : end;
        GPUTEXT_TRY(run_direct_filter(input, selection, next, last, lists_.view(), stream_));
        next = last;
        // A queue of long launches could not be stopped.
        if (next < end)
            GPUTEXT_TRY(cuda_status(cudaStreamSynchronize(stream_), "filtering neighbours"));
        GPUTEXT_TRY(execution_.checkpoint(0));
    }
    return {};
}

Status NeighbourSearch::merge(const DirectFilterInput& input, const QuerySelection& selection,
                              const float* score_widths, const MarkedItems& marked) {
    return lists_.merge({input.metric, input.queries, input.items, input.first_item, item_keys_,
                         score_widths, marked},
                        selection, rescored_);
}

}  // namespace gputext::gpu
