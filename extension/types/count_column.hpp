// extension/types/count_column.hpp - reads texts and their counts, of the types that count() and
// sum() give

#pragma once

#include "extension/base/postgres.hpp"

extern "C" {
#include "access/tupdesc.h"
#include "catalog/pg_type.h"
#include "utils/fmgrprotos.h"
}

namespace gputext {

/// Whether a column of this type, without domains over it, has counts.
inline bool is_count_type(Oid type) {
    return type == INT4OID || type == INT8OID || type == NUMERICOID;
}

/// The type of the counts, without domains over it, of rows that begin with a text and a count.
/// Raises an error for other columns; `rows` names them, as "words", and `wanted` is a sentence.
Oid count_type_of(TupleDesc columns, const char* rows, const char* wanted);

/// A value of such a column, a numeric rounded to an integer. Raises an error for one that is out
/// of range for bigint.
inline int64 count_of(Oid type, Datum value) {
    switch (type) {
        case INT4OID:
            return DatumGetInt32(value);
        case NUMERICOID:
            return DatumGetInt64(DirectFunctionCall1(numeric_int8, value));
        default:
            return DatumGetInt64(value);
    }
}

}  // namespace gputext
