// kernels/documents/near_duplicates.hpp - cpp/documents/near_duplicates.hpp on a device
//
// The host finds copies and makes the answer (cpp/documents/detail/near_duplicate_search.hpp). The
// documents are copied to the device once and stay there for all steps if they fit; else they
// stream through it to be hashed, and pairs are searched and verified a group of documents beside
// another at a time (kernels/documents/detail/document_slots.hpp).

#pragma once

#include <cstddef>
#include <vector>

#include "cpp/documents/ctph.hpp"
#include "cpp/documents/distinct_documents.hpp"
#include "cpp/documents/near_duplicates.hpp"
#include "cpp/documents/near_duplicates_parts.hpp"
#include "kernels/base/device_work.hpp"
#include "kernels/base/upload_ring.hpp"

namespace gputext::gpu {

/// As gputext::near_pairs and gputext::ctph_signatures, on the current device, in `work.bytes` of
/// its memory. Signatures take O(bytes). The ring serves nothing else meanwhile. Errors: theirs,
/// and as below.
Result<PartPairs> near_pairs(const NearDuplicateParameters& parameters,
                             const DistinctDocuments& documents, const PairPart& part,
                             const DeviceWork& work, UploadRing& ring, Execution& execution);
Result<std::vector<Ctph>> ctph_signatures(const Documents& documents, std::size_t longest,
                                          const DeviceWork& work, UploadRing& ring,
                                          Execution& execution);

/// As gputext::near_duplicates, on the current device, in `work.bytes` of its memory; the host's
/// share is that of the execution's threads. Time grows as cpp/documents/near_duplicates.hpp says.
/// The ring serves nothing else meanwhile. Errors: the operator's; out_of_memory, with the bytes
/// needed when it is sure before it begins that `work.bytes` do not suffice; device_error,
/// device_lost.
Result<NearDuplicates> near_duplicates(const NearDuplicateParameters& parameters,
                                       const Documents& documents, GivenSignatures signatures,
                                       const DeviceWork& work, UploadRing& ring,
                                       Execution& execution);

}  // namespace gputext::gpu
