#include "cpp/documents/detail/sketch_parts.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <queue>
#include <utility>

#include "cpp/documents/detail/sketch_levels.hpp"

namespace gputext {
namespace {

std::uint16_t rate_of(double value) {
    return static_cast<std::uint16_t>(std::clamp(value, 0.0, double{UINT16_MAX}));
}

std::uint16_t step_of(const RateRange& range) {
    return rate_of(std::ceil((range.most - range.least) / kLevelSteps.back()));
}

}  // namespace

std::vector<std::uint16_t> balanced_bins(std::span<const double> weights, std::size_t bins) {
    std::vector<std::size_t> order(weights.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, [&](auto a, auto b) { return weights[a] > weights[b]; });
    using Load = std::pair<double, std::uint16_t>;
    std::priority_queue<Load, std::vector<Load>, std::greater<>> loads;
    for (std::size_t bin = 0; bin < bins; ++bin) loads.emplace(0, static_cast<std::uint16_t>(bin));
    std::vector<std::uint16_t> result(weights.size());
    for (const std::size_t cell : order) {
        const auto [load, bin] = loads.top();
        loads.pop();
        result[cell] = bin;
        // Cells without weight are shared out, too.
        loads.emplace(load + weights[cell] + 1e-6, bin);
    }
    return result;
}

void append_letters(std::span<const std::uint16_t> bins_of_cells, std::span<const RateRange> ranges,
                    std::vector<std::uint16_t>& numbers) {
    numbers.insert(numbers.end(), bins_of_cells.begin(), bins_of_cells.end());
    for (const RateRange& range : ranges) numbers.push_back(rate_of(range.least));
    for (const RateRange& range : ranges) numbers.push_back(step_of(range));
}

void append_grams(std::span<const std::uint16_t> bins_of_cells, std::span<const RateRange> ranges,
                  std::vector<std::uint16_t>& numbers) {
    const std::size_t bins = ranges.size();
    std::vector<std::size_t> order(bins);
    std::iota(order.begin(), order.end(), 0);
    const auto width = [&](std::size_t bin) { return ranges[bin].most - ranges[bin].least; };
    std::ranges::stable_sort(order, [&](auto a, auto b) { return width(a) < width(b); });
    std::vector<std::uint16_t> place(bins);
    for (std::size_t i = 0; i < bins; ++i) place[order[i]] = static_cast<std::uint16_t>(i);
    for (const std::uint16_t bin : bins_of_cells) numbers.push_back(place[bin]);
    for (const std::size_t bin : order) numbers.push_back(rate_of(ranges[bin].least));
    for (std::size_t first = 0; first < bins; first += SketchShape::group)
        // Wide enough for most of them.
        numbers.push_back(step_of(ranges[order[first + SketchShape::group * 3 / 4]]));
}

}  // namespace gputext
