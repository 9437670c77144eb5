// kernels/documents/detail/edit_distance.hpp - cpp/documents/edit_distance.hpp on a device, for
// many pairs of documents
//
// Method: ends in common are cut off; then bit-parallel columns (Myers 1999; Hyyro 2003) within
// the band of diagonals that a limit leaves (Ukkonen 1985), spread over lanes so that each holds 64
// rows and works one column behind the lane above. Limits are tried from small to large, the next
// one guessed by how far the last one reached.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "cpp/base/execution.hpp"
#include "kernels/base/cuda_status.hpp"
#include "kernels/documents/detail/device_documents.hpp"

namespace gputext {

/// Two documents, and the largest distance that matters.
struct DocumentPair {
    std::uint32_t first;
    std::uint32_t second;
    std::uint32_t limit;
};

/// In place of a distance above the limit.
inline constexpr std::uint32_t kAboveLimit = UINT32_MAX;

/// The fewest bytes of device memory, beside the documents, that edit_distances can do with; with
/// more it works on more pairs at a time, about 200 bytes each. Every character of a document that
/// is not narrow takes 4 bytes more while its pairs are worked on, and a pair whose limit is above
/// 7968, or whose documents are longer than 131072 characters, 2 bytes a character.
std::size_t least_edit_distance_bytes(const DeviceDocuments& documents,
                                      std::span<const DocumentPair> pairs);

/// Writes for each pair the Levenshtein distance in characters, or kAboveLimit: what
/// EditDistance::of_texts gives. distances.size() == pairs.size(). Waits for the stream.
/// Time: about n * min(limit, distance) / 64 lane steps of 33 instructions for n characters, less
/// when the distance is small or hopeless. No launch takes longer than tens of milliseconds.
/// Errors: cancelled; out_of_memory; device_error; invalid_argument when `memory_limit` is below
/// least_edit_distance_bytes.
Status edit_distances(const DeviceDocuments& documents, std::span<const DocumentPair> pairs,
                      std::size_t memory_limit, Execution& execution, cudaStream_t stream,
                      std::span<std::uint32_t> distances);

}  // namespace gputext
