// kernels/bits/detail/bit_pairs.hpp - pairs of rows of bits, rows beside columns, that are near
//
// The product of bits (kernels/base/bit_product.cuh) counts the ones in common of 16 rows beside 8
// columns, 256 bits at a time. How many a pair has to have follows from the row's limit and the
// ones of both (cpp/bits/bit_distance.hpp); as columns of as many ones lie together, it is one
// number for each row, which its sums begin below: their sign tells whether a pair is near. A row's
// list of near columns is cut down to the k nearest when it is full, and the k-th becomes its
// limit. Columns with about as many ones as the rows come first.

#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "cpp/base/status.hpp"
#include "cpp/bits/bit_distance.hpp"
#include "cpp/bits/ones_order.hpp"

namespace gputext::gpu {

/// Words of 32 bits of a product.
inline constexpr std::uint32_t kProductWords = 8;
/// Places of a tile of columns: those with as many ones begin with a tile of their own.
inline constexpr std::uint32_t kTilePlaces = 8;
/// Rows that one block compares.
inline constexpr std::uint32_t kBlockRows = 512;

/// Rows or columns on the device, by place.
struct BitSide {
    std::uint32_t places;
    const std::uint32_t* words;    // kProductWords for each product, and the next place's
    const std::uint32_t* numbers;  // kNoRow for none
    const std::uint32_t* ones;     // of rows alone
    const std::uint32_t* keys;     // of RowKeys; or null
};

/// A column beside a row: how far it is, above its number. Keys order as distances and then
/// numbers do.
using NearKey = unsigned long long;
inline constexpr NearKey kNoKeyYet = ~NearKey{0};

/// How far a column is, in whole numbers: hamming's distance, or jaccard's in steps of 2^-31,
/// rounded down. Distances of at most kMostBits bits are equal if these are.
inline constexpr double kStepsOfOne = 2147483648.0;
inline constexpr std::uint32_t kMostBits = 32768;

struct BitSearch {
    BitMetric metric;
    std::uint32_t products;  // of a pair
    BitSide rows, columns;
    const OnesGroup* groups;  // of the columns
    std::uint32_t group_count;
    NearKey* limits;  // the largest key of a row that is wanted
};

struct PlaceRange {
    std::uint32_t begin, end;  // rows begin with a whole block
};

/// What is kept of each row: lists of `capacity` keys that a search fills, of which it leaves at
/// most k in `nearest`, with kNoKeyYet behind the last one. Of each part of the columns its own.
struct NearestRows {
    std::uint32_t k;
    std::uint32_t capacity;  // at least capacity_for(k)
    std::uint32_t parts;     // of the columns
    NearKey* lists;          // parts * capacity for each row
    NearKey* nearest;        // parts * k for each row
};

/// A list that is cut down when it is full should be some times as long as what is left of it.
inline constexpr std::uint32_t capacity_for(std::uint32_t k) {
    return 3 * k + 96;
}

struct NearPair {
    std::uint32_t row;  // its place
    std::uint32_t column;  // its number
};

/// A list on the device that may have become too long.
struct NearPairs {
    NearPair* data;
    unsigned long long capacity;
    unsigned long long* found;  // also counts what is above the capacity
};

/// Finds the k nearest columns of some rows within their limits, which it lowers.
Status find_nearest(const BitSearch& search, const PlaceRange& rows, const NearestRows& nearest,
                    cudaStream_t stream);

/// Appends the pairs of some rows within their limits, in no order, with the columns in so many
/// parts for blocks of their own.
Status find_within(const BitSearch& search, const PlaceRange& rows, std::uint32_t parts,
                   const NearPairs& pairs, cudaStream_t stream);

}  // namespace gputext::gpu
