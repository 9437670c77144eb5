// kernels/documents/detail/short_documents.hpp - near pairs of short documents, on a device
//
// Documents of few characters, such as names, titles and addresses, are strings: all of them are
// compared by products of bits and bit-parallel distances (kernels/strings), without the groups,
// features and bounds that long documents are worth.

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "cpp/documents/distinct_documents.hpp"
#include "cpp/documents/near_duplicates.hpp"
#include "kernels/base/device_work.hpp"
#include "kernels/base/upload_ring.hpp"

namespace gputext::gpu {

/// Whether no document has more than 64 characters, and the device has products of bits.
/// O(documents).
Status are_short(const DistinctDocuments& documents, bool& are);

/// Appends all pairs of documents whose edit rate is at most the threshold. `rows` and `columns`
/// by document, or none, say which pairs are wanted, as in
/// kernels/documents/detail/exact_join.hpp; some are found twice, as there. O(pairs) bits' products,
/// and distances for those that these leave. Errors: out_of_memory, before anything is appended,
/// where the documents do not fit into the memory all at once, or have more different characters
/// than codes; cancelled; device_error.
Status join_short_documents(double threshold, const DistinctDocuments& documents,
                            std::span<const std::uint8_t> rows,
                            std::span<const std::uint8_t> columns, const DeviceWork& work,
                            UploadRing& ring, Execution& execution, std::vector<NearPair>& near);

}  // namespace gputext::gpu
