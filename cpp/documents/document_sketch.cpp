#include "cpp/documents/document_sketch.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <span>
#include <utility>
#include <vector>

#include "cpp/documents/detail/shared_counts.hpp"
#include "cpp/documents/detail/sketch_counts.hpp"

namespace gputext {
namespace {

static_assert(SketchShape::letters == SketchCounts::classes);
static_assert(SketchShape::letters == SharedCounts::letters_size);

constexpr std::uint32_t kMostCount = UINT8_MAX;

// Sketches count in units of 2^shift, rounded up. The shifts depend on the length, so that few
// counts of a text go beyond the largest that a sketch holds.

unsigned letter_shift(std::uint32_t length) {
    return static_cast<unsigned>(std::bit_width(length >> 12));
}

unsigned gram_shift(std::uint32_t length, std::size_t bins) {
    return static_cast<unsigned>(std::bit_width(length / (16 * bins)));
}

// Blanks are several times as frequent as any other character, so that their class is counted in
// larger units still, and compared by itself.
constexpr std::size_t kBlanks = 26;  // the class of blanks (cpp/documents/detail/sketch_counts.cpp)
constexpr unsigned kBlankShift = 3;

/// The counts in units of 2^shift, rounded up, at most `most`. Vectorised.
[[gnu::optimize("O3")]] void capped_units(std::span<const std::uint32_t> counts, unsigned shift,
                                          std::uint32_t most, std::uint8_t* units) {
    const std::uint32_t round = (std::uint32_t{1} << shift) - 1;  // counts are below 2^31
    const std::size_t size = counts.size();
    for (std::size_t i = 0; i < size; ++i)
        units[i] = static_cast<std::uint8_t>(std::min((counts[i] + round) >> shift, most));
}

/// What units up to kMostCount leave out of the counts.
std::uint64_t excess(std::span<const std::uint32_t> counts, unsigned shift) {
    const std::uint64_t most = std::uint64_t{kMostCount} << shift;
    std::uint64_t sum = 0;
    for (const std::uint32_t count : counts) sum += count > most ? count - most : 0;
    return sum;
}

/// Counts beyond the last level are all the same.
constexpr std::uint32_t kMostCoded = kGramLevels[14] + 1;

/// Replaces counts by the codes of the smallest levels that are not below them. Vectorised.
[[gnu::optimize("O3")]] void encode(std::span<std::uint8_t> counts) {
    for (std::uint8_t& count : counts) {
        std::uint8_t code = 0;
        for (std::size_t level = 0; level < kGramLevels.size() - 1; ++level)
            code = static_cast<std::uint8_t>(code + (kGramLevels[level] < count));
        count = code;
    }
}

}  // namespace

struct DocumentSketcher::Scratch {
    explicit Scratch(std::size_t bins) : counts(bins), codes(bins) {}
    SketchCounts counts;
    std::vector<std::uint8_t> codes;  // of bins
};

DocumentSketcher::DocumentSketcher(SketchShape shape)
    : scratch_(std::make_unique<Scratch>(shape.bins)) {}
DocumentSketcher::~DocumentSketcher() = default;
DocumentSketcher::DocumentSketcher(DocumentSketcher&&) noexcept = default;
DocumentSketcher& DocumentSketcher::operator=(DocumentSketcher&&) noexcept = default;

SketchedDocument DocumentSketcher::sketch(Bytes document, const CharacterLengths& lengths,
                                          std::uint8_t* letters, std::uint8_t* grams, Stop stop) {
    SketchCounts& counts = scratch_->counts;
    counts.count(document, lengths, stop);
    const std::uint32_t length = counts.length();
    const unsigned shift = letter_shift(length);
    capped_units(counts.letters(), shift, kMostCount, letters);
    capped_units({&counts.letters()[kBlanks], 1}, shift + kBlankShift, kMostCount,
                 letters + kBlanks);
    std::vector<std::uint8_t>& codes = scratch_->codes;
    capped_units(counts.grams(), gram_shift(length, codes.size()), kMostCoded, codes.data());
    encode(codes);
    for (std::size_t i = 0; i < codes.size(); i += 2)
        grams[i / 2] = static_cast<std::uint8_t>(codes[i] | codes[i + 1] << 4);
    return {length, counts.hash()};
}

struct SketchQuery::Bounds {
    /// The query's counts in the units of the sketches that they are compared with.
    struct Letters {
        std::array<std::uint8_t, SketchShape::letters> counts{};  // none of blanks
        std::uint64_t excess = 0;  // of characters that `counts` leave out
    };
    struct Grams {
        std::vector<std::uint8_t> low, high;  // of even bins, of odd bins
        std::uint64_t excess = 0;
    };

    /// At least most_edits_within(threshold, sum), which is seldom less, and takes divisions.
    std::uint64_t edits(std::uint64_t sum_of_lengths) const {
        return static_cast<std::uint64_t>(reach * static_cast<double>(sum_of_lengths));
    }
    bool lengths_within(std::uint64_t other) const {
        return (other > length ? other - length : length - other) <= edits(other + length);
    }

