// cpp/daemon/k_means_on_device.hpp - k_means() of cpp/knn/k_means.hpp on a device

#pragma once

#include <cstdint>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "cpp/base/vectors.hpp"
#include "cpp/knn/k_means.hpp"

namespace gputext {

struct KMeansOnDevice {
    using Function = Result<KMeans>(const KMeansParameters& parameters, const Vectors& items,
                                    std::uint64_t memory, Execution& execution);
    static Function on_host;
};

}  // namespace gputext
