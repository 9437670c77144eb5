// cpp/daemon/term_knn_on_device.hpp - term_knn() of cpp/terms/knn.hpp on a device

#pragma once

#include <cstdint>
#include <span>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "cpp/base/vectors.hpp"
#include "cpp/terms/knn.hpp"

namespace gputext {

struct TermKnnOnDevice {
    using Function = Result<Neighbours>(const TermKnnParameters& parameters,
                                        std::span<const double> factors, const Vectors& queries,
                                        const Vectors& items, const RowKeys& keys,
                                        std::uint64_t memory, Execution& execution);
    static Function on_host;
};

}  // namespace gputext
