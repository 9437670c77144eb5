// kernels/documents/detail/letter_product.hpp - the filter of the join: which pairs share enough
// letters
//
// A tile is some hundred neighboring rows of one group beside all columns that their lengths
// allow: those behind them, or those of the next group. A task is a tile beside one chunk of its
// columns, and is one block's work.

#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "cpp/base/status.hpp"
#include "kernels/documents/detail/signature_parts.hpp"

namespace gputext::gpu {

struct FilterTile {
    std::uint32_t rows_begin, rows_end;
    std::uint32_t columns_begin, columns_end;
    std::uint32_t first_task;
    std::uint16_t shortest_row, longest_row;
};

/// Positions in the sorted order, row < column.
using Candidate = uint2;

struct FilterJob {
    PartsView parts;
    const FilterTile* tiles;  // on the device, as the arrays below
    std::uint32_t tile_count;
    std::uint32_t columns_per_task;   // a multiple of 256
    const std::uint16_t* most_edits;  // by the sum of two lengths
    Candidate* candidates;
    unsigned long long capacity;
    unsigned long long* found;  // above the capacity if, and only if, there are more than that
};

/// Rows of a tile; depth as in SortedParts::build.
unsigned filter_tile_rows(std::size_t depth, bool bit_product);

/// Appends the pairs of tasks [begin, end) that share enough letters, in no order.
Status run_filter(const FilterJob& job, std::size_t depth, bool bit_product, std::uint32_t begin,
                  std::uint32_t end, cudaStream_t stream);

}  // namespace gputext::gpu
