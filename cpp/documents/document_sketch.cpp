#include "cpp/documents/document_sketch.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <vector>

#include "cpp/documents/detail/shared_counts.hpp"
#include "cpp/documents/detail/sketch_counts.hpp"
#include "cpp/documents/sketch_model.hpp"

namespace gputext {
namespace {

constexpr std::size_t kCacheLine = 64;

/// What is kept of a model.
struct KeptModel {
    explicit KeptModel(const SketchModel& of)
        : numbers(of.numbers().begin(), of.numbers().end()), model(of.shape(), numbers.data()) {}
    KeptModel(KeptModel&&) = default;  // the numbers keep their place
    KeptModel& operator=(KeptModel&&) = default;

    std::vector<std::uint16_t> numbers;
    SketchModel model;
};

std::vector<KeptModel> kept(std::span<const SketchModel> models) {
    return {models.begin(), models.end()};
}

}  // namespace

struct DocumentSketcher::Scratch {
    explicit Scratch(std::span<const SketchModel> of) : kept_models(kept(of)) {
        for (const KeptModel& one : kept_models) {
            models.push_back(one.model);
            units.resize(std::max(units.size(), one.model.shape().bins));
        }
        grams.resize(units.size());
        levels.resize(models.size() * kLengthClasses);
    }

    /// By length class and model, as they have been asked for.
    struct Levels {
        Levels(const SketchModel& model, std::uint8_t length_class)
            : letters(model.letters(), length_class), grams(model.grams(), length_class) {}
        LetterLevels letters;
        GramLevels grams;
    };
    const Levels& levels_of(std::size_t model, std::uint8_t length_class) {
        auto& found = levels[model * kLengthClasses + length_class];
        if (!found) found = std::make_unique<Levels>(models[model], length_class);
        return *found;
    }

    std::vector<KeptModel> kept_models;
    std::vector<SketchModel> models;  // views of these
    SketchCounts counts;
    std::array<std::uint32_t, SketchShape::letter_bins> letters;
    std::vector<std::uint32_t> grams;
    std::vector<std::uint8_t> units;
    std::vector<std::unique_ptr<Levels>> levels;
};

DocumentSketcher::DocumentSketcher(std::span<const SketchModel> models)
    : scratch_(std::make_unique<Scratch>(models)) {}
DocumentSketcher::~DocumentSketcher() = default;
DocumentSketcher::DocumentSketcher(DocumentSketcher&&) noexcept = default;
DocumentSketcher& DocumentSketcher::operator=(DocumentSketcher&&) noexcept = default;

SketchedDocument DocumentSketcher::sketch(Bytes document, const CharacterLengths& lengths,
                                          std::uint8_t* letters, std::uint8_t* grams, Stop stop) {
    Scratch& scratch = *scratch_;
    const SketchCounts& counts = scratch.counts;
    if (!scratch.counts.count(document, lengths, stop)) return {};
    const std::size_t number = nearest_model(scratch.models, counts.letters(), counts.length());
    const SketchModel& model = scratch.models[number];
    const Scratch::Levels& levels = scratch.levels_of(number, length_class(counts.length()));
    add_in_bins(counts.letters(), model.letters(), scratch.letters);
    levels.letters.pack(scratch.letters, letters);
    const std::size_t bins = model.shape().bins;
    add_in_bins(counts.grams(), model.grams(), std::span(scratch.grams).first(bins));
    levels.grams.units_of(std::span(scratch.grams).first(bins), scratch.units.data());
    levels.grams.pack(std::span(scratch.units).first(bins), grams);
    return {counts.length(), counts.hash(), static_cast<std::uint8_t>(number)};
}

struct SketchQuery::Bounds {
    /// The query's counts in the bins of a model.
    struct ForModel {
        ForModel(const SketchModel& of, const SketchCounts& counts)
            : kept(of), grams(of.shape().bins) {
            add_in_bins(counts.letters(), of.letters(), letters);
            add_in_bins(counts.grams(), of.grams(), grams);
        }
        KeptModel kept;
        std::array<std::uint32_t, SketchShape::letter_bins> letters;
        std::vector<std::uint32_t> grams;
    };
    /// The query's counts, prepared for documents of one length class.
    struct ForClass {
        ForClass(const ForModel& of, std::uint8_t length_class, std::uint64_t letters_allowed)
            : halves(of.kept.model.shape().halves),
              letters(LetterLevels(of.kept.model.letters(), length_class), of.letters,
                      letters_allowed),
              grams(GramLevels(of.kept.model.grams(), length_class), of.grams) {}
        bool halves;
        QueryLetters letters;
        QueryGrams grams;
    };

