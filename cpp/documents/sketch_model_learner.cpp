#include "cpp/documents/sketch_model_learner.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "cpp/documents/detail/document_kinds.hpp"
#include "cpp/documents/detail/sketch_counts.hpp"
#include "cpp/documents/detail/sketch_levels.hpp"
#include "cpp/documents/sketch_model.hpp"

namespace gputext {
namespace {

constexpr std::size_t kMostBytes = 32768;   // learned of a document: counts fit into 16 bits
constexpr std::uint32_t kLeastLength = 32;  // of a document that is learned from
constexpr double kLeastPart = 0.02, kMostPart = 0.99;  // of the documents, below the levels' ends

/// Sketches are judged by the pairs of documents that they leave at a threshold somewhat above the
/// usual 0.05: few documents have to tell what sketches leave of many.
constexpr double kThreshold = 0.06;
constexpr std::size_t kMostQueries = 100;     // that are compared with all documents of a kind
constexpr std::size_t kLeastDocuments = 100;  // of a kind that is split

/// The part of all bins that is divided among several kinds; the rest makes up for pages that are
/// not full.
constexpr double kBinsShared = 15.0 / 16;

using Documents = std::span<const LearnedDocument>;

/// Counts of a part of the documents' sketches.
std::vector<std::uint32_t> sums_in_bins(std::span<const std::uint16_t> cells,
                                        const SketchPart& part) {
    const std::vector<std::uint32_t> wide(cells.begin(), cells.end());
    std::vector<std::uint32_t> sums(part.least.size());
    add_in_bins(wide, part, sums);
    return sums;
}

/// A document's rates, of a count.
double rate(std::uint32_t count, std::uint32_t length) {
    return double{kRateUnit} * count / length;
}

/// Vectorised.
[[gnu::optimize("O3")]] void add_rates(std::span<const std::uint16_t> counts, std::uint32_t length,
                                       std::vector<double>& weights) {
    const double scale = double{kRateUnit} / length;
    for (std::size_t i = 0; i < counts.size(); ++i) weights[i] += scale * counts[i];
}

struct LearnedBins {
    std::vector<std::uint16_t> of_cells;
    std::vector<RateRange> ranges;
};

/// `counts(document)` are those of the cells.
template <class Counts>
LearnedBins learn_bins(Documents documents, const DocumentNumbers& numbers, Counts counts,
                       std::size_t cells, std::size_t bins) {
    std::vector<double> weights(cells);
    for (const std::size_t number : numbers) {
        const std::span<const std::uint16_t> of_cells = counts(documents[number]);
        for (std::size_t from = 0; from < of_cells.size(); from += cells)
            add_rates(of_cells.subspan(from, cells), documents[number].length, weights);
    }
    for (double& weight : weights) weight /= static_cast<double>(numbers.size());
    LearnedBins learned{balanced_bins(weights, bins), {}};

    std::vector<std::vector<float>> rates(bins, std::vector<float>(numbers.size()));
    const std::vector<std::uint16_t> none(bins);
    const SketchPart part{learned.of_cells, none, {}};
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        const LearnedDocument& document = documents[numbers[i]];
        const auto sums = sums_in_bins(counts(document), part);
        for (std::size_t bin = 0; bin < bins; ++bin)
            rates[bin][i] = static_cast<float>(rate(sums[bin], document.length));
    }
    for (std::vector<float>& of_bin : rates) {
        const auto quantile = [&](double at) {
            const auto place = of_bin.begin() + static_cast<std::ptrdiff_t>(
                                                    at * static_cast<double>(of_bin.size() - 1));
            std::ranges::nth_element(of_bin, place);
            return double{*place};
        };
        const double least = quantile(kLeastPart);
        learned.ranges.push_back({least, quantile(kMostPart)});
    }
    return learned;
}

/// For documents of a kind.
OwnedSketchModel learn_model(Documents documents, const DocumentNumbers& numbers,
                             const LetterRoots& typical, SketchShape shape) {
    OwnedSketchModel model{shape, {}};
    model.numbers.reserve(SketchModel::size(shape));
    for (const std::int16_t root : typical)
        model.numbers.push_back(static_cast<std::uint16_t>(root));
    const LearnedBins letters = learn_bins(
        documents, numbers,
        [](const LearnedDocument& document) { return std::span(document.letters); }, kLetterCells,
        SketchShape::letter_bins);
    append_letters(letters.of_cells, letters.ranges, model.numbers);
    const LearnedBins grams = learn_bins(
        documents, numbers,
        [](const LearnedDocument& document) { return std::span(document.grams); },
        shape.gram_cells(), shape.bins);
    append_grams(grams.of_cells, grams.ranges, model.numbers);
    return model;
}

/// A document as a query and as a sketch: its counts in bins, and the levels that stand for these.
struct Judged {
    std::uint32_t length;
    std::vector<std::int16_t> letters, letter_levels, grams, gram_levels;
};

std::int16_t limited(std::uint64_t count) {
    return static_cast<std::int16_t>(std::min<std::uint64_t>(count, INT16_MAX));
}

/// Sketches documents by a model, to judge it.
class Judge {
public:
    explicit Judge(const SketchModel& model) : model_(model) {}

