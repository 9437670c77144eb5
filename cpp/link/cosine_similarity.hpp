// cpp/link/cosine_similarity.hpp - cosine_similarities() (cpp/knn/cosine_similarity.hpp) at
// gputextd

#pragma once

#include <cstddef>
#include <cstdint>

#include "cpp/base/status.hpp"
#include "cpp/base/stop.hpp"
#include "cpp/link/answers.hpp"
#include "cpp/link/input_files.hpp"
#include "cpp/link/wire.hpp"

namespace gputext {

/// Files: the matrix of the query, one row; the matrix of the items.
struct SubmitCosineSimilarity {
    static constexpr std::uint16_t type = 16;
    static constexpr const char* operation = "cosine_similarities";
    JobLimits limits;
    MatrixShape query;
    MatrixShape items;

    static void fields(auto& archive, auto& self) { archive(self.limits, self.query, self.items); }
    bool consistent() const { return query.consistent() && items.consistent(); }
    std::size_t files() const { return query.files() + items.files(); }
    std::uint64_t rows() const { return items.rows; }
    std::uint64_t bytes() const { return items.bytes(); }
};

struct CosineSimilarityRequest {
    using Packed = PackedRequest<SubmitCosineSimilarity, ScoresAnswer>;

    VectorFiles query;
    VectorFiles items;
    JobLimits limits = {};

    Status pack(Packed& packed, Stop stop) const {
        GPUTEXT_TRY(packed.files.add(query, packed.message.query, stop));
        GPUTEXT_TRY(packed.files.add(items, packed.message.items, stop));
        packed.expected.rows = packed.message.items.rows;
        return {};
    }
};

}  // namespace gputext
