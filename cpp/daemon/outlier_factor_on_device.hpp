// cpp/daemon/outlier_factor_on_device.hpp - local_outlier_factors() of cpp/knn/outlier_factor.hpp
// on a device

#pragma once

#include <cstdint>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "cpp/base/vectors.hpp"
#include "cpp/knn/outlier_factor.hpp"

namespace gputext {

struct OutlierFactorOnDevice {
    using Function = Result<std::vector<double>>(const OutlierParameters& parameters,
                                                 const Vectors& items, std::uint64_t memory,
                                                 Execution& execution);
    static Function on_host;
};

}  // namespace gputext
