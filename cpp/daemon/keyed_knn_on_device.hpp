// cpp/daemon/keyed_knn_on_device.hpp - keyed_knn() of cpp/knn/keyed_knn.hpp on a device

#pragma once

#include <cstdint>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "cpp/base/vectors.hpp"
#include "cpp/knn/key_groups.hpp"
#include "cpp/knn/keyed_knn.hpp"
#include "cpp/knn/knn.hpp"

namespace gputext {

/// The neighbours of queries within groups that were made of rows by group_by_key(), or of some of
/// the queries of these. The answer has all queries, and none for those that are in no group.
struct KeyedKnnOnDevice {
    using Function = Result<Neighbours>(const KnnParameters& parameters, const Vectors& queries,
                                        const Vectors& items, const KeyGroups& groups,
                                        const RowKeys& excluded, std::uint64_t memory,
                                        Execution& execution);
    static Function on_host;
};

}  // namespace gputext
