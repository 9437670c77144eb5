// kernels/documents/detail/exact_join.hpp - candidates for all pairs of documents below an edit
// rate, on a device
//
// The filters of cpp/documents/detail/count_filter.hpp, lengths, characters in common by classes, by
// themselves and trigrams in common, as far as they pay, and then those of
// kernels/documents/detail/distance_bounds.cuh.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "cpp/base/execution.hpp"
#include "cpp/documents/detail/candidate_pairs.hpp"
#include "kernels/base/cuda_status.hpp"
#include "kernels/documents/detail/device_documents.hpp"

namespace gputext {

/// The fewest bytes of device memory, beside the documents, that join_documents can do with. It
/// uses all filters when it has 12 times the documents' size and computes features once, not once
/// a tile, with 5 KB more for each document.
std::size_t least_document_join_bytes(const DeviceDocuments& documents);

/// Takes some candidates: first < second, ascending. An error of its ends the join.
using TakeCandidates = std::function<Status(std::span<const IndexPair>)>;

/// Hands on every pair of documents that the filters cannot exclude from having an edit rate of at
/// most the threshold (0 to 0.5), each once, up to some 2 million at a time. `lengths` holds each
/// document's number of characters. With `rows`, by document 0 or 1, it hands on only those pairs
/// whose first document in order of length, then of number, has 1. With `columns`, too, it hands on
/// the pairs of a document that has 1 in `rows` and another one that has 1 in `columns`; those of
/// two documents that have 1 in both perhaps twice. Waits for the stream. Time: O(sum of sizes) for
/// each tile of features; about 20 lane operations for each pair of compatible length; 3 operations
/// a letter for each of those that their classes do not exclude, and 60 for each 128 cells that
/// cannot be excluded otherwise. No launch takes longer than tens of milliseconds. Errors:
/// cancelled; out_of_memory; device_error; those of `take`; invalid_argument when `memory_limit` is
/// below least_document_join_bytes.
Status join_documents(double threshold, const DeviceDocuments& documents,
                      std::span<const std::uint32_t> lengths, std::size_t memory_limit,
                      Execution& execution, cudaStream_t stream, const TakeCandidates& take,
                      std::span<const std::uint8_t> rows = {},
                      std::span<const std::uint8_t> columns = {});

}  // namespace gputext
