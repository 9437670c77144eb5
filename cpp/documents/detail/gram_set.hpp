// cpp/documents/detail/gram_set.hpp - a lower bound of edit distances: grams of a document that
// another one lacks
//
// An edit of a document touches at most one of several grams that do not overlap. A gram that no
// edit touches occurs in the other document, too. So disjoint grams that do not occur there each
// need an edit of their own. Chosen from the document's begin, each as early as possible, they are
// as many as can be. (The location-based mismatch filter of Xiao, Wang and Lin, Ed-Join, 2008.)

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpp/base/characters.hpp"
#include "cpp/base/simd.hpp"
#include "cpp/base/stop.hpp"

namespace gputext {

/// The hashes of a document's grams. Documents are strings with a byte a character, as
/// folded_character() makes them: folding and hashing can only make more grams occur.
class GramSet {
public:
    static constexpr std::size_t gram = 4;  // characters

    /// O(size). Takes about four bytes a character, at most 4 MB. False if stopped.
    bool assign(Bytes document, Stop stop);

    /// How many disjoint grams of `other` the document lacks, or most + 1 when there are more: the
    /// edit distance is at least that. O(size of other). Of no use if stopped.
    std::size_t absent(Bytes other, std::size_t most, Stop stop, Simd simd = best_simd()) const;

private:
    std::vector<std::uint64_t> bits_;  // by hash
    unsigned shift_ = 0;               // of hashes of 32 bits
};

}  // namespace gputext
