// kernels/terms/detail/index.hpp - inverted index of items on a device
//
// Items are taken in tiles, so that the sums of a tile's items fit into a block's shared memory. A
// tile has for each term a list of postings: four bytes with the item's number in the tile and what
// it weighs the term, as a part of the length of its row of weights. That part is rounded to a
// sixteen-bit integer, of the same sign and never to 0; what rounding took from an item is known as
// the length of a vector, and of all items the largest is kept. A list is in no order: integers
// have the same sum in any.
//
// Source: Amorim, 2019, FaSST-kNN, algorithm 4.1: counting of terms, prefix sum, scatter.

#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "kernels/base/device_buffer.hpp"
#include "kernels/terms/detail/rows.hpp"

namespace gputext::gpu {

inline constexpr std::uint32_t kTermTile = 8192;
/// What a part of 1 is in a posting.
inline constexpr double kItemScale = 32767;

/// A view of an index.
struct TermIndex {
    TermRows items;
    std::uint32_t terms = 0;  // dimensions
    std::uint32_t tiles = 0;
    /// The postings of term t in tile n are those from begins[n * terms + t] to the next one's.
    const std::uint32_t* begins = nullptr;
    const std::uint32_t* postings = nullptr;  // number in the tile | weight << 16
    /// The largest length of what rounding took from an item, squared: a double's bits.
    const unsigned long long* residual = nullptr;
};

#ifdef __CUDACC__
/// In how many items a term occurs.
__device__ inline std::uint32_t frequency_of(const TermIndex& index, std::uint32_t term) {
    std::uint32_t frequency = 0;
    for (std::uint32_t tile = 0; tile < index.tiles; ++tile) {
        const std::size_t list = std::size_t{tile} * index.terms + term;
        frequency += index.begins[list + 1] - index.begins[list];
    }
    return frequency;
}
#endif

class TermIndexMemory {
public:
    /// Bytes of the index alone, without the items' rows.
    static std::size_t bytes(std::size_t tiles, std::size_t terms, std::size_t stored);
    static constexpr std::size_t kMostPostings = std::size_t{1} << 31;

    /// Errors of both: out_of_memory, device_error.
    Status allocate(std::size_t tiles, std::size_t terms, std::size_t stored, cudaStream_t stream);
    /// O(stored elements + tiles * terms).
    Status build(const TermRows& items);

    const TermIndex& view() const { return view_; }

private:
    cudaStream_t stream_ = nullptr;
    std::uint32_t terms_ = 0;
    DeviceBuffer<std::uint32_t> begins_, postings_;
    DeviceBuffer<unsigned long long> residual_;
    DeviceBuffer<std::uint8_t> scratch_;
    TermIndex view_;
};

}  // namespace gputext::gpu