    /// The pairs of an asking document and a sketched one that sketches leave, estimated from up to
    /// kMostQueries of those that ask.
    double left(Documents documents, const DocumentNumbers& asking,
                const DocumentNumbers& sketched) {
        std::vector<Judged> sketches;
        for (const std::size_t number : sketched) sketches.push_back(judge(documents[number]));
        const std::size_t queries = std::min(kMostQueries, asking.size());
        if (queries == 0) return 0;
        std::size_t left = 0;
        for (std::size_t i = 0; i < queries; ++i) {
            const std::size_t number = asking[i * asking.size() / queries];
            const Judged query = judge(documents[number]);
            for (std::size_t other = 0; other < sketches.size(); ++other)
                left += sketched[other] != number && is_left(query, sketches[other]);
        }
        return static_cast<double>(left) / static_cast<double>(queries) *
               static_cast<double>(asking.size());
    }

private:
    struct Levels {
        LetterLevels letters;
        GramLevels grams;
    };

    Judged judge(const LearnedDocument& document) {
        const std::uint8_t number = length_class(document.length);
        auto found = levels_.find(number);
        if (found == levels_.end())
            found = levels_
                        .emplace(number, Levels{LetterLevels(model_.letters(), number),
                                                GramLevels(model_.grams(), number)})
                        .first;
        const Levels& levels = found->second;
        Judged judged{document.length, {}, {}, {}, {}};
        const auto letters = sums_in_bins(document.letters, model_.letters());
        for (std::size_t bin = 0; bin < letters.size(); ++bin) {
            const auto& counts = levels.letters.counts[bin];
            const auto level = std::ranges::lower_bound(counts, letters[bin]);
            judged.letters.push_back(limited(letters[bin]));
            judged.letter_levels.push_back(limited(level == counts.end() ? INT16_MAX : *level));
        }
        const auto grams = sums_in_bins(document.grams, model_.grams());
        std::vector<std::uint8_t> units(grams.size());
        std::vector<std::uint8_t> sketch(model_.shape().gram_bytes());
        levels.grams.units_of(grams, units.data());
        levels.grams.pack(units, sketch.data());  // the units are codes from here on
        for (std::size_t bin = 0; bin < grams.size(); ++bin) {
            const std::size_t group = bin / SketchShape::group;
            const std::uint8_t level = levels.grams.levels[group][units[bin]];
            judged.grams.push_back(limited(grams[bin]));
            judged.gram_levels.push_back(limited(
                level == kMostUnits ? INT16_MAX
                                    : levels.grams.least[bin] +
                                          (std::uint64_t{level} << levels.grams.shifts[group])));
        }
        return judged;
    }

    [[gnu::optimize("O3")]] static std::int64_t shared(const std::vector<std::int16_t>& query,
                                                       const std::vector<std::int16_t>& levels) {
        std::int32_t sum = 0;  // of at most kMostBytes
        for (std::size_t bin = 0; bin < query.size(); ++bin)
            sum += std::min(query[bin], levels[bin]);
        return sum;
    }

    bool is_left(const Judged& query, const Judged& other) const {
        const std::int64_t longer = std::max(query.length, other.length);
        const std::int64_t apart = 2 * longer - query.length - other.length;
        const auto k = static_cast<std::int64_t>(
            kThreshold * static_cast<double>(std::uint64_t{query.length} + other.length));
        if (apart > k || shared(query.letters, other.letter_levels) + k < longer) return false;
        const std::int64_t moved = model_.shape().halves ? apart / 2 + 1 : 0;
        return shared(query.grams, other.gram_levels) + 2 * k + 1 + moved >= longer;
    }

