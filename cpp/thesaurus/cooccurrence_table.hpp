// cpp/thesaurus/cooccurrence_table.hpp - makes rows of co-occurrences from counts that were kept in
// a table

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "cpp/thesaurus/cooccurrences.hpp"

namespace gputext {

/// How often a neighbor stands `offset` places behind a word; 0 for all places together.
struct CountedTriple {
    std::uint64_t count = 0;
    std::uint32_t word = 0;
    std::uint32_t neighbor = 0;
    std::int32_t offset = 0;
    std::uint32_t unused = 0;
};

/// The shape that such triples have with so many words. Error: invalid_argument when some have a
/// place and some have none, when one is too far away, and for a shape that check_shape() refuses.
Result<CooccurrenceShape> shape_of_triples(std::uint32_t words,
                                           std::span<const CountedTriple> triples,
                                           Execution& execution);

/// Rows from triples in any order. Counts of equal triples are added up, and counts of 0 ignored.
/// Words are numbered anew by `order`, which names each of them once: order[i] becomes number i.
/// O(n log n) time, on the execution's threads; 24 bytes a triple. Errors: invalid_argument for a
/// count above 2^32 - 1, for unknown words, and for an invalid order; cancelled.
Result<Cooccurrences> collect_triples(const CooccurrenceShape& shape,
                                      std::span<const std::uint32_t> order,
                                      std::span<const CountedTriple> triples, Execution& execution);

}  // namespace gputext
