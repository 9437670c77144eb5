#include "kernels/outlier_factor.hpp"

#include <numeric>

#include "kernels/launch.hpp"
#include "kernels/nearest_neighbours.hpp"

namespace gputext::gpu {

Result<std::vector<double>> local_outlier_factors(const OutlierParameters& parameters,
                                                  const Vectors& items, const DeviceWork& work,
                                                  UploadRing& ring, Execution& execution) {
    if (parameters.k == 0) return Status(ErrorCode::invalid_argument, "k must be at least 1");
    if (parameters.metric == Metric::inner_product)
        return Status(ErrorCode::invalid_argument, "an inner product is no distance");
    const auto largest = largest_magnitude(items, "item", execution);
    if (!largest.ok()) return largest.status();
    DistinctRows distinct;
    if (Status status = distinct.set(items, execution); !status.ok()) return status;
    DistinctMatrix matrix;
    if (Status status = matrix.set(items, distinct, execution.stop()); !status.ok()) return status;

    std::vector<std::uint32_t> own(distinct.size());
    std::iota(own.begin(), own.end(), 0u);
    const auto neighbours = nearest_neighbours(knn_for_outliers(parameters), matrix.vectors(),
                                               matrix.vectors(), {own, own}, work, ring, execution);
    if (!neighbours.ok()) return neighbours.status();
    std::vector<double> factors;
    Status status =
        outlier_factors_from(parameters, items, distinct, *neighbours, execution, factors);
    if (!status.ok()) return status;
    return factors;
}

}  // namespace gputext::gpu
