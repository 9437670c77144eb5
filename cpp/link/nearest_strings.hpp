// cpp/link/nearest_strings.hpp - nearest_strings() (cpp/strings/nearest_strings.hpp) at gputextd

#pragma once

#include <cstddef>
#include <cstdint>

#include "cpp/base/status.hpp"
#include "cpp/base/stop.hpp"
#include "cpp/link/answers.hpp"
#include "cpp/link/input_files.hpp"
#include "cpp/link/wire.hpp"
#include "cpp/strings/nearest_strings.hpp"

namespace gputext {

constexpr StringMetric last_of(StringMetric) {
    return StringMetric::trigram;
}

void fields(auto& archive, Like<NearestStringsParameters> auto& parameters) {
    archive(parameters.metric, parameters.k, parameters.radius, parameters.answer_limit);
}

/// How many strings there are in files, and symbols in all of them.
struct StringsShape {
    std::uint32_t strings = 0;
    std::uint64_t symbols = 0;

    static void fields(auto& archive, auto& self) { archive(self.strings, self.symbols); }
    bool consistent() const {
        return strings != UINT32_MAX && symbols <= kMostStored / sizeof(std::uint32_t);
    }
    static constexpr std::size_t files() { return 2; }
    std::uint64_t bytes() const { return symbols * sizeof(std::uint32_t); }
};

/// Files, each a sealed memfd: of the queries, and then of the items, u64 begins[strings + 1] and
/// u32 symbols[symbols]; the keys as of a SearchShape.
struct SubmitNearestStrings {
    static constexpr std::uint16_t type = 57;
    static constexpr const char* operation = "nearest_strings";
    JobLimits limits;
    StringsShape queries, items;
    bool has_keys = false;     // RowKeys
    bool has_matches = false;  // MatchKeys
    NearestStringsParameters parameters;

    static void fields(auto& archive, auto& self) {
        archive(self.limits, self.queries, self.items, self.has_keys, self.has_matches,
                self.parameters);
    }
    bool consistent() const { return queries.consistent() && items.consistent(); }
    std::size_t files() const {
        return queries.files() + items.files() + (has_keys ? 1 : 0) + (has_matches ? 1 : 0);
    }
    std::uint64_t rows() const { return std::uint64_t{queries.strings} + items.strings; }
    std::uint64_t bytes() const { return queries.bytes() + items.bytes(); }
};

/// All of it is copied when it is submitted.
struct NearestStringsRequest {
    using Packed = PackedRequest<SubmitNearestStrings, KnnAnswer>;

    NearestStringsParameters parameters;  // simd is the server's own choice
    Strings queries, items;
    RowKeys keys;
    MatchKeys matches;
    JobLimits limits = {};

    Status pack(Packed& packed, Stop stop) const;
};

}  // namespace gputext
