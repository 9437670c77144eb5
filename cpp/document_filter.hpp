// cpp/document_filter.hpp - which documents share enough characters and trigrams to be near
//
// An edit destroys at most one character and three trigrams of a document, so documents within
// distance k share max(|a|, |b|) - k characters and max(|a|, |b|) - 2 - 3k trigrams, counted as
// multisets. Hashing characters or trigrams into bins, and stopping a bin's count at its type's
// largest value with the rest kept aside, can only make that number look larger: no pair is lost.
// (Ukkonen 1992; Gravano et al. 2001.)

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpp/characters.hpp"
#include "cpp/simd.hpp"
#include "cpp/stop.hpp"

namespace gputext {

struct DocumentFeatures {
    static constexpr std::size_t character_bins = 256;
    static constexpr std::size_t trigram_bins = 4096;
    /// Characters are told apart below this count in a bin; what is above is excess.
    static constexpr std::uint16_t most_characters = INT16_MAX;
    static constexpr std::uint8_t most_trigrams = UINT8_MAX;

    alignas(64) std::array<std::uint16_t, character_bins> characters{};
    alignas(64) std::array<std::uint8_t, trigram_bins> trigrams{};
    std::uint32_t character_excess = 0;
    std::uint32_t trigram_excess = 0;

    /// O(size). `symbols` is scratch memory. Features are only comparable between documents that
    /// were read with the same `lengths`. Of no use when `stop` ended it early.
    void set(Bytes document, const CharacterLengths& lengths, std::vector<std::uint32_t>& symbols,
             Stop stop = {});
};

/// Upper bounds of what two documents share; O(bins).
struct SharedFeatures {
    std::uint64_t (*characters)(const DocumentFeatures& a, const DocumentFeatures& b);
    std::uint64_t (*trigrams)(const DocumentFeatures& a, const DocumentFeatures& b);
};
SharedFeatures shared_features(Simd simd);

/// False only if documents with these features and at least `longer` characters in the longer one
/// are certainly more than `edits` apart.
inline bool may_be_within(const SharedFeatures& shared, const DocumentFeatures& a,
                          const DocumentFeatures& b, std::size_t longer, std::size_t edits) {
    if (shared.characters(a, b) + edits < longer) return false;
    return shared.trigrams(a, b) + 3 * edits + 2 >= longer;
}

}  // namespace gputext
