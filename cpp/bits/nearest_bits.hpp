// cpp/bits/nearest_bits.hpp - exact k nearest rows of bits of many rows
//
// Rows with about as many ones as the query come first: the difference of both bounds how near a
// row can be, and with a k-th distance so far follows how many ones a nearer row has in common at
// least (bit_distance.hpp). That is looked for, many rows at a time.

#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "cpp/base/execution.hpp"
#include "cpp/base/simd.hpp"
#include "cpp/base/status.hpp"
#include "cpp/base/vectors.hpp"
#include "cpp/bits/bit_distance.hpp"
#include "cpp/knn/key_groups.hpp"
#include "cpp/knn/neighbors.hpp"

namespace gputext {

struct NearestBitsParameters {
    BitMetric metric = BitMetric::hamming;
    /// Neighbors of a query, at least 1; KnnParameters::all_items for all.
    std::size_t k = 10;
    /// Only items at most this far; infinity for all.
    double radius = std::numeric_limits<double>::infinity();
    Simd simd = best_simd();
    std::size_t answer_limit = SIZE_MAX;  // as in KnnParameters
};

/// The neighbors of all queries among the items of their key, without those that are excluded: by
/// distance, and then by the items' order. Queries and items are dense rows of ElementType::bit,
/// whose padding is zero. Every item has a distance to every query.
/// Time: O(queries * items * bits / 512) with AVX-512, less where a radius is small. Memory: the
/// items once more and 8 bytes an item; within answer_limit the neighbors.
/// Errors: invalid_argument for rows of different lengths, rows without bits or other elements, keys that are
/// not as many as the rows, k = 0 and a radius that is no number; cancelled; out_of_memory;
/// memory_limit.
Result<Neighbors> nearest_bits(const NearestBitsParameters& parameters, const Vectors& queries,
                               const Vectors& items, const MatchKeys& match,
                               const RowKeys& excluded, Execution& execution);

/// What is wrong with a search: invalid_argument, as above.
Status check_nearest_bits(const NearestBitsParameters& parameters, const Vectors& queries,
                          const Vectors& items, const MatchKeys& match, const RowKeys& excluded);

/// Seconds that it takes on so many threads, about.
double nearest_bits_cpu_seconds(double pairs, std::size_t bits, unsigned threads);
/// The same on a GPU. Rows within equal keys are searched on its host, which has so many threads.
double nearest_bits_device_seconds(double pairs, std::size_t bits, bool keyed, unsigned threads);

}  // namespace gputext
