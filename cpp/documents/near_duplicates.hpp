// cpp/documents/near_duplicates.hpp - finds all pairs of documents with an edit rate of at most a
// threshold
//
// Source: the 2015 thesis, chapter 4. Mode ctph is its method, with signatures also compared at
// neighbouring block sizes; mode exact finds every pair and needs no signature. The pairs are those
// of all documents, or those of one of the first documents and one of the others.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "cpp/base/execution.hpp"
#include "cpp/base/simd.hpp"
#include "cpp/base/status.hpp"
#include "cpp/documents/ctph.hpp"
#include "cpp/documents/documents.hpp"
#include "cpp/documents/near_duplicate_answer.hpp"

namespace gputext {

enum class NearDuplicateMode {
    ctph,  // pairs whose signatures' edit rate is at most 3 * threshold, verified on the documents
    exact  // every pair, found by filters that lose none, verified on the documents
};

struct NearDuplicateParameters {
    double threshold = 0.05;  // 0 <= threshold < 0.5; pairs with at most this rate are found
    NearDuplicateMode mode = NearDuplicateMode::ctph;
    std::size_t signature_length = 100;  // 1 to Ctph::max_length; mode ctph only
    /// 0: all pairs are looked at. Else only those of one of the first so many documents and a
    /// later one.
    std::uint32_t split = 0;
    /// Only the connected components are wanted: the answer has fewer near pairs than documents,
    /// which connect all that near pairs connect. Which pairs these are may differ from call to
    /// call. Not with a split.
    bool components_only = false;
    /// Bytes that mode exact's index and pairs may take (cpp/documents/detail/exact_search.hpp).
    std::size_t memory_limit = std::size_t{1} << 30;
    Simd simd = best_simd();
};

/// Signatures that the caller already has: empty, or one a document, absent where there is none.
using GivenSignatures = std::span<const std::optional<Ctph>>;

/// Error: invalid_argument for parameters out of range, too many documents, a split behind them, or
/// one beside components_only.
Status check_near_duplicates(const NearDuplicateParameters& parameters, std::size_t documents);

/// Time: hashing O(bytes), the join (cpp/documents/detail/signature_join.hpp or
/// cpp/documents/detail/exact_search.hpp), and about size * threshold * size / 32 word steps for
/// each candidate that has to be verified in full. With a split the join's time follows the product
/// of the numbers of documents before and behind it, in place of the square of their sum. For the
/// components only, pairs within large components are not even candidates
/// (cpp/documents/detail/connecting_search.hpp). Memory: 40 bytes and a signature (250 bytes) a
/// document, an index in mode exact, the pairs. Errors:
/// invalid_argument for parameters out of range; cancelled; out_of_memory.
Result<NearDuplicates> near_duplicates(const NearDuplicateParameters& parameters,
                                       const Documents& documents, GivenSignatures signatures,
                                       Execution& execution);

}  // namespace gputext
