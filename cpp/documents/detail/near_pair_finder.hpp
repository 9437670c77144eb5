// cpp/documents/detail/near_pair_finder.hpp - finds the near pairs among documents without copies

#pragma once

#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "cpp/documents/distinct_documents.hpp"
#include "cpp/documents/near_duplicates.hpp"

namespace gputext {

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

}  // namespace gputext
