#include "cpp/documents/document_sketch.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "cpp/documents/detail/shared_counts.hpp"
#include "cpp/documents/detail/sketch_counts.hpp"
#include "cpp/documents/length_class.hpp"

namespace gputext {
namespace {

/// Of documents of one length class.
struct ClassLevels {
    ClassLevels(const SketchModel& model, std::uint8_t length_class)
        : letters(model.letters(), length_class), grams(model.grams(), length_class) {}
    SketchLevels letters, grams;
};

std::vector<std::uint16_t> copy_of(const SketchModel& model) {
    return {model.numbers().begin(), model.numbers().end()};
}

}  // namespace

struct DocumentSketcher::Scratch {
    explicit Scratch(const SketchModel& of)
        : numbers(copy_of(of)),
          model(of.shape(), numbers.data()),
          counts(model),
          units(std::max(of.shape().bins, SketchShape::letter_bins)) {}

    const ClassLevels& levels_of(std::uint8_t length_class) {
        std::optional<ClassLevels>& found = levels[length_class];
        if (!found) found.emplace(model, length_class);
        return *found;
    }
    void pack(const SketchLevels& of_part, std::span<const std::uint32_t> part,
              std::uint8_t* sketch) {
        of_part.units_of(part, units.data());
        of_part.pack(std::span(units).first(part.size()), sketch);
    }

    const std::vector<std::uint16_t> numbers;
    const SketchModel model;
    SketchCounts counts;
    std::vector<std::uint8_t> units;
    std::array<std::optional<ClassLevels>, kLengthClasses> levels;  // that have been asked for
};

DocumentSketcher::DocumentSketcher(const SketchModel& model)
    : scratch_(std::make_unique<Scratch>(model)) {}
DocumentSketcher::~DocumentSketcher() = default;
DocumentSketcher::DocumentSketcher(DocumentSketcher&&) noexcept = default;
DocumentSketcher& DocumentSketcher::operator=(DocumentSketcher&&) noexcept = default;

SketchedDocument DocumentSketcher::sketch(Bytes document, const CharacterLengths& lengths,
                                          std::uint8_t* letters, std::uint8_t* grams, Stop stop) {
    SketchCounts& counts = scratch_->counts;
    counts.count(document, lengths, stop);
    const ClassLevels& levels = scratch_->levels_of(length_class(counts.length()));
    scratch_->pack(levels.letters, counts.letters(), letters);
    scratch_->pack(levels.grams, counts.grams(), grams);
    return {counts.length(), counts.hash()};
}

struct SketchQuery::Bounds {
    /// The query's counts as they are compared with documents of a length class.
    struct ForClass {
        ForClass(const ClassLevels& levels, const SketchCounts& counts)
            : letters(levels.letters, counts.letters()), grams(levels.grams, counts.grams()) {}
        QueryPart letters, grams;
    };

    /// At least most_edits_within(threshold, sum), which is seldom less, and takes divisions.
    std::uint64_t edits(std::uint64_t sum_of_lengths) const {
        return static_cast<std::uint64_t>(reach * static_cast<double>(sum_of_lengths));
    }
    bool lengths_within(std::uint64_t other) const {
        return (other > length ? other - length : length - other) <= edits(other + length);
    }
    void find_lengths();

    /// Whether a document may be near, of a length that is within the query's bounds: by what it
    /// shares, of the units of its letters, and then by its bigrams.
    bool may_be_near(const SketchColumns& columns, std::size_t place, const ForClass& mine,
                     std::uint64_t shared_letters) const;

    std::uint32_t length = 0, hash = 0;
    std::uint32_t least_length = 0, most_length = 0;
    double reach = 0;
    SharedCounts shared;
    std::uint8_t first_class = 0;
    std::vector<ForClass> classes;  // from the first one on
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
                                      const ForClass& mine, std::uint64_t shared_letters) const {
    const std::uint32_t other = columns.lengths[place];
    const std::uint64_t k = edits(std::uint64_t{other} + length);
    if (k == 0) return columns.hashes[place] == hash;
    const std::uint64_t longer = std::max(other, length);
    if (shared_letters + mine.letters.at_least() + k < longer) return false;
    const std::uint64_t shared_grams =
        shared.grams(mine.grams, columns.grams + place * mine.grams.bytes());
    return shared_grams + mine.grams.at_least() + 2 * k + 1 >= longer;
}

SketchQuery::SketchQuery(Bytes document, const CharacterLengths& lengths, double threshold,
                         const SketchModel& model, Simd simd, Stop stop)
    : bounds_(std::make_unique<Bounds>()) {
    SketchCounts counts(model);
    counts.count(document, lengths, stop);
    bounds_->length = counts.length();
    bounds_->hash = counts.hash();
    // edit_rate() rounds to the nearest number.
    bounds_->reach = threshold * (1 + 0x1p-50);
    bounds_->shared = shared_counts(simd);
    bounds_->find_lengths();
    bounds_->first_class = length_class(bounds_->least_length);
    const std::uint8_t last_class = length_class(bounds_->most_length);
    for (unsigned number = bounds_->first_class; number <= last_class && !stop(); ++number)
        bounds_->classes.emplace_back(ClassLevels(model, static_cast<std::uint8_t>(number)),
                                      counts);
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

std::size_t SketchQuery::candidates(const SketchColumns& columns, std::uint8_t length_class,
                                    std::size_t count, std::uint16_t* places) const {
    const Bounds& bounds = *bounds_;
    const unsigned number = length_class - unsigned{bounds.first_class};
    if (length_class < bounds.first_class || number >= bounds.classes.size()) return 0;
    const Bounds::ForClass& mine = bounds.classes[number];
    const std::uint32_t span = bounds.most_length - bounds.least_length;
    constexpr std::size_t at_once = 64;
    std::uint64_t shared_letters[at_once];
    std::size_t left = 0;
    for (std::size_t from = 0; from < count; from += at_once) {
        const std::size_t end = std::min(count, from + at_once);
        bounds.shared.letters(mine.letters, columns.letters + from * SketchShape::letters,
                              end - from, shared_letters);
        for (std::size_t i = from; i < end; ++i) {
            places[left] = static_cast<std::uint16_t>(i);
            left += columns.lengths[i] - bounds.least_length <= span &&
                    bounds.may_be_near(columns, i, mine, shared_letters[i - from]);
        }
    }
    return left;
}

}  // namespace gputext
