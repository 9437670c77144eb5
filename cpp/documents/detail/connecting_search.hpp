// cpp/documents/detail/connecting_search.hpp - near pairs that connect what all near pairs connect
//
// A cluster of n documents that are near each other has n * n / 2 near pairs, of which n - 1
// connect it. So large clusters are found in a sample of the documents, and most of their members
// by some that represent them. Then the documents of each large set are compared with all that are
// in another set, and never with each other: sets are divided in halves of about as many documents,
// the documents of one half compared with those of the other one, and each half divided again,
// until it is one set, or the documents of no large set, which are searched as ever. So each pair
// of documents of different sets is looked at once, whatever the sample has shown, and a document
// takes part in as many searches as the sets can be halved.

#pragma once

#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "cpp/documents/detail/near_pair_finder.hpp"
#include "cpp/documents/distinct_documents.hpp"

namespace gputext {

/// Near pairs of the documents, which have neither sides nor sets, by the finder: they connect what
/// all near pairs that the mode finds connect, and are fewer than documents. Time: that of the
/// finder's searches; O(documents) for one cluster, and little more than one search for documents
/// without large clusters. Memory beside the finder's: 70 bytes a document. Errors: the finder's.
Status find_connecting_pairs(const NearDuplicateParameters& parameters,
                             const DistinctDocuments& documents, NearPairFinder& finder,
                             Execution& execution, std::vector<NearPair>& pairs);

/// Whether these documents have large clusters, by a sample, so that find_connecting_pairs() takes
/// less time than one search. Errors: the finder's.
Result<bool> has_large_clusters(const NearDuplicateParameters& parameters,
                                const DistinctDocuments& documents, NearPairFinder& finder,
                                Execution& execution);

}  // namespace gputext
