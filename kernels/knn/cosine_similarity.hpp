// kernels/knn/cosine_similarity.hpp - cpp/knn/cosine_similarity.hpp on a device, for dense vectors
//
// Gives the CPU's bits. Sixteen lanes take the definition's sixteen partial sums of an item: its
// elements are read once, and summed in double precision faster than device memory delivers them.

#pragma once

#include <cstddef>
#include <vector>

#include "cpp/knn/cosine_similarity.hpp"
#include "kernels/base/device_work.hpp"
#include "kernels/base/upload_ring.hpp"
#include "kernels/knn/detail/device_rows.hpp"

namespace gputext::gpu {

/// The fewest bytes of device memory for it: some items at a time; with `good` all of them.
struct SimilarityBytes {
    std::size_t least;
    std::size_t good;
};
SimilarityBytes cosine_similarities_bytes(const Vectors& query, const Vectors& items);

/// As gputext::cosine_similarities, on the current device, in `work.bytes` of its memory. `query`:
/// one row; `items`: any number, both dense and of the same dimensions. One similarity for each
/// item. O(elements), at the speed of the link, or of the device's memory where resident. The ring
/// serves nothing else meanwhile.
/// Errors: the operator's; invalid_argument for sparse vectors; out_of_memory; device_error.
Result<std::vector<double>> cosine_similarities(const Vectors& query, const Vectors& items,
                                                const DeviceWork& work, UploadRing& ring,
                                                Execution& execution);

/// The pass itself, on what is on the device: `query` is one row, prepared for metric cosine.
Status run_cosine_similarities(const DeviceQueries& query, const DeviceRows& items,
                               double* similarities, cudaStream_t stream);

}  // namespace gputext::gpu
