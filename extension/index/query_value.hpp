// extension/index/query_value.hpp - the type near_duplicate_query: a document and a threshold
//
// The right operand of the operator @~, by which a condition with a threshold reaches an index. A
// header, and the bytes of the document behind it.

#pragma once

#include "extension/base/postgres.hpp"

#include "cpp/base/characters.hpp"

namespace gputext::index {

struct QueryValue {
    int32 vl_len_;
    std::uint8_t binary;  // 1 if the document is a bytea
    std::uint8_t unused[3];
    double threshold;

    Bytes document() const {
        return {reinterpret_cast<const std::uint8_t*>(this + 1),
                VARSIZE(this) - sizeof(QueryValue)};
    }
};

QueryValue* make_query_value(Bytes document, bool binary, double threshold);

/// A value of the type near_duplicate_query, detoasted. Raises an error if it is none.
const QueryValue* query_value(Datum value);

/// Raises an error for a threshold that is no edit rate below 0.5.
void check_threshold(double threshold);

}  // namespace gputext::index
