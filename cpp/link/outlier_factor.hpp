// cpp/link/outlier_factor.hpp - local_outlier_factors() (cpp/knn/outlier_factor.hpp) at gputextd

#pragma once

#include <cstddef>
#include <cstdint>

#include "cpp/base/status.hpp"
#include "cpp/base/stop.hpp"
#include "cpp/knn/outlier_factor.hpp"
#include "cpp/link/answers.hpp"
#include "cpp/link/input_files.hpp"
#include "cpp/link/knn.hpp"
#include "cpp/link/wire.hpp"

namespace gputext {

constexpr TieRule last_of(TieRule) {
    return TieRule::breunig;
}

void fields(auto& archive, Like<OutlierParameters> auto& parameters) {
    archive(parameters.k, parameters.metric, parameters.ties, parameters.memory_limit);
}

/// Files: the matrix of the items.
struct SubmitOutlierFactor {
    static constexpr std::uint16_t type = 15;
    static constexpr const char* operation = "local_outlier_factor";
    JobLimits limits;
    MatrixShape items;
    OutlierParameters parameters;

    static void fields(auto& archive, auto& self) {
        archive(self.limits, self.items, self.parameters);
    }
    bool consistent() const { return items.consistent(); }
    std::size_t files() const { return items.files(); }
    std::uint64_t rows() const { return items.rows; }
    std::uint64_t bytes() const { return items.bytes(); }
};

struct OutlierFactorRequest {
    using Packed = PackedRequest<SubmitOutlierFactor, ScoresAnswer>;

    OutlierParameters parameters;  // simd and answer_limit are the server's own choice
    VectorFiles items;
    JobLimits limits = {};

    Status pack(Packed& packed, Stop stop) const {
        packed.message.parameters = parameters;
        GPUTEXT_TRY(packed.files.add(items, packed.message.items, stop));
        packed.expected.rows = packed.message.items.rows;
        return {};
    }
};

}  // namespace gputext
