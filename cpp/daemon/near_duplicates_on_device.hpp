// cpp/daemon/near_duplicates_on_device.hpp - near_duplicates() of cpp/documents/near_duplicates.hpp
// on a device, as a whole and in parts

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "cpp/documents/ctph.hpp"
#include "cpp/documents/distinct_documents.hpp"
#include "cpp/documents/documents.hpp"
#include "cpp/documents/near_duplicates.hpp"
#include "cpp/documents/near_duplicates_parts.hpp"

namespace gputext {

struct NearDuplicatesOnDevice {
    using Function = Result<NearDuplicates>(const NearDuplicateParameters& parameters,
                                            const Documents& documents, GivenSignatures signatures,
                                            std::uint64_t memory, Execution& execution);
    static Function on_host;
};

/// near_pairs() of cpp/documents/near_duplicates_parts.hpp.
struct NearPairsOnDevice {
    using Function = Result<PartPairs>(const NearDuplicateParameters& parameters,
                                       const DistinctDocuments& documents, const PairPart& part,
                                       std::uint64_t memory, Execution& execution);
    static Function on_host;
};

/// ctph_signatures() of the same.
struct SignaturesOnDevice {
    using Function = Result<std::vector<Ctph>>(const Documents& documents, std::size_t longest,
                                               std::uint64_t memory, Execution& execution);
    static Function on_host;
};

}  // namespace gputext
