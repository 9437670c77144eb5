// cpp/link/knn.hpp - knn() (cpp/knn/knn.hpp) at gputextd

#pragma once

#include <cstddef>
#include <cstdint>

#include "cpp/base/status.hpp"
#include "cpp/base/stop.hpp"
#include "cpp/knn/knn.hpp"
#include "cpp/link/answers.hpp"
#include "cpp/link/input_files.hpp"
#include "cpp/link/wire.hpp"

namespace gputext {

constexpr Metric last_of(Metric) {
    return Metric::manhattan;
}

void fields(auto& archive, Like<KnnParameters> auto& parameters) {
    archive(parameters.k, parameters.metric, parameters.radius, parameters.include_ties,
            parameters.memory_limit);
}

/// Files: of the search, see SearchShape.
struct SubmitKnn {
    static constexpr std::uint16_t type = 13;
    static constexpr const char* operation = "knn";
    JobLimits limits;
    SearchShape search;
    KnnParameters parameters;

    static void fields(auto& archive, auto& self) {
        archive(self.limits, self.search, self.parameters);
    }
    bool consistent() const { return search.queries.consistent() && search.items.consistent(); }
    std::size_t files() const { return search.files(); }
    std::uint64_t rows() const { return search.rows(); }
    std::uint64_t bytes() const { return search.bytes(); }
};

struct KnnRequest {
    using Packed = PackedRequest<SubmitKnn, KnnAnswer>;

    KnnParameters parameters;  // simd and answer_limit are the server's own choice
    VectorFiles queries;
    VectorFiles items;
    RowKeys keys;
    MatchKeys matches;  // none, or those of keyed_knn()
    JobLimits limits = {};

    Status pack(Packed& packed, Stop stop) const {
        SubmitKnn& message = packed.message;
        message.parameters = parameters;
        GPUTEXT_TRY(packed.files.add(queries, items, keys, matches, message.search, stop));
        packed.expected.queries = message.search.queries.rows;
        packed.expected.items = message.search.items.rows;
        return {};
    }
};

}  // namespace gputext
