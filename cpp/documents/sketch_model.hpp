// cpp/documents/sketch_model.hpp - which counts a sketch of a document holds, and how finely
//
// Sketches (document_sketch.hpp) hold counts of characters and of pairs of neighboring characters
// (bigrams), in bins. What a sketch tells depends on the bins: those of texts in one language are
// few and large if bigrams are hashed into them, so that most counts are alike. A model shares
// bigrams out to bins so that all bins have about as many of them, and says for each bin which
// counts documents have: from them on, in 15 levels, sketches tell counts apart. A model may count
// the bigrams of the two halves of a document apart, which tells documents apart that say the same
// words in another order.
//
// An index has several models, each for documents of one kind, such as prose, programs or tables;
// a document is sketched by the model whose typical document is most like it. Any model is correct
// for any document. sketch_model_learner.hpp learns models from documents like those that will be
// sketched.
//
// Source: none; of documents in one language, n bigrams in b bins, a pair shares about n - sqrt(n
// times the sum of the square roots of the bins' means) bigrams, so bins of equal means tell most.
//
// Models lie in indexes on disk.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace gputext {

/// Sizes of the parts of a sketch.
struct SketchShape {
    static constexpr std::size_t group = 16;  // bins of bigrams that share levels
    static constexpr std::size_t letter_bins = 32;
    static constexpr std::size_t letters = letter_bins / 2;  // bytes
    static constexpr std::size_t least_bins = 32, most_bins = 1024, default_bins = 320;

    std::size_t bins = default_bins;  // of bigrams, half a byte each; a multiple of 32
    bool halves = false;              // whether bins tell the halves of a document apart

    std::size_t gram_bytes() const { return bins / 2; }
    constexpr std::size_t gram_cells() const;
    bool is_valid() const {
        return bins >= least_bins && bins <= most_bins && bins % (2 * group) == 0;
    }
    bool operator==(const SketchShape&) const = default;
};

/// Characters and bigrams are told apart by numbers below these, of which each belongs to a bin.
/// Bigrams of the second half of a document have numbers of their own, from kGramCells on.
inline constexpr std::size_t kLetterCells = 256, kGramCells = 1024;

constexpr std::size_t SketchShape::gram_cells() const {
    return halves ? 2 * kGramCells : kGramCells;
}

/// How counts of one part of a sketch are made and rounded. A rate of r means r counts in a
/// document of kRateUnit characters.
inline constexpr std::uint32_t kRateUnit = 65536;
struct SketchPart {
    std::span<const std::uint16_t> bins;   // of the cells
    std::span<const std::uint16_t> least;  // by bin: rates up to it are not told apart
    std::span<const std::uint16_t> steps;  // the rate between the first levels: of letters by bin,
                                           // of bigrams by group
};

/// The typical document of a model: of each letter cell the square root of its rate, as a part of
/// this unit. Distances of square roots weigh rare characters and frequent ones alike (Hellinger).
inline constexpr std::int16_t kRootUnit = INT16_MAX;

/// A view of the numbers that make a model, which an index holds.
class SketchModel {
public:
    SketchModel(SketchShape shape, const std::uint16_t* numbers)
        : shape_(shape), numbers_(numbers) {}

    /// How many numbers there are.
    static constexpr std::size_t size(SketchShape shape) {
        return grams_at + shape.gram_cells() + shape.bins + shape.bins / SketchShape::group;
    }

    SketchShape shape() const { return shape_; }
    std::span<const std::uint16_t> numbers() const { return {numbers_, size(shape_)}; }
    std::span<const std::uint16_t> typical_roots() const { return {numbers_, kLetterCells}; }
    SketchPart letters() const {
        return part(letters_at, kLetterCells, SketchShape::letter_bins, SketchShape::letter_bins);
    }
    SketchPart grams() const {
        return part(grams_at, shape_.gram_cells(), shape_.bins, shape_.bins / SketchShape::group);
    }

    /// Whether all cells belong to bins that there are. Anything else is correct.
    bool is_valid() const;

private:
    static constexpr std::size_t letters_at = kLetterCells;
    static constexpr std::size_t grams_at =
        letters_at + kLetterCells + 2 * SketchShape::letter_bins;

    SketchPart part(std::size_t from, std::size_t cells, std::size_t bins,
                    std::size_t steps) const {
        return {{numbers_ + from, cells},
                {numbers_ + from + cells, bins},
                {numbers_ + from + cells + bins, steps}};
    }

    SketchShape shape_;
    const std::uint16_t* numbers_;
};

/// A model that owns its numbers.
struct OwnedSketchModel {
    SketchShape shape;
    std::vector<std::uint16_t> numbers;

    SketchModel view() const { return {shape, numbers.data()}; }
};

/// How many models an index has at most.
inline constexpr std::size_t kMostSketchModels = 16;

/// For unknown documents: made of English texts and programs. Does not count by halves.
OwnedSketchModel general_sketch_model(std::size_t bins);

/// The number of the model whose typical document is nearest to a document with these counts of
/// letter cells; at least one model is required. O(models).
std::size_t nearest_model(std::span<const SketchModel> models,
                          std::span<const std::uint32_t> letters, std::uint32_t length);

// ---- Classes of documents of about one length ----

inline constexpr unsigned kLengthClasses = 248;

/// Classes of growing lengths: 16 each time the length doubles, from 64 to 65,535 characters, and 4
/// for shorter and longer ones.
std::uint8_t length_class(std::uint32_t length);

/// The least length of a class. Some numbers of classes below 8 are those of no length.
std::uint32_t least_length_of(std::uint8_t length_class);

}  // namespace gputext
