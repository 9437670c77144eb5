#include "cpp/documents/detail/sketch_levels.hpp"

#include <algorithm>

#include "cpp/documents/length_class.hpp"

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

}  // namespace gputext
