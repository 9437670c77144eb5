// cpp/documents/detail/exact_search.hpp - all pairs of documents within an edit rate

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/simd.hpp"
#include "cpp/base/status.hpp"
#include "cpp/documents/detail/candidate_pairs.hpp"
#include "cpp/documents/detail/near_duplicate_search.hpp"
#include "cpp/documents/near_duplicates.hpp"
#include "cpp/documents/near_duplicates_parts.hpp"

namespace gputext {

/// How many pairs came how far, for measurements.
struct ExactSearchCounts {
    std::uint64_t comparable = 0;  // pairs whose lengths allow the rate, compared by tiles
    std::uint64_t by_grams = 0;    // that their grams do not exclude (gram_filter.hpp)
    std::uint64_t hits = 0;        // grams in common that the index found (gram_index.hpp)
    std::uint64_t counted = 0;     // candidates of counts
    std::uint64_t confirmed = 0;   // pairs that the index made candidates
    std::uint64_t verified = 0;    // whose distance was computed
};

/// Counts are compared up to this threshold, above which documents share too little for their
/// counts to exclude many pairs, and from this length on, in characters. Shorter documents are
/// compared faster than their counts are; longer ones, too, where a sample shows that their
/// characters exclude few pairs.
inline constexpr double kMostCountedThreshold = 0.066;
inline constexpr std::size_t kLeastCounted = 1000;
/// An index of fewer documents does not pay.
inline constexpr std::size_t kLeastIndexed = 4096;

/// How candidates are found. The pairs are the same.
enum class ExactMethod {
    estimated,  // for each range of lengths what is estimated to be faster
    counts,     // the characters and trigrams of long documents, if they exclude nearly all pairs
    tiles,  // each pair of comparable length is looked at (cpp/documents/detail/gram_filter.hpp)
    index   // an index of grams, wherever documents are long enough
            // (cpp/documents/detail/gram_index.hpp)
};

/// Every pair of the part with an edit rate of at most the threshold, in no particular order, into
/// `pairs`.
/// Documents are compared in order of length; nothing is kept of pairs that are not found. Time and
/// memory: those of the methods (cpp/documents/detail/exact_search_methods.hpp), and of verifying
/// their candidates. Of documents with sets, only
/// pairs that connect these, as `wanted` knows, which begins with the documents' sets if there is
/// none. Errors: cancelled, memory_limit, out_of_memory.
Status find_exact_pairs(const NearDuplicateParameters& parameters,
                        const DistinctDocuments& documents, Execution& execution,
                        std::vector<NearPair>& pairs, ExactSearchCounts* counts = nullptr,
                        ExactMethod method = ExactMethod::estimated, const PairPart& part = {},
                        WantedPairs* wanted = nullptr);

}  // namespace gputext
