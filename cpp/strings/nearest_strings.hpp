// cpp/strings/nearest_strings.hpp - exact k nearest strings of many strings
//
// A search compares what a few words of memory say of each item before it computes a distance: how
// often symbols occur in it, as unary numbers of some bits each, so that the ones of an "and" bound
// the symbols that two strings have in common from above (least_distance() says what follows from
// that); for trigrams an inverted index counts the common ones exactly. Items whose bound is least
// are compared first, and the search of a query ends where no bound is within its k-th distance.
//
// Source of the bound by counts of symbols: Ukkonen 1992, "Approximate string-matching with q-grams
// and maximal matches", for q = 1.

#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "cpp/base/execution.hpp"
#include "cpp/base/simd.hpp"
#include "cpp/base/status.hpp"
#include "cpp/knn/key_groups.hpp"
#include "cpp/knn/neighbors.hpp"
#include "cpp/strings/string_distance.hpp"
#include "cpp/strings/strings.hpp"

namespace gputext {

struct NearestStringsParameters {
    StringMetric metric = StringMetric::edit_rate;
    /// Neighbors of a query, at least 1; KnnParameters::all_items for all.
    std::size_t k = 10;
    /// Only items at most this far; infinity for all.
    double radius = std::numeric_limits<double>::infinity();
    Simd simd = best_simd();
    std::size_t answer_limit = SIZE_MAX;  // as in KnnParameters
};

/// The neighbors of all queries among the items of their key, without those that are excluded: by
/// the distance from the query to the item, and then by the items' order. Every item has a distance
/// to every query. Rows of trigrams ascend strictly.
/// Time: less than a nanosecond for a pair of short strings, and a distance for those whose
/// bound is within the k-th distance; O(pairs * distance) where no item is near. With trigram
/// the number of pairs of equal trigrams. Memory: 20 to 80 bytes an item, 12 bytes a trigram of the
/// items; within answer_limit the neighbors; some megabytes a thread.
/// Errors: invalid_argument for keys that are not as many as the rows, for k = 0 and a radius that
/// is no number; cancelled; out_of_memory; memory_limit.
Result<Neighbors> nearest_strings(const NearestStringsParameters& parameters,
                                  const Strings& queries, const Strings& items,
                                  const MatchKeys& match, const RowKeys& excluded,
                                  Execution& execution);

/// What is wrong with a search: invalid_argument, as above.
Status check_nearest_strings(const NearestStringsParameters& parameters, const Strings& queries,
                             const Strings& items, const MatchKeys& match, const RowKeys& excluded);

/// Seconds that it takes on so many threads, about, where most queries have near items.
double nearest_strings_cpu_seconds(StringMetric metric, double pairs, std::uint64_t symbols,
                                   unsigned threads);
/// The same on a GPU, whose host has so many threads. Strings within equal keys are searched on
/// these.
double nearest_strings_device_seconds(StringMetric metric, double pairs, std::uint64_t symbols,
                                      bool keyed, unsigned threads);

}  // namespace gputext
