// cpp/strings/string_distance.hpp - distances of two strings, to the bit
//
// a and b are strings of n and m symbols. Every operation on doubles is of IEEE 754's binary64.
//
// levenshtein    the fewest insertions, deletions and substitutions of one symbol that make b of a.
// edit_rate      levenshtein / (n + m); 0 for two empty strings (cpp/documents/edit_distance.hpp).
// osa            as levenshtein, where the exchange of two adjacent symbols is one edit, too, and no
//                symbol is edited twice (optimal string alignment).
// jaro           1 - similarity. The window is w = max(0, max(n, m) / 2 - 1), rounded down. For each
//                symbol of b from the left, the leftmost symbol of a that is equal, not matched
//                yet, and at most w places away, is matched with it. Let c symbols of each be
//                matched, and let t be half of the number of places, rounded down, in which the
//                matched symbols of a and of b, each in their order, differ. The similarity is
//                ((c / n + c / m) + (c - t) / c) / 3; 0 if c is 0, and 1 for two empty strings.
// jaro_winkler   the same of s + (p * 0.1) * (1 - s), at most 1, where s is jaro's similarity and is
//                above 0.7, and p is the number of symbols, at most 4, that both begin with.
// trigram        of two sets: 1 - s, rounded to binary32, where s is the binary32 quotient of the
//                number of common trigrams and the number of trigrams of either; 1 if one is empty.
//
// Sources: Levenshtein bit-parallel, Myers 1999, Hyyro 2003, with transpositions: Hyyro 2003, "A
// bit-vector algorithm for computing Levenshtein and Damerau edit distances". Jaro 1989 and Winkler
// 1990, in the variant without Winkler's other adjustments.

#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>

#include "cpp/base/status.hpp"
#include "cpp/base/stop.hpp"
#include "cpp/strings/strings.hpp"

namespace gputext {

enum class StringMetric : std::uint8_t { edit_rate, levenshtein, osa, jaro, jaro_winkler, trigram };

/// Distances from one string to others. An object keeps its scratch memory between calls; one
/// thread uses it at a time.
class StringDistance {
public:
    explicit StringDistance(StringMetric metric);
    ~StringDistance();
    StringDistance(StringDistance&&) noexcept;

    /// The string that distances are taken from, which stays where it is. O(n).
    void set_query(Symbols query);

    /// The distance of the query, a, and the item, b, or infinity where it is above `limit`.
    /// Time: up to 64 symbols of the query: O(m). Longer ones: O(n m / 64) for levenshtein,
    /// edit_rate and osa, less with a limit; O(m log n) for jaro and jaro_winkler; O(n + m) for
    /// trigram. Memory: O(n + m). Errors: cancelled; out_of_memory.
    Status operator()(Symbols item, double limit, Stop stop, double& distance);

private:
    struct Scratch;
    std::unique_ptr<Scratch> scratch_;
    StringMetric metric_;
};

/// As jaro and jaro_winkler, above, define them. O(n log n + m log n) time, O(n + m) memory. Errors:
/// cancelled; out_of_memory.
Result<double> jaro_similarity(Symbols a, Symbols b, Stop stop);
Result<double> jaro_winkler_similarity(Symbols a, Symbols b, Stop stop);

/// Edits as osa, above, defines them. Time and memory as StringDistance. Errors: the same.
Result<std::size_t> osa_distance(Symbols a, Symbols b, Stop stop);

/// As osa, but symbols between two that were exchanged may be edited, too: the fewest insertions,
/// deletions, substitutions and exchanges of adjacent symbols. O(n m) time, O(m) memory. Errors:
/// cancelled; out_of_memory.
/// Source: Lowrance and Wagner 1975; of their cells only those are kept that an optimal exchange
/// without deletions, or without insertions, refers to, as others are no better than edits.
Result<std::size_t> damerau_levenshtein(Symbols a, Symbols b, Stop stop);

/// The distance of strings of n and m symbols that follows from what was counted of them elsewhere:
/// edits; common trigrams; or of jaro and jaro_winkler matches | (matches - t) << 10 | p << 20. The
/// same bits as StringDistance gives. Jaro's strings have less than 1024 symbols.
double distance_of_counts(StringMetric metric, std::size_t n, std::size_t m, std::uint32_t counts);

// ---- What a search knows before it compares ----

/// The longest common beginning that counts for jaro_winkler.
inline constexpr std::size_t kLongestPrefix = 4;

/// A lower bound of the distance of strings of so many symbols, of which at most `common` are
/// common: the sum of the smaller counts of each symbol. `prefix`: at most so many symbols at the
/// beginning are equal. It grows with neither. Exact for trigram.
double least_distance(StringMetric metric, std::size_t n, std::size_t m, std::size_t common,
                      std::size_t prefix = kLongestPrefix);

/// The same of edit_rate, levenshtein or osa, where at most `common` pairs of adjacent symbols are
/// common: an edit changes two of them, and an exchange three.
double least_distance_of_pairs(StringMetric metric, std::size_t n, std::size_t m,
                               std::size_t common);

}  // namespace gputext
