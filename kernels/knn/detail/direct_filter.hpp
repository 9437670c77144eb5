// kernels/knn/detail/direct_filter.hpp - filters items that may be near a query, by differences in
// double precision
//
// The filter for every metric and type of elements, and for rows of which a filter of lower
// precision cannot tell much. It sums in any order and fused, so that its sums are those of
// cpp/knn/distance.hpp but for a relative error of (d + 64) 2^-51: it leaves out an item only if
// that cannot bring it back within the query's limit. A sum that over- or underflows errs to the
// safe side, as the limit does so with it; one that is NaN passes.

#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "kernels/knn/detail/device_rows.hpp"
#include "kernels/knn/neighbor_lists.hpp"

namespace gputext::gpu {

struct DirectFilterInput {
    Metric metric;
    DeviceQueries queries;
    DeviceRows items;
    std::uint32_t first_item;  // the number of the first of `items`
    /// Squares of `items`, as row_squares gives them; for inner_product and cosine.
    const double* item_squares;
    /// As in MergeInput.
    std::uint32_t first_query = kNoItems;
};

/// Adds the items [begin, end), as numbers, to the lists of the selected queries whose limits they
/// may be within. 2 or 3 operations in doubles for each pair and dimension.
Status run_direct_filter(const DirectFilterInput& input, const QuerySelection& selection,
                         std::uint32_t begin, std::uint32_t end, const ListsView& lists,
                         cudaStream_t stream);

/// Adds them all, for lists that have room for them.
Status add_all_items(const QuerySelection& selection, std::uint32_t begin, std::uint32_t end,
                     const ListsView& lists, cudaStream_t stream);

}  // namespace gputext::gpu