    const SketchModel model_;
    std::map<std::uint8_t, Levels> levels_;
};

/// The pairs of documents of a kind that sketches leave.
double pairs_left(Documents documents, const DocumentNumbers& numbers, std::size_t bins) {
    const OwnedSketchModel model = learn_model(documents, numbers, {}, {bins, false});
    return Judge(model.view()).left(documents, numbers, numbers);
}

// ---- The shape of each kind's sketches ----

/// The numbers below `documents` that are not among these.
DocumentNumbers all_but(const DocumentNumbers& numbers, std::size_t documents) {
    std::vector<bool> among(documents);
    for (const std::size_t number : numbers) among[number] = true;
    DocumentNumbers others;
    for (std::size_t number = 0; number < documents; ++number)
        if (!among[number]) others.push_back(number);
    return others;
}

/// A model of a kind, and the pairs that it leaves.
struct Choice {
    OwnedSketchModel model;
    double left;
};

Choice choice_of(Documents documents, const DocumentKind& kind, SketchShape shape) {
    OwnedSketchModel model = learn_model(documents, kind.documents, kind.typical, shape);
    // Documents of one kind are also queries for the kinds that are much like it.
    Judge judge(model.view());
    const double left =
        judge.left(documents, kind.documents, kind.documents) +
        judge.left(documents, all_but(kind.documents, documents.size()), kind.documents);
    return {std::move(model), left};
}

/// Shapes for kinds that are easy to tell apart, and for such as are hard, so that all have about
/// so many bins.
std::vector<SketchShape> shapes_around(std::size_t bins) {
    constexpr struct {
        std::size_t eighths;
        bool halves;
    } wanted[] = {{4, false},  {6, false}, {8, false}, {8, true},
                  {11, false}, {11, true}, {16, true}};
    std::vector<SketchShape> shapes;
    for (const auto& [eighths, halves] : wanted) {
        constexpr std::size_t step = 2 * SketchShape::group;
        const SketchShape shape{std::clamp((bins * eighths / 8 + step / 2) / step * step,
                                           SketchShape::least_bins, SketchShape::most_bins),
                                halves};
        if (shapes.empty() || !(shapes.back() == shape)) shapes.push_back(shape);
    }
    return shapes;
}

/// Of the choices of each kind, begins with the first one, and takes that one again and again that
/// excludes the most pairs for a bin more, within `bins` of all documents.
std::vector<std::size_t> choose(const std::vector<std::vector<Choice>>& choices,
                                const std::vector<DocumentKind>& kinds, double bins) {
    std::vector<std::size_t> chosen(choices.size());
    const auto bins_of = [&](std::size_t kind, std::size_t choice) {
        return static_cast<double>(kinds[kind].documents.size() *
                                   choices[kind][choice].model.shape.bins);
    };
    for (std::size_t kind = 0; kind < choices.size(); ++kind) bins -= bins_of(kind, 0);
    for (;;) {
        double best_gain = 0;
        std::pair<std::size_t, std::size_t> best{};
        for (std::size_t kind = 0; kind < choices.size(); ++kind)
            for (std::size_t next = chosen[kind] + 1; next < choices[kind].size(); ++next) {
                const double more = bins_of(kind, next) - bins_of(kind, chosen[kind]);
                const double excluded = choices[kind][chosen[kind]].left - choices[kind][next].left;
                if (more > bins || excluded <= best_gain * (more + 1)) continue;
                best_gain = excluded / (more + 1);
                best = {kind, next};
            }
        if (best_gain <= 0) return chosen;
        bins -= bins_of(best.first, best.second) - bins_of(best.first, chosen[best.first]);
        chosen[best.first] = best.second;
    }
}

}  // namespace

SketchModelLearner::SketchModelLearner() : counts_(std::make_unique<SketchCounts>()) {}
SketchModelLearner::~SketchModelLearner() = default;

void SketchModelLearner::add(Bytes document, const CharacterLengths& lengths, Stop stop) {
    if (!counts_->count(document.first(std::min(document.size(), kMostBytes)), lengths, stop) ||
        counts_->length() < kLeastLength)
        return;
    LearnedDocument& added = documents_.emplace_back();
    added.length = counts_->length();
    std::ranges::copy(counts_->letters(), added.letters.begin());
    std::ranges::copy(counts_->grams(), added.grams.begin());
}

Result<std::vector<OwnedSketchModel>> SketchModelLearner::learn(std::size_t bins,
                                                                std::size_t most_models,
                                                                Execution& execution) const {
    std::vector<LetterRoots> roots(documents_.size());
    for (std::size_t i = 0; i < roots.size(); ++i)
        find_roots(std::span<const std::uint16_t>(documents_[i].letters), documents_[i].length,
                   roots[i]);
    const auto difficulty = [&](const DocumentNumbers& numbers) {
        return numbers.size() < kLeastDocuments ? 0.0 : pairs_left(documents_, numbers, bins);
    };
    execution.begin_phase("dividing documents into kinds", 0);
    auto found = document_kinds(roots, most_models, difficulty, execution);
    if (!found.ok()) return found.status();
    std::vector<DocumentKind> kinds = std::move(*found);
    std::erase_if(kinds, [](const DocumentKind& kind) { return kind.documents.empty(); });

    const std::vector<SketchShape> shapes = shapes_around(bins);
    std::vector<std::vector<Choice>> choices(kinds.size(), std::vector<Choice>(shapes.size()));
    execution.begin_phase("learning models", kinds.size() * shapes.size());
    const Status status =
        execution.parallel_for(kinds.size() * shapes.size(), [&](std::size_t task, unsigned) {
            // The largest shapes, which take the longest, come first.
            const std::size_t shape = shapes.size() - 1 - task / kinds.size();
            const std::size_t kind = task % kinds.size();
            choices[kind][shape] = choice_of(documents_, kinds[kind], shapes[shape]);
            return Status();
        });
    if (!status.ok()) return status;

    // One kind has as many bins as it may: nothing has to be divided.
    const double shared = kinds.size() == 1 ? 1 : kBinsShared;
    const auto chosen =
        choose(choices, kinds, shared * static_cast<double>(bins * documents_.size()));
    std::vector<OwnedSketchModel> models;
    for (std::size_t kind = 0; kind < choices.size(); ++kind)
        models.push_back(std::move(choices[kind][chosen[kind]].model));
    return models;
}

}  // namespace gputext
