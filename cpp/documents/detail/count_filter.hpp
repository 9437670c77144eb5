// cpp/documents/detail/count_filter.hpp - filters documents that share enough characters and
// trigrams to be near
//
// An edit destroys at most one character and three trigrams of a document, so documents within
// distance k share max(|a|, |b|) - k characters and max(|a|, |b|) - 2 - 3k trigrams, counted as
// multisets. Hashing characters or trigrams into bins, and stopping a trigram bin's count at its
// type's largest value with the rest kept aside, can only make that number look larger: no pair is
// lost.
// (Ukkonen 1992; Gravano et al. 2001.)

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpp/base/characters.hpp"
#include "cpp/base/simd.hpp"
#include "cpp/base/stop.hpp"

namespace gputext {

struct DocumentFeatures {
    static constexpr std::size_t character_bins = 256;
    static constexpr std::size_t trigram_bins = 4096;
    /// Trigrams are told apart below this count in a bin; what is above is excess.
    static constexpr std::uint8_t most_trigrams = UINT8_MAX;

    alignas(64) std::array<std::uint32_t, character_bins> characters{};
    alignas(64) std::array<std::uint8_t, trigram_bins> trigrams{};
    std::uint32_t trigram_excess = 0;

    /// O(size). Features are only comparable between documents that were read with the same
    /// `lengths`. Returns false, early, when `stop` says so.
    bool set(Bytes document, const CharacterLengths& lengths, Stop stop = {});
};

/// Upper bounds of what two documents share; O(bins).
struct SharedFeatures {
    std::uint64_t (*characters)(const DocumentFeatures& a, const DocumentFeatures& b);
    std::uint64_t (*trigrams)(const DocumentFeatures& a, const DocumentFeatures& b);
};
SharedFeatures shared_features(Simd simd);

/// Characters of many documents in a few classes, transposed: the first and cheapest look at pairs.
/// Class k of document c at counts()[k * stride() + c], saturated.
class CharacterClasses {
public:
    static constexpr std::size_t classes = 16;
    static constexpr std::size_t vector = 32;  // columns that a filter may look at together

    void resize(std::size_t columns);
    void set(std::size_t column, const DocumentFeatures& features);

    const std::uint16_t* counts() const { return counts_.data(); }
    std::size_t stride() const { return stride_; }
    std::array<std::uint16_t, classes> column(std::size_t column) const;

private:
    std::size_t stride_ = 0;
    std::vector<std::uint16_t> counts_;
};

/// Columns c in [begin, end) whose classes share `least` characters or more with those of a row,
/// counted up to 65535, ascending, into `hits`, which has room for end - begin + 1; returns how
/// many. At most CharacterClasses::vector columns. `classes` word operations a pair.
using ClassFilter = std::size_t (*)(const std::array<std::uint16_t, CharacterClasses::classes>& row,
                                    const CharacterClasses& columns, std::size_t begin,
                                    std::size_t end, std::uint16_t least, std::uint32_t* hits);
ClassFilter class_filter(Simd simd);

/// False only if documents with these features and at least `longer` characters in the longer one
/// are certainly more than `edits` apart.
inline bool may_be_within(const SharedFeatures& shared, const DocumentFeatures& a,
                          const DocumentFeatures& b, std::size_t longer, std::size_t edits) {
    if (shared.characters(a, b) + edits < longer) return false;
    return shared.trigrams(a, b) + 3 * edits + 2 >= longer;
}

}  // namespace gputext
