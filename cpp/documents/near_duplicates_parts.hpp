// cpp/documents/near_duplicates_parts.hpp - near_duplicates in parts, which several devices may
// compute at the same time
//
// FirstCopies (cpp/documents/distinct_documents.hpp) finds the distinct documents, near_pairs() the
// near pairs of each part, and FirstCopies makes the answer of all of them. A part has the pairs of
// certain rows. The row of a pair is the document that comes first in order of length, or the
// signature that comes first in the order of its join, and between two sides the one on the side
// that has the rows (cpp/documents/distinct_documents.hpp); which part a row belongs to follows
// from its place in that order alone (cpp/documents/near_duplicates_parts.hpp), whatever processor
// computes the part, and in whatever memory.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "cpp/base/stop.hpp"
#include "cpp/documents/ctph.hpp"
#include "cpp/documents/distinct_documents.hpp"
#include "cpp/documents/documents.hpp"
#include "cpp/documents/near_duplicates.hpp"

namespace gputext {

/// What is compared first. The near pairs are the same.
enum class PairSource {
    fastest,     // what the processor takes to be faster; for the only part
    signatures,  // mode ctph, where every document has its signature
    documents    // in mode ctph the signatures of the near pairs follow
};

/// One of `count` parts of the near pairs, which together are all. All parts have one source.
struct PairPart {
    std::uint32_t index = 0;
    std::uint32_t count = 1;
    PairSource source = PairSource::fastest;
};

/// The source that all parts are computed from first. Signatures of unrelated documents are often
/// near at high thresholds, and there may be too many of them at any.
PairSource first_source(const NearDuplicateParameters& parameters);

struct PartPairs {
    /// first < second, in any order. A pair whose signatures are near at two block sizes may be in
    /// two parts, and so may one of two documents that are on both sides.
    std::vector<NearPair> pairs;
    /// Source `signatures` only: they make too many pairs candidates, and there are no pairs here.
    /// All parts are to be computed from the documents, which costs less.
    bool too_many = false;
};

/// The near pairs of a part. Requires parameters for which check_near_duplicates() is ok, and a
/// threshold above 0. Time: what near_duplicates() takes without hashing and finding copies,
/// divided by the number of parts, and O(bytes) of each part. Errors: cancelled; out_of_memory.
Result<PartPairs> near_pairs(const NearDuplicateParameters& parameters,
                             const DistinctDocuments& documents, const PairPart& part,
                             Execution& execution);

/// Whether a sample of the documents has clusters so large that parts, of which none knows what the
/// others have connected, take longer than the whole search for components_only. Time: little
/// beside that of the search. Errors: near_pairs()'s.
Result<bool> has_large_clusters(const NearDuplicateParameters& parameters,
                                const DistinctDocuments& documents, Execution& execution);

/// The signatures of documents, of at most `longest` letters each part. O(bytes), on the
/// execution's threads. Error: cancelled.
Result<std::vector<Ctph>> ctph_signatures(const Documents& documents, std::size_t longest,
                                          Execution& execution);

// ---- Which part of a search the pairs of a row belong to ----
//
// Rows in the order of a join are cut into stripes of neighbors, and the stripes are dealt out to
// the parts, back and forth, since the first rows of a triangle have more pairs than the last ones.

/// Rows of a stripe in a join of signatures: whole tiles of a device
/// (kernels/documents/detail/letter_product.hpp). Each list of signatures that are comparable, by
/// ascending block size, begins a stripe.
inline constexpr std::uint32_t kSignatureStripe = 512;

/// Whether the part has the pairs of the rows of a stripe.
inline bool has_stripe(const PairPart& part, std::uint64_t stripe) {
    const std::uint64_t turn = stripe / part.count;
    const std::uint64_t place = stripe % part.count;
    return (turn % 2 == 0 ? place : part.count - 1 - place) == part.index;
}

/// The documents, by 0 or 1, that are rows of the part among documents of these lengths: in order
/// of length, then of number. None at all for the only part, whose rows are all of them. Stripes
/// are whole row blocks of a device's tiles, so that these belong to one part, and short enough to
/// be many. False if stopped. O(documents).
bool rows_of_part(std::span<const std::uint32_t> lengths, const PairPart& part, Stop stop,
                  std::vector<std::uint8_t>& rows);

}  // namespace gputext
