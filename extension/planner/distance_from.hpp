// extension/planner/distance_from.hpp - the distances of one value from others

#pragma once

#include "extension/base/postgres.hpp"

#include <cstdint>
#include <optional>
#include <vector>

#include "cpp/base/vectors.hpp"
#include "cpp/knn/distance.hpp"
#include "cpp/strings/string_distance.hpp"
#include "extension/inputs/trigram_reader.hpp"
#include "extension/planner/distance_operators.hpp"
#include "extension/planner/query_value.hpp"

namespace gputext {

/// Of an operator that is exact. Functions raise errors.
class DistanceFrom {
public:
    /// The memory that is current keeps what is read, and lasts as long as the object.
    explicit DistanceFrom(const DistanceOperator& distance) : distance_(distance) {}

    /// Computes the value that distances are taken from. False where it cannot be compared.
    bool set(const QueryValue& query);
    /// False where the operator would not compare the item, or is the better one to do it. The
    /// distance is NaN where the operator says so. What a value is unpacked to stays in the memory
    /// that is current.
    bool measure(Datum item, double& distance);

private:
    bool measure_vector(Datum item, double& distance);
    bool measure_text(Datum item, double& distance);

    DistanceOperator distance_;
    Vectors query_, item_;  // of one row each; the item is the one at work
    std::optional<Distances> vectors_;
    std::vector<std::uint32_t> trigrams_;  // of the query
    std::optional<TrigramReader> reader_;
    std::optional<StringDistance> texts_;
};

}  // namespace gputext
