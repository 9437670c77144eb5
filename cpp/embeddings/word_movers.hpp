// cpp/embeddings/word_movers.hpp - Word Mover's Distance of pairs of texts
//
// Source: Kusner, Sun, Kolkin, Weinberger, 2015, From word embeddings to document distances. Of two
// texts as bags of words, with A and B tokens, and the vectors of their words. All is integers, so
// that it has the same bits wherever it is computed:
//
// - The ground distance of two words is sqrt(lane_squared_distance()) of cpp/base/lane_sums.hpp, in
//   binary32, times 2^scale, rounded to the nearest integer, ties to even. The scale is the largest
//   with which twice the longest vector of the model stays below 2^29: costs are below 2^30, and a
//   distance is off by 2^-24 of itself and 2^-29 of the largest possible one, about.
// - A word's mass is its count times lcm(A, B) / A in the first text, and / B in the second: the
//   masses of either text add up to lcm(A, B), below 2^32 as A and B are below 2^16. What both have
//   of a word is taken off both, since by the triangle inequality it need not move.
// - exact: the least total T of mass times cost by which one text's masses become the other's
//   (cpp/embeddings/detail/optimal_transport.hpp). relaxed: the larger one of both sums over a
//   text's masses of mass times the cost to the nearest word that is left in the other: at most T.
// - The distance is double(T) / double(lcm(A, B)), times 2^-scale.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/simd.hpp"
#include "cpp/base/status.hpp"
#include "cpp/embeddings/detail/word_vectors.hpp"

namespace gputext {

/// Tokens that a text of a pair may have.
inline constexpr std::size_t kMostPairTokens = 65535;

enum class MoversMethod : std::uint8_t { exact, relaxed };

struct WordMass {
    std::uint32_t word;
    std::uint32_t mass;
};

/// Pairs of texts, a view: the words that pair p has left are masses[begins[2 p]] to
/// masses[begins[2 p + 1]] - 1 of its first text and from there to masses[begins[2 p + 2]] - 1 of
/// its second one, each with ascending words.
struct TextPairs {
    std::span<const std::uint64_t> begins;  // 2 * size() + 1
    std::span<const WordMass> masses;
    std::span<const std::uint32_t> totals;  // lcm(A, B); 0 where one of the texts has no tokens

    std::size_t size() const { return totals.size(); }
    std::span<const WordMass> side(std::size_t pair, unsigned which) const {
        const std::uint64_t begin = begins[2 * pair + which];
        return masses.subspan(begin, begins[2 * pair + which + 1] - begin);
    }
};

/// Makes masses of the tokens of two texts, at most kMostPairTokens each, which it sorts: appends
/// what is left of the first text to `first` and of the second to `second`, and returns the total.
/// O(tokens * log).
std::uint32_t append_masses(std::span<std::uint32_t> first_tokens,
                            std::span<std::uint32_t> second_tokens, std::vector<WordMass>& first,
                            std::vector<WordMass>& second);

/// Ok when all words are below `words` and both texts of each pair have the same masses left, of
/// ascending words, and no more than the total. Errors: invalid_argument; cancelled. O(masses).
Status check_text_pairs(const TextPairs& pairs, std::size_t words, Execution& execution);

/// By which power of two the model's distances are multiplied. Errors: those of longest_vector(),
/// and invalid_argument for a longest vector below 2^-40 that is not zero.
Result<int> movers_scale(const WordVectors& vectors, Execution& execution);

/// Distance from a total cost. NaN where the pair's total mass is 0.
double movers_distance(std::uint64_t cost, std::uint32_t total, int scale);

struct MoversParameters {
    MoversMethod method = MoversMethod::exact;
    /// Bytes that threads may take for one pair each, as transport_bytes() says.
    std::size_t memory_limit = std::size_t{1} << 30;
    Simd simd = best_simd();
};

/// Memory that exact distances of such a pair take.
std::uint64_t transport_bytes(std::size_t first_words, std::size_t second_words);

/// The distance of each pair, NaN where one of the texts has no tokens. Time, with n and m words
/// left: O(n m dimensions) for the costs, and exact O((n + m) n m) at worst; about 60 us on a core
/// for 32 words each and 100 dimensions. Errors: those of movers_scale(); invalid_argument for
/// pairs that take more than the memory limit; cancelled; out_of_memory.
Result<std::vector<double>> word_movers_distances(const MoversParameters& parameters,
                                                  const WordVectors& vectors,
                                                  const TextPairs& pairs, Execution& execution);

}  // namespace gputext
