// cpp/daemon/knn_on_device.hpp - knn() of cpp/knn/knn.hpp on a device

#pragma once

#include <cstdint>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "cpp/base/vectors.hpp"
#include "cpp/knn/knn.hpp"

namespace gputext {

/// The items may be vectors that have to be awaited before the host reads them: await_elements().
struct KnnOnDevice {
    using Function = Result<Neighbours>(const KnnParameters& parameters, const Vectors& queries,
                                        const Vectors& items, const RowKeys& keys,
                                        std::uint64_t memory, Execution& execution);
    static Function on_host;
};

}  // namespace gputext
