// cpp/knn/k_means.hpp - clusters of vectors by k-means, defined to the bit
//
// Sources: Lloyd, 1982, Least squares quantization in PCM (the steps); Arthur, Vassilvitskii, 2007,
// k-means++: the advantages of careful seeding (the first centroids); Dhillon, Modha, 2001, Concept
// decompositions for large sparse text data using clustering (metric cosine).
//
// The answer is a function of the items, k, the metric, the seed and the number of iterations, to
// the bit: whatever is summed is an integer, so that the order of addition does not matter, and
// distances are those of cpp/knn/distance.hpp. n items are numbered from 0 in input order, L is the
// number of bits of n, and B = min(50, 62 - L). Operations are of binary64, round to nearest, ties
// to even.
//
// First centroids. They are items. Item i has the weight w(i), which stands for the square of its
// distance D(i) to the nearest centroid so far. With y = D(i) * 2^-E and E = ilogb(largest D):
//
//   euclidean   w(i) = y * y * 2^(B - 2), rounded down
//   cosine      w(i) = y * 2^(B - 1), rounded down: the distance is half the square of the distance
//               of the two directions. A distance below 2^-40 counts as 0.
//
// Draw t = 0, 1, 2 ... is r(t) = random_bits(random_key(seed, 0x6b6d, 0), t) of
// cpp/base/counter_random.hpp, and "r(t) below m" the upper 64 bits of r(t) * m. Item r(0) below n
// is the first centroid. Then weights are fixed, and W is their sum. Each further draw, u = r(t)
// below W, hits the first item i for which the sum of the weights of items 0 to i is greater than
// u. It is the next centroid if u minus the sum of the weights before i is less than what w(i) is
// by now, with E as it was when the weights were fixed; else the draw is void. So items are drawn
// by what their weights are now, although only one of them is looked at: an item's share of W
// shrinks, and a draw of what it lost is repeated. The weights are fixed anew when 96 centroids
// have been chosen since, and when 64 draws have been void since.
//
// Steps. In the first assignment each item belongs to the nearest of those k items, in each later
// one to the nearest centroid; among equal distances to that of the lowest number. Between two
// assignments
//   - clusters without an item, in ascending order, take one each: the item that is farthest from
//     the centroid it was assigned to, among clusters of at least two items; of equally far ones
//     that of the lowest number;
//   - each centroid becomes the mean of its items: with x(j) = element j, for cosine divided by the
//     square root of the row's square as cpp/knn/distance.hpp scales and sums it, and M the largest
//     magnitude of an element of any item, but at least 2^-200, for cosine 1,
//       sum(j) = the sum of x(j) 2^e, each rounded to an integer, e = B - 1 - ilogb(M)
//       mean(j) = sum(j), rounded to binary64, divided by the number of items, times 2^-e, and
//                 rounded to binary32.
//     A mean that is 0 in all elements has no direction: metric cosine keeps the cluster's previous
//     centroid, at first its item divided by the square root of its square.
// They end when an assignment changes nothing, or after `iterations` means. Clusters, distances and
// sizes in the answer are those of the last assignment, to the centroids in the answer.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/simd.hpp"
#include "cpp/base/status.hpp"
#include "cpp/base/vectors.hpp"
#include "cpp/knn/distance.hpp"
#include "cpp/knn/knn.hpp"

namespace gputext {

struct KMeansParameters {
    /// From 1 to the number of items.
    std::size_t k = 8;
    Metric metric = Metric::euclidean;  // or cosine
    std::uint64_t seed = 1;
    /// The most steps; at least 1.
    std::size_t iterations = 20;
    /// Bytes that may be taken beside the items; see k_means_bytes().
    std::size_t memory_limit = SIZE_MAX;
    Simd simd = best_simd();
};

struct KMeans {
    std::vector<std::uint32_t> clusters;  // by item, from 0
    std::vector<double> distances;        // by item, to the centroid of its cluster
    std::vector<std::uint64_t> sizes;     // by cluster
    std::vector<float> centroids;         // k rows of `dimensions` elements
    std::size_t dimensions = 0;
    std::size_t iterations = 0;  // steps done
    bool converged = false;      // the last assignment changed nothing
    /// The sum of the squares of all distances, for cosine of the distances; added one after the
    /// other in input order.
    double inertia = 0;

    /// Exact distances that were computed. The answer does not depend on it.
    std::uint64_t rescored = 0;
};

/// The most bytes that are taken beside the items.
std::uint64_t k_means_bytes(const KMeansParameters& parameters, const Vectors& items,
                            unsigned threads);

/// Whether k, the metric and the number of iterations make sense for these items. Error:
/// invalid_argument.
Status check_k_means(const KMeansParameters& parameters, const Vectors& items);

/// Why a row of dense items can have no cluster, as "is all zeros, which has no direction"; null
/// where it can.
const char* why_no_cluster(Metric metric, const Vectors& items, std::size_t row);

/// The clusters of all items.
/// Time: 2 * n * k * dimensions operations of a filter in float for the first centroids and the
/// first assignment together, as many for each further step, less what bounds exclude; and about
/// one exact distance for each item and step. Items that are nearer to many centroids than float
/// tells from one another, beside the spread of all, take an exact distance to each of these.
/// Memory: 21 bytes an item, 24 bytes an element of the centroids, about 2 MB a thread.
/// Errors: invalid_argument for what check_k_means() refuses, elements that are not finite, rows
/// that can have no cluster, and fewer distinct items than k; memory_limit, before anything is
/// computed; cancelled; out_of_memory.
Result<KMeans> k_means(const KMeansParameters& parameters, const Vectors& items,
                       Execution& execution);

}  // namespace gputext
