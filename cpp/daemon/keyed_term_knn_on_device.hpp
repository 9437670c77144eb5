// cpp/daemon/keyed_term_knn_on_device.hpp - keyed_term_knn() of cpp/terms/keyed_knn.hpp on a device

#pragma once

#include <cstdint>
#include <span>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "cpp/base/vectors.hpp"
#include "cpp/knn/key_groups.hpp"
#include "cpp/terms/keyed_knn.hpp"
#include "cpp/terms/knn.hpp"

namespace gputext {

/// As KeyedKnnOnDevice, of texts; the factors are those of all items. No GPU provides it: gputextd
/// searches on its threads, by on_host().
struct KeyedTermKnnOnDevice {
    using Function = Result<Neighbours>(const TermKnnParameters& parameters,
                                        std::span<const double> factors, const Vectors& queries,
                                        const Vectors& items, const KeyGroups& groups,
                                        const RowKeys& excluded, std::uint64_t memory,
                                        Execution& execution);
    static Function on_host;
};

}  // namespace gputext
