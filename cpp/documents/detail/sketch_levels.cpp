#include "cpp/documents/detail/sketch_levels.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <queue>
#include <utility>

#include "cpp/documents/sketch_model.hpp"

namespace gputext {
namespace {

constexpr std::size_t kGroup = SketchShape::group;

/// The codes of a group. Vectorised.
[[gnu::always_inline]] inline void encode(const std::array<std::uint8_t, kGroup>& levels,
                                          std::uint8_t* __restrict units) {
    std::uint8_t codes[kGroup] = {};
    for (std::size_t level = 0; level < kLevelSteps.size(); ++level)
        for (std::size_t i = 0; i < kGroup; ++i)
            codes[i] = static_cast<std::uint8_t>(codes[i] + (levels[level] < units[i]));
    std::copy_n(codes, kGroup, units);
}

}  // namespace

LetterLevels::LetterLevels(const SketchPart& part, std::uint8_t length_class) {
    const std::uint64_t length = least_length_of(length_class);
    for (std::size_t bin = 0; bin < counts.size(); ++bin) {
        const std::uint64_t least = part.least[bin] * length / kRateUnit;
        const std::uint64_t step = part.steps[bin] * length;
        for (std::size_t code = 0; code < counts[bin].size(); ++code)
            // Of short documents the levels are the first counts that there are.
            counts[bin][code] = static_cast<std::uint32_t>(std::min<std::uint64_t>(
                UINT32_MAX,
                least + std::max<std::uint64_t>(code, kLevelSteps[code] * step / kRateUnit)));
    }
}

void LetterLevels::pack(std::span<const std::uint32_t> bins, std::uint8_t* sketch) const {
    const auto code_of = [&](std::size_t bin) {
        unsigned code = 0;
        for (const std::uint32_t count : counts[bin]) code += count < bins[bin];
        return code;
    };
    for (std::size_t i = 0; i < SketchShape::letters; ++i)
        sketch[i] = static_cast<std::uint8_t>(code_of(2 * i) | code_of(2 * i + 1) << 4);
}

GramLevels::GramLevels(const SketchPart& part, std::uint8_t length_class)
    : least(part.least.size()), levels(part.steps.size()), shifts(part.steps.size()) {
    const std::uint64_t length = least_length_of(length_class);
    for (std::size_t bin = 0; bin < least.size(); ++bin)
        least[bin] = static_cast<std::uint32_t>(part.least[bin] * length / kRateUnit);
    for (std::size_t group = 0; group < levels.size(); ++group) {
        const std::uint64_t step = part.steps[group] * length;
        unsigned shift = 0;
        while ((kLevelSteps.back() * step / kRateUnit) >> shift >= kMostUnits) ++shift;
        shifts[group] = static_cast<std::uint8_t>(shift);
        for (std::size_t code = 0; code < kLevelSteps.size(); ++code)
            // Of short documents the levels are the first counts that there are.
            levels[group][code] = static_cast<std::uint8_t>(
                std::max<std::uint64_t>(code, (kLevelSteps[code] * step / kRateUnit) >> shift));
        levels[group].back() = kMostUnits;
    }
}

[[gnu::optimize("O3")]] void GramLevels::units_of(std::span<const std::uint32_t> counts,
                                                  std::uint8_t* units) const {
    for (std::size_t group = 0; group < shifts.size(); ++group) {
        const unsigned shift = shifts[group];
        const std::uint32_t round = (std::uint32_t{1} << shift) - 1;  // counts are below 2^31
        const std::uint32_t* const above = &counts[group * kGroup];
        const std::uint32_t* const from = &least[group * kGroup];
        for (std::size_t i = 0; i < kGroup; ++i) {
            const std::uint32_t count = above[i] - std::min(above[i], from[i]);
            units[group * kGroup + i] = static_cast<std::uint8_t>(
                std::min<std::uint32_t>((count + round) >> shift, kMostUnits));
        }
    }
}

[[gnu::optimize("O3")]] void GramLevels::pack(std::span<std::uint8_t> units,
                                              std::uint8_t* sketch) const {
    for (std::size_t group = 0; group < levels.size(); ++group)
        encode(levels[group], &units[group * kGroup]);
    for (std::size_t group = 0; group < levels.size(); group += 2)
        for (std::size_t i = 0; i < kGroup; ++i)
            sketch[group / 2 * kGroup + i] = static_cast<std::uint8_t>(
                units[group * kGroup + i] | units[(group + 1) * kGroup + i] << 4);
}

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
