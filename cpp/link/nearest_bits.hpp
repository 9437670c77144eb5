// cpp/link/nearest_bits.hpp - nearest_bits() (cpp/bits/nearest_bits.hpp) at gputextd

#pragma once

#include <cstddef>
#include <cstdint>

#include "cpp/base/status.hpp"
#include "cpp/base/stop.hpp"
#include "cpp/bits/nearest_bits.hpp"
#include "cpp/link/answers.hpp"
#include "cpp/link/input_files.hpp"
#include "cpp/link/wire.hpp"

namespace gputext {

constexpr BitMetric last_of(BitMetric) {
    return BitMetric::jaccard;
}

void fields(auto& archive, Like<NearestBitsParameters> auto& parameters) {
    archive(parameters.metric, parameters.k, parameters.radius, parameters.answer_limit);
}

/// Files: of the search, see SearchShape.
struct SubmitNearestBits {
    static constexpr std::uint16_t type = 58;
    static constexpr const char* operation = "nearest_bits";
    JobLimits limits;
    SearchShape search;
    NearestBitsParameters parameters;

    static void fields(auto& archive, auto& self) {
        archive(self.limits, self.search, self.parameters);
    }
    bool consistent() const {
        return search.queries.consistent_bits() && search.items.consistent_bits();
    }
    std::size_t files() const { return search.files(); }
    std::uint64_t rows() const { return search.rows(); }
    std::uint64_t bytes() const { return search.bytes(); }
};

struct NearestBitsRequest {
    using Packed = PackedRequest<SubmitNearestBits, KnnAnswer>;

    NearestBitsParameters parameters;  // simd is the server's own choice
    VectorFiles queries;
    VectorFiles items;
    RowKeys keys;
    MatchKeys matches;
    JobLimits limits = {};

    Status pack(Packed& packed, Stop stop) const {
        SubmitNearestBits& message = packed.message;
        message.parameters = parameters;
        GPUTEXT_TRY(packed.files.add(queries, items, keys, matches, message.search, stop));
        packed.expected.queries = message.search.queries.rows;
        packed.expected.items = message.search.items.rows;
        return {};
    }
};

}  // namespace gputext
