// cpp/exact_search.hpp - all pairs of documents within an edit rate

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpp/execution.hpp"
#include "cpp/near_duplicate_search.hpp"
#include "cpp/near_duplicates.hpp"
#include "cpp/simd.hpp"
#include "cpp/status.hpp"

namespace gputext {

/// How many pairs came how far, for measurements.
struct ExactSearchCounts {
    std::uint64_t comparable = 0;  // pairs whose lengths allow the rate
    std::uint64_t by_grams = 0;    // that their grams do not exclude (cpp/gram_filter.hpp)
    std::uint64_t verified = 0;    // whose distance was computed
};

/// Every pair with an edit rate of at most the threshold, in no particular order, into `pairs`.
/// Documents are compared in order of length, in tiles of 512; nothing is kept of pairs that are
/// not found. Time: about 3 operations of 512 bits for each character of a document and each tile
/// of comparable length, fewer where all are told apart soon; then what the verification takes.
/// Errors: cancelled, out_of_memory.
Status find_exact_pairs(const NearDuplicateParameters& parameters,
                        const DistinctDocuments& documents, Execution& execution,
                        std::vector<NearPair>& pairs, ExactSearchCounts* counts = nullptr);

}  // namespace gputext
