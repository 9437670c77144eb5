// cpp/knn/detail/k_means_run.hpp - the decisions of k-means, which looks at all items by an
// assignment alone

#pragma once

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "cpp/base/stop.hpp"
#include "cpp/base/vectors.hpp"
#include "cpp/knn/cluster_assignment.hpp"
#include "cpp/knn/k_means.hpp"

namespace gputext {

/// The largest magnitude of an element of items that k_means() takes. Errors: those of k_means()
/// that come before it chooses centroids, but memory_limit.
Result<double> check_clustered(const KMeansParameters& parameters, const Vectors& items,
                               Execution& execution);

/// Error where the host's memory that k_means_bytes() says is more than the parameters allow:
/// memory_limit.
Status check_host_memory(const KMeansParameters& parameters, const Vectors& items,
                         unsigned threads);

/// Makes clusters and distances those of the beginning. Error: cancelled.
Status clear_clusters(std::size_t items, Stop stop, KMeans& answer);

/// Fills in an answer whose clusters and distances are those of an assignment of all items, after
/// clear_clusters(). Takes a byte an item and 16 bytes an element of the centroids beside what the
/// assignment does. Errors: those of k_means() that check_clustered() does not see, and the
/// assignment's.
Status run_k_means(const KMeansParameters& parameters, const Vectors& items,
                   const ClusterMeans& means, ClusterAssignment& assignment, Execution& execution,
                   KMeans& answer);

}  // namespace gputext
