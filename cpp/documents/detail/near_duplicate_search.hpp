// cpp/documents/detail/near_duplicate_search.hpp - steps of near_duplicates that CPU and GPU share
//
// Finding copies, counting lengths and making the answer is the host's work on every processor;
// finding the pairs among documents without copies is left to a NearPairFinder. So all processors
// give the same answer if their finders find the same pairs.

#pragma once

#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "cpp/documents/distinct_documents.hpp"
#include "cpp/documents/documents.hpp"
#include "cpp/documents/near_duplicates.hpp"

namespace gputext {

// ---- Finds the near pairs among documents without copies ----

class NearPairFinder {
public:
    NearPairFinder() = default;
    virtual ~NearPairFinder() = default;
    NearPairFinder(const NearPairFinder&) = delete;
    NearPairFinder& operator=(const NearPairFinder&) = delete;

    /// All pairs that the mode finds, by their positions, first < second, each once, in any order.
    /// Of documents with sets (DistinctDocuments), it may leave out pairs of one set and of
    /// documents that other pairs connect. The parameters are within their ranges and the threshold
    /// is above 0. Errors: cancelled, out_of_memory, and the processor's own.
    virtual Status find(const NearDuplicateParameters& parameters,
                        const DistinctDocuments& documents, Execution& execution,
                        std::vector<NearPair>& pairs) = 0;
};

/// Finds pairs by near_pairs() (cpp/documents/near_duplicates_parts.hpp).
class HostPairFinder : public NearPairFinder {
public:
    Status find(const NearDuplicateParameters& parameters, const DistinctDocuments& documents,
                Execution& execution, std::vector<NearPair>& pairs) override;
};

// ---- Near pairs that connect what all near pairs connect ----
//
// A cluster of n documents that are near each other has n * n / 2 near pairs, of which n - 1
// connect it. So large clusters are found in a sample of the documents, and most of their members
// by some that represent them. Then the documents of each large set are compared with all that are
// in another set, and never with each other: sets are divided in halves of about as many documents,
// the documents of one half compared with those of the other one, and each half divided again,
// until it is one set, or the documents of no large set, which are searched as ever. So each pair
// of documents of different sets is looked at once, whatever the sample has shown, and a document
// takes part in as many searches as the sets can be halved.

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

/// As near_duplicates. Time beside the finder's: O(bytes + pairs), on the execution's threads.
/// Memory: 40 bytes a document and 48 a pair. Errors: near_duplicates', and the finder's.
Result<NearDuplicates> search_near_duplicates(const NearDuplicateParameters& parameters,
                                              const Documents& documents,
                                              GivenSignatures signatures, NearPairFinder& finder,
                                              Execution& execution);

/// The largest edit rate of two signatures that makes their documents candidates in mode ctph;
/// below 1, the rate of signatures that cannot be compared.
double signature_rate(double threshold);

}  // namespace gputext
