// extension/types/column_types.hpp - the types of columns; checks that of ids, and widens ids to
// bigint

#pragma once

#include "extension/base/postgres.hpp"

extern "C" {
#include "access/tupdesc.h"
#include "catalog/pg_type.h"
}

namespace gputext {

/// The type of a column, counted from 0, without the domains over it.
Oid base_type_of_column(TupleDesc columns, int column);

/// Where a call has the argument id_type, for hints.
struct IdTypePlace {
    const char* after = "the inner query";
    bool ids_of_two = false;  // whether two inner queries have ids, which are of one type
};

/// The type that the ids in a column, counted from 0, are to be widened from where ids of the type
/// `wanted` are wanted: InvalidOid where they stay as they are, and for InvalidOid. A domain's
/// values are those of its base type. Raises an error for ids of another type, whose hint says
/// what to write at that `place`.
Oid narrow_id_type(TupleDesc columns, int column, Oid wanted, const IdTypePlace& place);

/// The collation by which values of two columns are compared; InvalidOid where their type has none.
/// Values are equal by any collation that is deterministic if their bytes are. Raises an error for
/// two collations of which one is not: none of them is known to say what is equal. `what` names
/// the values, as in "ids", and `example` one of them.
Oid common_collation(Oid a, Oid b, const char* what, const char* example);

/// The id of that narrow type as a bigint. Values of type oid have no sign.
inline Datum widened_id(Datum id, Oid narrow_type) {
    switch (narrow_type) {
        case INT2OID:
            return Int64GetDatum(DatumGetInt16(id));
        case INT4OID:
            return Int64GetDatum(DatumGetInt32(id));
        case OIDOID:
            return Int64GetDatum(DatumGetObjectId(id));
        default:
            return id;
    }
}

}  // namespace gputext
