#include "cpp/knn/group_numbers.hpp"

#include <algorithm>

#include "cpp/base/large_pages.hpp"

namespace gputext {
namespace {

constexpr std::size_t kRowsOfStep = std::size_t{1} << 16;

}  // namespace

Status number_groups(std::span<const std::uint32_t> rows, std::span<const std::uint64_t> begins,
                     std::size_t count, Execution& execution, std::vector<std::uint32_t>& numbers) {
    if (!assign_pages(numbers, count, kNoKey, execution.stop())) return Status::cancelled();
    const std::size_t steps = (rows.size() + kRowsOfStep - 1) / kRowsOfStep;
    execution.begin_phase("numbering groups", steps);
    return execution.parallel_for(steps, [&](std::size_t step, unsigned) {
        const std::size_t end = std::min(rows.size(), (step + 1) * kRowsOfStep);
        std::size_t at = step * kRowsOfStep;
        auto group =
            static_cast<std::size_t>(std::ranges::upper_bound(begins, at) - begins.begin() - 1);
        for (; at < end; ++at) {
            while (begins[group + 1] <= at) ++group;
            numbers[rows[at]] = static_cast<std::uint32_t>(group);
        }
        return Status();
    });
}

Status GroupNumbers::set(const KeyGroups& groups, std::size_t queries, std::size_t items,
                         Execution& execution) {
    GPUTEXT_TRY(number_groups(groups.queries, groups.query_begins, queries, execution, queries_));
    return number_groups(groups.items, groups.item_begins, items, execution, items_);
}

}  // namespace gputext
