// kernels/document_join.hpp - cpp/document_join.hpp on a device
//
// The filters are cpp/'s, in the same order: lengths, characters in common by classes, by
// themselves, trigrams in common. The candidates are the same ones.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cpp/execution.hpp"
#include "cpp/index_pair.hpp"
#include "kernels/cuda_status.hpp"
#include "kernels/device_documents.hpp"

namespace gputext {

/// The fewest bytes of device memory, beside the documents, that join_documents can do with.
std::size_t least_document_join_bytes(const DeviceDocuments& documents);

/// Bytes with which features are computed once, 4.7 KB a document, and not once a tile.
std::size_t document_join_bytes(const DeviceDocuments& documents);

/// Every pair of documents that the filters cannot exclude from having an edit rate below the
/// threshold (0 to 0.5), ascending. `lengths` holds each document's number of characters. Waits
/// for the stream. Time: O(sum of sizes) for each tile of features; about 20 lane operations for
/// each pair of compatible length, 1 or 9 KB read for each of the few that their classes do not
/// exclude. No launch takes longer than tens of milliseconds.
/// Errors: cancelled; out_of_memory; device_error; invalid_argument when `memory_limit` is below
/// least_document_join_bytes.
Status join_documents(double threshold, const DeviceDocuments& documents,
                      std::span<const std::uint32_t> lengths, std::size_t memory_limit,
                      Execution& execution, cudaStream_t stream,
                      std::vector<IndexPair>& candidates);

}  // namespace gputext
