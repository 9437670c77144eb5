#include "cpp/bits/ones_order.hpp"

#include <algorithm>

#include "cpp/base/stoppable.hpp"
#include "cpp/bits/bit_distance.hpp"

namespace gputext {
namespace {

constexpr std::size_t kRowsOfStep = 4096;

}  // namespace

std::size_t OnesOrder::group_of(std::size_t ones) const {
    const auto fewer = [](const OnesGroup& group, std::size_t wanted) {
        return group.ones < wanted;
    };
    return static_cast<std::size_t>(
        std::lower_bound(groups.begin(), groups.end(), ones, fewer) - groups.begin());
}

Status order_by_ones(const Vectors& bits, std::span<const std::uint32_t> chosen, std::size_t tile,
                     Execution& execution, OnesOrder& order) {
    const Stop stop = execution.stop();
    std::vector<std::uint32_t> ones(chosen.size());
    const std::size_t steps = (chosen.size() + kRowsOfStep - 1) / kRowsOfStep;
    execution.begin_phase("counting ones", steps);
    GPUTEXT_TRY(execution.parallel_for(steps, [&](std::size_t step, unsigned) -> Status {
        const std::size_t end = std::min(chosen.size(), (step + 1) * kRowsOfStep);
        for (std::size_t i = step * kRowsOfStep; i < end; ++i) {
            if (i % (kLookEvery / 4096) == 0 && stop()) return Status::cancelled();
            ones[i] = static_cast<std::uint32_t>(count_ones(bits, chosen[i]));
        }
        return {};
    }));
    // A row may have as many ones as its words have bits, whoever has filled them.
    std::vector<std::uint32_t> next(8 * row_size(ElementType::bit, bits.dimensions) + 1);
    for (const std::uint32_t count : ones) ++next[count];
    order.groups.clear();
    std::uint32_t place = 0;
    for (std::uint32_t count = 0; count < next.size(); ++count) {
        const std::size_t rows = next[count];
        next[count] = place;
        if (rows == 0) continue;
        const std::uint32_t begin = place;
        place += static_cast<std::uint32_t>((rows + tile - 1) / tile * tile);
        order.groups.push_back({begin, place, count});
    }
    if (!stoppable_assign(order.numbers, place, kNoRow, stop)) return Status::cancelled();
    for (std::size_t i = 0; i < chosen.size(); ++i) {
        if (i % kLookEvery == 0 && stop()) return Status::cancelled();
        order.numbers[next[ones[i]]++] = chosen[i];
    }
    return {};
}

}  // namespace gputext
