// cpp/daemon/cosine_similarity_on_device.hpp - cosine_similarities() of
// cpp/knn/cosine_similarity.hpp on a device

#pragma once

#include <cstdint>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "cpp/base/vectors.hpp"

namespace gputext {

struct CosineSimilarityOnDevice {
    using Function = Result<std::vector<double>>(const Vectors& query, const Vectors& items,
                                                 std::uint64_t memory, Execution& execution);
    static Function on_host;
};

}  // namespace gputext