    void find_lengths();
    void prepare_letters(const SketchCounts& counts);
    void prepare_grams(const SketchCounts& counts);

    /// Upper bound of the blanks that the query shares with a sketch.
    std::uint64_t shared_blanks(std::uint8_t units, unsigned shift) const {
        if (units == kMostCount) return blanks;
        return std::min<std::uint64_t>(blanks, std::uint64_t{units} << (shift + kBlankShift));
    }

    bool may_be_near(const SketchColumns& columns, std::size_t place) const;

    std::uint32_t length = 0, hash = 0;
    std::uint32_t least_length = 0, most_length = 0;
    std::uint32_t blanks = 0;
    double reach = 0;
    SketchShape shape;
    SharedCounts shared;
    unsigned first_letter_shift = 0, first_gram_shift = 0;
    std::vector<Letters> letters;  // by shift, from the first on
    std::vector<Grams> grams;
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

void SketchQuery::Bounds::prepare_letters(const SketchCounts& counts) {
    first_letter_shift = letter_shift(least_length);
    letters.resize(letter_shift(most_length) - first_letter_shift + 1);
    std::array<std::uint32_t, SketchShape::letters> others = counts.letters();
    blanks = std::exchange(others[kBlanks], 0);
    for (unsigned i = 0; i < letters.size(); ++i) {
        const unsigned shift = first_letter_shift + i;
        capped_units(others, shift, kMostCount, letters[i].counts.data());
        letters[i].excess = excess(others, shift);
    }
}

void SketchQuery::Bounds::prepare_grams(const SketchCounts& counts) {
    first_gram_shift = gram_shift(least_length, shape.bins);
    grams.resize(gram_shift(most_length, shape.bins) - first_gram_shift + 1);
    const std::size_t size = (shape.gram_bytes() + SharedCounts::vector - 1) /
                             SharedCounts::vector * SharedCounts::vector;
    std::vector<std::uint8_t> units(shape.bins);
    for (unsigned i = 0; i < grams.size(); ++i) {
        const unsigned shift = first_gram_shift + i;
        capped_units(counts.grams(), shift, kMostCount, units.data());
        grams[i].low.resize(size);
        grams[i].high.resize(size);
        for (std::size_t bin = 0; bin < shape.bins; ++bin)
            (bin % 2 == 0 ? grams[i].low : grams[i].high)[bin / 2] = units[bin];
        grams[i].excess = excess(counts.grams(), shift);
    }
}

/// For a document whose length is within the query's bounds.
bool SketchQuery::Bounds::may_be_near(const SketchColumns& columns, std::size_t place) const {
    const std::uint32_t other = columns.lengths[place];
    const std::uint64_t k = edits(std::uint64_t{other} + length);
    if (k == 0) return columns.hashes[place] == hash;
    const std::uint64_t longer = std::max(other, length);

    const unsigned shift = letter_shift(other);
    const Letters& mine = letters[shift - first_letter_shift];
    const std::uint8_t* const letters_of_other = columns.letters + place * SketchShape::letters;
    const std::uint64_t shared_letters = shared.letters(mine.counts.data(), letters_of_other);
    if ((shared_letters << shift) + mine.excess + shared_blanks(letters_of_other[kBlanks], shift) +
            k <
        longer)
        return false;

    const unsigned bin_shift = gram_shift(other, shape.bins);
    const Grams& my_grams = grams[bin_shift - first_gram_shift];
    const std::uint64_t shared_grams =
        shared.grams(my_grams.low.data(), my_grams.high.data(),
                     columns.grams + place * shape.gram_bytes(), shape.gram_bytes());
    return (shared_grams << bin_shift) + my_grams.excess + 2 * k + 1 >= longer;
}

SketchQuery::SketchQuery(Bytes document, const CharacterLengths& lengths, double threshold,
                         SketchShape shape, Simd simd, Stop stop)
    : bounds_(std::make_unique<Bounds>()) {
    SketchCounts counts(shape.bins);
    counts.count(document, lengths, stop);
    bounds_->length = counts.length();
    bounds_->hash = counts.hash();
    // edit_rate() rounds to the nearest number.
    bounds_->reach = threshold * (1 + 0x1p-50);
    bounds_->shape = shape;
    bounds_->shared = shared_counts(simd);
    bounds_->find_lengths();
    bounds_->prepare_letters(counts);
    bounds_->prepare_grams(counts);
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

std::size_t SketchQuery::candidates(const SketchColumns& columns, std::size_t count,
                                    std::uint16_t* places) const {
    const Bounds& bounds = *bounds_;
    const std::uint32_t span = bounds.most_length - bounds.least_length;
    std::size_t within = 0;
    for (std::size_t i = 0; i < count; ++i) {
        places[within] = static_cast<std::uint16_t>(i);
        within += columns.lengths[i] - bounds.least_length <= span;
    }
    std::size_t left = 0;
    for (std::size_t i = 0; i < within; ++i) {
        places[left] = places[i];
        left += bounds.may_be_near(columns, places[i]);
    }
    return left;
}

}  // namespace gputext
