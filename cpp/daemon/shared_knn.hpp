// cpp/daemon/shared_knn.hpp - searches for neighbors on as many devices as are worth it

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "cpp/base/vectors.hpp"
#include "cpp/daemon/device.hpp"
#include "cpp/daemon/keyed_parts.hpp"
#include "cpp/daemon/search_parts.hpp"
#include "cpp/knn/knn.hpp"

namespace gputext {

/// knn() of cpp/knn/knn.hpp, as an OperatorJob goes through it: the functions in this order.
class SharedKnn {
public:
    /// Keeps views of what is given. Looks at all elements, unless what they are is known or there
    /// is one part; sparse vectors are one part. Returns the number of parts. Errors: the
    /// operator's that come before a search.
    Result<std::size_t> prepare(const KnnParameters& parameters, const Vectors& queries,
                                const Vectors& items, const RowKeys& keys, std::size_t devices,
                                Execution& execution);
    /// As an OperatorJob's.
    Status run(std::size_t part, Device& device, std::uint64_t memory, Execution& execution);
    /// Error: also memory_limit.
    Status merge(Execution& execution);
    /// The neighbors of all queries: one answer, or several for consecutive queries.
    std::span<const Neighbors> answers() const { return parts_.answers(); }

private:
    AnswerLimit limit() const { return {parameters_.k, parameters_.answer_limit}; }
    Status look_at_elements(Vectors& queries, Vectors& items, Execution& execution);

    KnnParameters parameters_;
    KnownElements known_queries_, known_items_;
    SearchParts parts_;
};

/// keyed_knn() of cpp/knn/keyed_knn.hpp, likewise.
class SharedKeyedKnn {
public:
    /// Keeps views of what is given, whose elements are there, and looks at all of them. Returns
    /// the number of parts. Errors: the operator's that come before a search.
    Result<std::size_t> prepare(const KnnParameters& parameters, const Vectors& queries,
                                const Vectors& items, const MatchKeys& matches,
                                const RowKeys& excluded, std::size_t devices, Execution& execution);
    Status run(std::size_t part, Device& device, std::uint64_t memory, Execution& execution);
    Status merge(Execution& execution);
    std::span<const Neighbors> answers() const { return parts_.answers(); }

private:
    KnnParameters parameters_;
    KnownElements known_queries_, known_items_;
    Vectors queries_, items_;
    RowKeys excluded_;
    KeyedParts parts_;
};

}  // namespace gputext
