// cpp/documents/detail/sketch_levels.hpp - the counts that the codes of a sketch stand for

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cpp/documents/sketch_model.hpp"

namespace gputext {

/// How many steps of its group a level lies above the least count of its bin. One more code stands
/// for all counts beyond.
inline constexpr std::array<std::uint8_t, 15> kLevelSteps = {0, 1, 2,  3,  4,  5,  6, 7,
                                                             8, 9, 10, 11, 13, 15, 18};
inline constexpr std::uint8_t kMostUnits = UINT8_MAX;

/// Of the letters in sketches of documents of one length class: the code c of a bin stands for
/// counts up to counts[bin][c], the last code for any count.
struct LetterLevels {
    LetterLevels(const SketchPart& part, std::uint8_t length_class);

    std::array<std::array<std::uint32_t, kLevelSteps.size()>, SketchShape::letter_bins> counts;

    /// Writes the codes of the smallest levels that are not below the counts of the bins: those of
    /// bins 2i and 2i + 1 are the lower and the upper half of byte i.
    void pack(std::span<const std::uint32_t> bins, std::uint8_t* sketch) const;
};

/// Of the bigrams in sketches of documents of one length class: the code c of a bin in the group g
/// stands for counts up to least[bin] + (levels[g][c] << shifts[g]).
struct GramLevels {
    GramLevels(const SketchPart& part, std::uint8_t length_class);

    std::vector<std::uint32_t> least;                                  // by bin
    std::vector<std::array<std::uint8_t, SketchShape::group>> levels;  // by group; the last is
                                                                       // kMostUnits: no limit
    std::vector<std::uint8_t> shifts;                                  // by group

    /// Writes each count's excess over the least, in the units of the levels, rounded up; at most
    /// kMostUnits.
    void units_of(std::span<const std::uint32_t> counts, std::uint8_t* units) const;

    /// Replaces units by the codes of the smallest levels that are not below them, and packs them:
    /// the bins of an even group are the lower halves of 16 bytes, those of the next group the
    /// upper ones.
    void pack(std::span<std::uint8_t> units, std::uint8_t* sketch) const;
};

// ---- How the parts of a model are made of rates ----

/// The rates between which documents lie, of a bin.
struct RateRange {
    double least, most;
};

/// The bin of each cell, so that bins have about the same weight: the heaviest cell that is left
/// goes to the lightest bin (Graham 1969).
std::vector<std::uint16_t> balanced_bins(std::span<const double> weights, std::size_t bins);

/// Add the numbers of a part to those of a model. Bins of bigrams may get other numbers, so that
/// those whose ranges are about as wide come into a group.
void append_letters(std::span<const std::uint16_t> bins_of_cells, std::span<const RateRange> ranges,
                    std::vector<std::uint16_t>& numbers);
void append_grams(std::span<const std::uint16_t> bins_of_cells, std::span<const RateRange> ranges,
                  std::vector<std::uint16_t>& numbers);

}  // namespace gputext
