// extension/inputs/thesaurus_rows.hpp - returns words and their neighbors as rows

#pragma once

#include "extension/base/postgres.hpp"

#include <cstdint>
#include <vector>

#include "cpp/base/vocabulary.hpp"
#include "cpp/thesaurus/cooccurrences.hpp"
#include "cpp/thesaurus/word_similarity.hpp"
#include "extension/inputs/set_call.hpp"

namespace gputext {

/// The words as values of type text, by the order in which `numbers` names them, in memory of the
/// current context.
Datum* word_values(const Vocabulary& vocabulary, const std::vector<std::uint32_t>& numbers);

/// A row a word: the word, its neighbors, the similarities.
void put_neighbor_arrays(const Datum* words, const Thesaurus& thesaurus, SetCall& set);

/// A row a neighbor: word, neighbor, rank, similarity.
void put_neighbor_pairs(const Datum* words, const Thesaurus& thesaurus, SetCall& set);

/// A row a count: word, position, neighbor, count, weight. Weights are in units of `unit`.
void put_cooccurrences(const Datum* words, const Cooccurrences& counts,
                       const std::vector<std::uint16_t>& weights, double unit, SetCall& set);

}  // namespace gputext
