// kernels/knn/outlier_factor.hpp - local outlier factors with neighbours found on a device

#pragma once

#include <vector>

#include "cpp/knn/outlier_factor.hpp"
#include "kernels/base/device_work.hpp"
#include "kernels/base/upload_ring.hpp"

namespace gputext::gpu {

/// As gputext::local_outlier_factors, the neighbours searched on the current device in `work.bytes`
/// of its memory; what remains is O(neighbours), and the host's. Dense vectors only. The ring
/// serves nothing else meanwhile. Errors: the operator's, and those of gpu::knn.
Result<std::vector<double>> local_outlier_factors(const OutlierParameters& parameters,
                                                  const Vectors& items, const DeviceWork& work,
                                                  UploadRing& ring, Execution& execution);

}  // namespace gputext::gpu