    /// An upper bound of most_edits_within(threshold, sum), nearly always equal to it, without its
    /// divisions.
    std::uint64_t edits(std::uint64_t sum_of_lengths) const {
        return static_cast<std::uint64_t>(reach * static_cast<double>(sum_of_lengths));
    }
    bool lengths_within(std::uint64_t other) const {
        return (other > length ? other - length : length - other) <= edits(other + length);
    }
    void find_lengths();

    /// An upper bound of the query's characters that a near document of this length lacks. Largest
    /// where both lengths are equal.
    std::uint64_t letters_allowed(std::uint32_t other) const {
        const std::uint64_t edited = edits(std::uint64_t{other} + length);
        return edited + length - std::min<std::uint64_t>(edited + length, std::max(other, length));
    }
    /// Whether a document of a length that is within the query's bounds, which its letters do not
    /// exclude, may be near.
    bool may_be_near(const SketchColumns& columns, std::size_t place, const ForClass& mine) const;

    /// The index in `classes` of a model's length class; classes.size() if there is no such class.
    std::size_t place_of(std::uint8_t length_class, std::uint8_t model) const {
        const std::size_t of_class = length_class - std::size_t{first_class};
        return length_class < first_class || of_class >= class_count || model >= models.size()
                   ? classes.size()
                   : model * class_count + of_class;
    }

