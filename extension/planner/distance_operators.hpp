// extension/planner/distance_operators.hpp - recognises the operators that are distances of
// vectors, or of texts

#pragma once

#include "extension/base/postgres.hpp"

extern "C" {
#include "catalog/pg_type_d.h"
}

#include <cstddef>
#include <optional>

#include "cpp/knn/distance.hpp"
#include "extension/types/vector_type.hpp"

namespace gputext {

struct DistanceOperator {
    Oid function;
    /// Of texts, by StringMetric::trigram, with a result of type real. Else of vectors, with one of
    /// type double precision.
    bool trigrams;
    Metric metric;    // of vectors
    VectorType type;  // of both operands, where they are vectors
    /// Whether its values are those that cpp/knn/distance.hpp or cpp/strings/string_distance.hpp
    /// defines, to the bit: gputext's own, and pg_trgm's. pgvector's are sums in single precision,
    /// in an order of its compiler's choice.
    bool exact;

    Oid result() const { return trigrams ? FLOAT4OID : FLOAT8OID; }
};

/// Whether a value of type text is so long that the operator itself is to compare it: its trigrams
/// would take much memory at once.
bool is_long_text(Datum text);
/// The same of unpacked ones, in bytes.
inline constexpr std::size_t kLongestText = std::size_t{1} << 20;

/// None for an operator that is neither a distance of dense vectors of floating-point numbers, <->,
/// <=>, <#> or <+> of the extension gputext on real[] and double precision[], or of the extension
/// vector on vector and halfvec; nor pg_trgm's distance of two texts, where its function
/// show_trgm() is there, too. Known by operands, result, the extension that operator and function
/// belong to, and the operator's name, or in pg_trgm the function in C. Looks up catalogs.
std::optional<DistanceOperator> distance_operator_of(Oid oper);

}  // namespace gputext
