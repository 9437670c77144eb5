// cpp/documents/detail/near_duplicate_search.hpp - steps of near_duplicates that CPU and GPU share
//
// Finding copies, counting lengths and making the answer is the host's work on every processor;
// finding the pairs among documents without copies is left to a NearPairFinder. So all processors
// give the same answer if their finders find the same pairs.

#pragma once

#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "cpp/documents/detail/near_pair_finder.hpp"
#include "cpp/documents/documents.hpp"
#include "cpp/documents/near_duplicates.hpp"

namespace gputext {

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
