// kernels/knn/keyed_knn.hpp - cpp/knn/keyed_knn.hpp on a device, for dense vectors
//
// Gives the CPU's answer, to the bit, at every size of memory. Queries come to the device in tiles
// in which each has the number of its group, and are compared with all items of it exactly
// (kernels/knn/detail/keyed_lists.hpp): what a search of few pairs a query takes is the upload.
// Where items lie on the device as they do on the host, groups are lists of their rows, and queries
// come in their order; where all of them do not fit, or few of them are in groups, ranges of groups
// are searched one after the other, the rows of each copied in its groups' order.
//
// A group of many pairs, or of more items than these lists suit, is searched by
// kernels/knn/knn.hpp, its rows gathered on the host.

#pragma once

#include <cstddef>
#include <cstdint>

#include "cpp/base/execution.hpp"
#include "cpp/knn/key_groups.hpp"
#include "cpp/knn/knn.hpp"
#include "kernels/base/device_work.hpp"
#include "kernels/base/upload_ring.hpp"
#include "kernels/knn/item_cache.hpp"

namespace gputext::gpu {

/// What a search did, for those who measure.
struct KeyedKnnCounts {
    double search_ms = 0;            // on the device: lists of pairs, from the queries' conversion
    std::uint64_t pairs = 0;         // that were compared exactly by lists
    std::uint64_t tiles = 0;         // of queries
    std::uint64_t ranges = 0;        // of groups
    std::uint64_t large_groups = 0;  // that were searched as matrices of their own
};

/// The fewest bytes of device memory that keyed_knn() can do with; with `good` nothing has to be
/// copied twice.
struct KeyedKnnBytes {
    std::size_t least;
    std::size_t good;
};
KeyedKnnBytes keyed_knn_bytes(const KnnParameters& parameters, const Vectors& queries,
                              const Vectors& items, const KeyGroups& groups);

/// The neighbors of queries within these groups, of all queries: none for those that are in no
/// group. As gputext::keyed_knn, on the current device, in `work.bytes` of its memory; of the
/// parameters, memory_limit and simd are the CPU's and mean nothing here. Dense vectors only, whose
/// elements are there. The ring serves nothing else meanwhile. `cache` as of gpu::knn(), for a
/// group of all items. Memory of the host, besides the neighbors: 4 bytes a query, and for groups
/// that are searched as matrices the items of one and up to 1 GB of its queries. Errors: the
/// operator's; invalid_argument for sparse vectors; out_of_memory, which says how much is needed;
/// device_error, device_lost.
Result<Neighbors> keyed_knn(const KnnParameters& parameters, const Vectors& queries,
                             const Vectors& items, const KeyGroups& groups, const RowKeys& excluded,
                             const DeviceWork& work, UploadRing& ring, Execution& execution,
                             KeyedKnnCounts* counts = nullptr, ItemCache* cache = nullptr);

}  // namespace gputext::gpu
