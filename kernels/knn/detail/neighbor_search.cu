#include "kernels/knn/detail/neighbor_search.hpp"

#include <algorithm>

namespace gputext::gpu {
namespace {

/// Pairs times dimensions of a launch: some 20 ms.
constexpr double kWorkOfLaunch = 1e11;
constexpr std::uint32_t kFirstRange = 1 << 22;  // items for which a sample tells enough

}  // namespace

Status NeighborSearch::search(const DirectFilterInput& input, Fp16Search& fp16, std::uint32_t begin,
                              std::uint32_t end, bool lists_are_empty, StreamTimer& timer,
                              std::uint64_t& escalated) {
    // With far more items than sampled ones, a gate would let too many pass.
    std::uint32_t next = begin;
    std::uint32_t step = kFirstRange;
    while (next < end) {
        const std::uint32_t last = end - next > step + step / 2 ? next + step : end;
        GPUTEXT_TRY(search_part(input, fp16, next, last, lists_are_empty && next == begin, timer,
                                escalated));
        next = last;
        step = std::min(4 * step, 1u << 30);
    }
    return {};
}

Status NeighborSearch::search_part(const DirectFilterInput& input, Fp16Search& fp16,
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

Status NeighborSearch::search_directly(const DirectFilterInput& input,
                                       const QuerySelection& selection, std::uint32_t begin,
                                       std::uint32_t end, bool lists_are_empty) {
    if (begin == end || selection.count == 0) return {};
    std::uint32_t next = begin;
    std::uint32_t step = end - begin;
    if (lists_are_empty) {
        // The first items are neighbors whatever their distances, which then bound the others'.
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

Status NeighborSearch::search_range(const DirectFilterInput& input, const QuerySelection& selection,
                                    std::uint32_t begin, std::uint32_t end) {
    const auto search = [&](const QuerySelection& some, std::uint32_t first, std::uint32_t last) {
        GPUTEXT_TRY(filter(input, some, first, last));
        return merge(input, some);
    };
    return fill_lists(lists_, selection, begin, end, taken_, stream_, search);
}

Status NeighborSearch::filter(const DirectFilterInput& input, const QuerySelection& selection,
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
            GPUTEXT_TRY(cuda_status(cudaStreamSynchronize(stream_), "filtering neighbors"));
        GPUTEXT_TRY(execution_.checkpoint(0));
    }
    return {};
}

Status NeighborSearch::merge(const DirectFilterInput& input, const QuerySelection& selection,
                             const float* score_widths, const MarkedItems& marked) {
    return lists_.merge({input.metric, input.queries, input.items, input.first_item, item_keys_,
                         score_widths, marked, input.first_query},
                        selection, rescored_);
}

}  // namespace gputext::gpu
