// cpp/documents/sketch_model.hpp - which counts a sketch of a document holds, and how finely
//
// Sketches (document_sketch.hpp) hold counts of characters and of pairs of neighbouring characters
// (bigrams), in bins. What a sketch tells depends on the bins: those of texts in one language are
// few and large if bigrams are hashed into them, so that most counts are alike. A model shares
// bigrams out to bins so that all bins have about as many of them, and says for each bin which
// counts documents have: from them on, in 15 levels, sketches tell counts apart. A model is learned
// from documents like those that will be sketched; any model is correct for any document.
//
// Source: none; of documents in one language, n bigrams in b bins, a pair shares about n - sqrt(n
// times the sum of the square roots of the bins' means) bigrams, so bins of equal means tell most.
//
// Models lie in indexes on disk.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "cpp/base/characters.hpp"
#include "cpp/base/stop.hpp"

namespace gputext {

class SketchCounts;

/// Sizes of the parts of a sketch.
struct SketchShape {
    static constexpr std::size_t group = 16;  // bins that share levels
    static constexpr std::size_t letter_bins = 2 * group;
    static constexpr std::size_t letters = letter_bins / 2;  // bytes
    static constexpr std::size_t least_bins = 32, most_bins = 1024, default_bins = 320;

    std::size_t bins = default_bins;  // of bigrams, half a byte each; a multiple of 32

    std::size_t gram_bytes() const { return bins / 2; }
};

/// Characters and bigrams are told apart by numbers below these, of which each belongs to a bin.
inline constexpr std::size_t kLetterCells = 256, kGramCells = 1024;

/// How counts of one part of a sketch are made and rounded. A rate of r means r counts in a
/// document of kRateUnit characters.
inline constexpr std::uint32_t kRateUnit = 65536;
struct SketchPart {
    std::span<const std::uint16_t> bins;   // of the cells
    std::span<const std::uint16_t> least;  // by bin: rates up to it are not told apart
    std::span<const std::uint16_t> steps;  // by group: the rate between the first levels
};

/// A view of the numbers that make a model, which an index holds.
class SketchModel {
public:
    SketchModel(SketchShape shape, const std::uint16_t* numbers)
        : shape_(shape), numbers_(numbers) {}

    /// How many numbers there are.
    static constexpr std::size_t size(SketchShape shape) {
        return part_size(kLetterCells, SketchShape::letter_bins) +
               part_size(kGramCells, shape.bins);
    }

    SketchShape shape() const { return shape_; }
    std::span<const std::uint16_t> numbers() const { return {numbers_, size(shape_)}; }
    SketchPart letters() const { return part(0, kLetterCells, SketchShape::letter_bins); }
    SketchPart grams() const {
        return part(part_size(kLetterCells, SketchShape::letter_bins), kGramCells, shape_.bins);
    }

    /// Whether all cells belong to bins that there are. Anything else is correct.
    bool is_valid() const;

private:
    static constexpr std::size_t part_size(std::size_t cells, std::size_t bins) {
        return cells + bins + bins / SketchShape::group;
    }
    SketchPart part(std::size_t from, std::size_t cells, std::size_t bins) const {
        return {{numbers_ + from, cells},
                {numbers_ + from + cells, bins},
                {numbers_ + from + cells + bins, bins / SketchShape::group}};
    }

    SketchShape shape_;
    const std::uint16_t* numbers_;
};

/// For documents that nothing is known of: texts in English, and programs.
std::vector<std::uint16_t> general_sketch_model(SketchShape shape);

/// Learns a model from documents. Takes 2.6 KB for each of them.
class SketchModelLearner {
public:
    SketchModelLearner();
    ~SketchModelLearner();

    /// Its first 32,768 bytes; ignores a document that is too short to tell something. When `stop`
    /// says so it ends early, with nothing learned.
    void add(Bytes document, const CharacterLengths& lengths, Stop stop = {});

    /// Of documents that say something.
    std::size_t documents() const { return documents_.size(); }

    /// O(bins * documents). Requires a document.
    std::vector<std::uint16_t> learn(SketchShape shape) const;

private:
    struct Document {
        std::uint32_t length;
        std::array<std::uint16_t, kLetterCells> letters;
        std::array<std::uint16_t, kGramCells> grams;
    };
    std::unique_ptr<SketchCounts> counts_;
    std::vector<Document> documents_;
};

}  // namespace gputext
