#include "cpp/documents/sketch_model.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <queue>
#include <utility>

#include "cpp/documents/detail/general_rates.hpp"
#include "cpp/documents/detail/sketch_counts.hpp"
#include "cpp/documents/detail/sketch_levels.hpp"

namespace gputext {
namespace {

constexpr std::size_t kMostBytes = 32768;   // learned of a document: counts fit into 16 bits
constexpr std::uint32_t kLeastLength = 32;  // of a document that is learned from
constexpr double kLeastPart = 0.02, kMostPart = 0.99;  // of the documents, below the levels' ends

/// The rates between which documents lie, of a bin.
struct Range {
    double least, most;
};

/// The bin of each cell: the heaviest cell that is left goes to the lightest bin (Graham 1969).
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

std::uint16_t rate_of(double value) {
    return static_cast<std::uint16_t>(std::clamp(value, 0.0, double{UINT16_MAX}));
}

/// Adds a part to the numbers of a model. Bins whose ranges are about as wide come into a group.
void append_part(std::span<const std::uint16_t> bins_of_cells, std::span<const Range> ranges,
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
    for (std::size_t first = 0; first < bins; first += SketchShape::group) {
        // Wide enough for most of them.
        const std::size_t typical = order[first + SketchShape::group * 3 / 4];
        numbers.push_back(rate_of(std::ceil(width(typical) / kLevelSteps.back())));
    }
}

/// From the means and standard deviations of cells, as if cells were independent of each other.
void append_general_part(std::span<const CellRate> rates, std::size_t bins,
                         std::vector<std::uint16_t>& numbers) {
    std::vector<double> weights;
    for (const CellRate& rate : rates) weights.push_back(rate.mean);
    const auto bins_of_cells = balanced_bins(weights, bins);
    std::vector<double> means(bins), variances(bins);
    for (std::size_t cell = 0; cell < rates.size(); ++cell) {
        means[bins_of_cells[cell]] += rates[cell].mean;
        const double deviation = rates[cell].deviation;
        variances[bins_of_cells[cell]] += deviation * deviation;
    }
    std::vector<Range> ranges;
    for (std::size_t bin = 0; bin < bins; ++bin) {
        const double deviation = std::sqrt(variances[bin]);
        ranges.push_back({std::max(0.0, means[bin] - 2 * deviation), means[bin] + 3 * deviation});
    }
    append_part(bins_of_cells, ranges, numbers);
}

/// A document's rates, of a count.
double rate(std::uint32_t count, std::uint32_t length) {
    return double{kRateUnit} * count / length;
}

/// `counts(document)` are those of the cells.
template <class Documents, class Counts>
void append_learned_part(const Documents& documents, Counts counts, std::size_t cells,
                         std::size_t bins, std::vector<std::uint16_t>& numbers) {
    std::vector<double> weights(cells);
    for (const auto& document : documents)
        for (std::size_t cell = 0; cell < cells; ++cell)
            weights[cell] += rate(counts(document)[cell], document.length);
    for (double& weight : weights) weight /= static_cast<double>(documents.size());
    const auto bins_of_cells = balanced_bins(weights, bins);

    std::vector<std::vector<float>> rates(bins);
    std::vector<std::uint32_t> sums(bins);
    for (const auto& document : documents) {
        std::ranges::fill(sums, 0);
        for (std::size_t cell = 0; cell < cells; ++cell)
            sums[bins_of_cells[cell]] += counts(document)[cell];
        for (std::size_t bin = 0; bin < bins; ++bin)
            rates[bin].push_back(static_cast<float>(rate(sums[bin], document.length)));
    }
    std::vector<Range> ranges;
    for (std::vector<float>& of_bin : rates) {
        const auto quantile = [&](double part) {
            const auto at = of_bin.begin() + static_cast<std::ptrdiff_t>(
                                                 part * static_cast<double>(of_bin.size() - 1));
            std::ranges::nth_element(of_bin, at);
            return double{*at};
        };
        const double least = quantile(kLeastPart);
        ranges.push_back({least, quantile(kMostPart)});
    }
    append_part(bins_of_cells, ranges, numbers);
}

bool is_valid_part(const SketchPart& part) {
    return std::ranges::all_of(part.bins,
                               [&](std::uint16_t bin) { return bin < part.least.size(); });
}

}  // namespace

bool SketchModel::is_valid() const {
    return is_valid_part(letters()) && is_valid_part(grams());
}

std::vector<std::uint16_t> general_sketch_model(SketchShape shape) {
    std::vector<std::uint16_t> numbers;
    numbers.reserve(SketchModel::size(shape));
    append_general_part(kGeneralLetters, SketchShape::letter_bins, numbers);
    append_general_part(kGeneralGrams, shape.bins, numbers);
    return numbers;
}

SketchModelLearner::SketchModelLearner() : counts_(std::make_unique<SketchCounts>()) {}
SketchModelLearner::~SketchModelLearner() = default;

void SketchModelLearner::add(Bytes document, const CharacterLengths& lengths, Stop stop) {
    if (!counts_->count(document.first(std::min(document.size(), kMostBytes)), lengths, stop) ||
        counts_->length() < kLeastLength)
        return;
    Document& added = documents_.emplace_back();
    added.length = counts_->length();
    std::ranges::copy(counts_->letters(), added.letters.begin());
    std::ranges::copy(counts_->grams(), added.grams.begin());
}

std::vector<std::uint16_t> SketchModelLearner::learn(SketchShape shape) const {
    std::vector<std::uint16_t> numbers;
    numbers.reserve(SketchModel::size(shape));
    append_learned_part(
        documents_, [](const Document& document) { return std::span(document.letters); },
        kLetterCells, SketchShape::letter_bins, numbers);
    append_learned_part(
        documents_, [](const Document& document) { return std::span(document.grams); }, kGramCells,
        shape.bins, numbers);
    return numbers;
}

}  // namespace gputext
