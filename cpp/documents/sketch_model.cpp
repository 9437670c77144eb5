#include "cpp/documents/sketch_model.hpp"

#include <algorithm>
#include <cmath>

#include "cpp/documents/detail/general_rates.hpp"
#include "cpp/documents/detail/letter_roots.hpp"
#include "cpp/documents/detail/sketch_parts.hpp"

namespace gputext {
namespace {

bool is_valid_part(const SketchPart& part) {
    return std::ranges::all_of(part.bins,
                               [&](std::uint16_t bin) { return bin < part.least.size(); });
}

/// Bins, and the ranges of their rates.
struct Bins {
    std::vector<std::uint16_t> of_cells;
    std::vector<RateRange> ranges;
};

/// From the means and standard deviations of cells, as if cells were independent of each other.
Bins general_bins(std::span<const CellRate> rates, std::size_t bins) {
    std::vector<double> weights;
    for (const CellRate& rate : rates) weights.push_back(rate.mean);
    Bins made{balanced_bins(weights, bins), {}};
    std::vector<double> means(bins), variances(bins);
    for (std::size_t cell = 0; cell < rates.size(); ++cell) {
        means[made.of_cells[cell]] += rates[cell].mean;
        const double deviation = rates[cell].deviation;
        variances[made.of_cells[cell]] += deviation * deviation;
    }
    for (std::size_t bin = 0; bin < bins; ++bin) {
        const double deviation = std::sqrt(variances[bin]);
        made.ranges.push_back(
            {std::max(0.0, means[bin] - 2 * deviation), means[bin] + 3 * deviation});
    }
    return made;
}

}  // namespace

bool SketchModel::is_valid() const {
    return is_valid_part(letters()) && is_valid_part(grams());
}

OwnedSketchModel general_sketch_model(std::size_t bins) {
    OwnedSketchModel model{{bins, false}, {}};
    model.numbers.reserve(SketchModel::size(model.shape));
    for (const CellRate& rate : kGeneralLetters)
        model.numbers.push_back(
            static_cast<std::uint16_t>(std::sqrt(rate.mean / double{kRateUnit}) * kRootUnit));
    const Bins letters = general_bins(kGeneralLetters, SketchShape::letter_bins);
    append_letters(letters.of_cells, letters.ranges, model.numbers);
    const Bins grams = general_bins(kGeneralGrams, bins);
    append_grams(grams.of_cells, grams.ranges, model.numbers);
    return model;
}

std::size_t nearest_model(std::span<const SketchModel> models,
                          std::span<const std::uint32_t> letters, std::uint32_t length) {
    if (models.size() == 1) return 0;
    LetterRoots roots;
    find_roots(letters, length, roots);
    std::size_t nearest = 0;
    std::uint32_t least = UINT32_MAX;
    for (std::size_t number = 0; number < models.size(); ++number) {
        const std::uint32_t distance = square_distance(roots, models[number].typical_roots());
        if (distance < least) least = distance, nearest = number;
    }
    return nearest;
}

}  // namespace gputext