    std::uint32_t length = 0, hash = 0;
    std::uint32_t least_length = 0, most_length = 0;
    double reach = 0;
    SharedCounts shared;
    std::uint8_t first_class = 0;
    std::size_t class_count = 0;
    std::vector<ForModel> models;
    std::vector<std::unique_ptr<const ForClass>> classes;  // by model and length class
};

void SketchQuery::Bounds::find_lengths() {
    // Whether a length is too short, or too long, changes once: a character more allows at most
    // one edit more. Thresholds below a half allow lengths below three times the query's.
    std::uint64_t low = 0, high = length;
    while (low < high) {
        const std::uint64_t middle = (low + high) / 2;
        if (lengths_within(middle))
            high = middle;
        else
            low = middle + 1;
    }
    least_length = static_cast<std::uint32_t>(low);
    low = length;
    high = std::min<std::uint64_t>(std::uint64_t{3} * length, UINT32_MAX);
    while (low < high) {
        const std::uint64_t middle = (low + high + 1) / 2;
        if (lengths_within(middle))
            low = middle;
        else
            high = middle - 1;
    }
    most_length = static_cast<std::uint32_t>(low);
}

bool SketchQuery::Bounds::may_be_near(const SketchColumns& columns, std::size_t place,
                                      const ForClass& mine) const {
    const std::uint32_t other = columns.lengths[place];
    const std::uint64_t k = edits(std::uint64_t{other} + length);
    if (k == 0) return columns.hashes[place] == hash;
    const std::uint64_t longer = std::max(other, length);
    const std::uint64_t moved = mine.halves ? (longer - std::min(other, length)) / 2 + 1 : 0;
    const std::uint64_t shared_grams =
        shared.grams(mine.grams, columns.grams + place * mine.grams.bytes());
    return shared_grams + mine.grams.at_least() + 2 * k + 1 + moved >= longer;
}

SketchQuery::SketchQuery(Bytes document, const CharacterLengths& lengths, double threshold,
                         std::span<const SketchModel> models, Simd simd, Stop stop)
    : bounds_(std::make_unique<Bounds>()) {
    SketchCounts counts;
    if (!counts.count(document, lengths, stop)) return;
    bounds_->length = counts.length();
    bounds_->hash = counts.hash();
    // edit_rate() rounds to the nearest number.
    bounds_->reach = threshold * (1 + 0x1p-50);
    bounds_->shared = shared_counts(simd);
    bounds_->find_lengths();
    bounds_->first_class = length_class(bounds_->least_length);
    bounds_->class_count =
        std::size_t{length_class(bounds_->most_length)} - bounds_->first_class + 1;
    for (const SketchModel& model : models) bounds_->models.emplace_back(model, counts);
    bounds_->classes.resize(models.size() * bounds_->class_count);
}
SketchQuery::~SketchQuery() = default;
SketchQuery::SketchQuery(SketchQuery&&) noexcept = default;
SketchQuery& SketchQuery::operator=(SketchQuery&&) noexcept = default;

std::uint32_t SketchQuery::least_length() const {
    return bounds_->least_length;
}

std::uint32_t SketchQuery::most_length() const {
    return bounds_->most_length;
}

void SketchQuery::prepare(std::uint8_t length_class, std::uint8_t model) {
    Bounds& bounds = *bounds_;
    const std::size_t number = bounds.place_of(length_class, model);
    if (number == bounds.classes.size() || bounds.classes[number] != nullptr) return;
    bounds.classes[number] = std::make_unique<Bounds::ForClass>(
        bounds.models[model], length_class,
        bounds.letters_allowed(std::max(bounds.length, least_length_of(length_class))));
}

std::size_t SketchQuery::candidates(const SketchColumns& columns, std::uint8_t length_class,
                                    std::uint8_t model, std::size_t count,
                                    std::uint16_t* places) const {
    const Bounds& bounds = *bounds_;
    const std::size_t number = bounds.place_of(length_class, model);
    const Bounds::ForClass* const mine =
        number == bounds.classes.size() ? nullptr : bounds.classes[number].get();
    const std::uint32_t span = bounds.most_length - bounds.least_length;
    std::size_t found = 0;
    std::uint8_t lacks[kLetterBatch];
    for (std::size_t from = 0; from < count; from += kLetterBatch) {
        const std::size_t size = std::min(count - from, kLetterBatch);
        std::uint64_t left = mine == nullptr
                                 ? ~std::uint64_t{0}
                                 : bounds.shared.letters(mine->letters, columns.letters + from,
                                                         columns.letters_stride, lacks);
        left &= ~std::uint64_t{0} >> (kLetterBatch - size);
        for (; left != 0; left &= left - 1) {
            const auto bit = static_cast<std::size_t>(std::countr_zero(left));
            const std::size_t place = from + bit;
            const std::uint32_t other = columns.lengths[place];
            if (other - bounds.least_length > span ||
                (mine != nullptr &&
                 lacks[bit] * mine->letters.unit() > bounds.letters_allowed(other)))
                continue;
            // Few are left, and their bigrams lie far from each other.
            if (mine != nullptr)
                for (std::size_t byte = 0; byte < mine->grams.bytes(); byte += kCacheLine)
                    __builtin_prefetch(columns.grams + place * mine->grams.bytes() + byte);
            places[found++] = static_cast<std::uint16_t>(place);
        }
    }
    if (mine == nullptr) return found;
    std::size_t near = 0;
    for (std::size_t i = 0; i < found; ++i) {
        const std::uint16_t place = places[i];
        places[near] = place;
        near += bounds.may_be_near(columns, place, *mine);
    }
    return near;
}

}  // namespace gputext
