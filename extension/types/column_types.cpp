#include "extension/types/column_types.hpp"

extern "C" {
#include "utils/builtins.h"
#include "utils/lsyscache.h"
}

namespace gputext {

Oid base_type_of_column(TupleDesc columns, int column) {
    return getBaseType(TupleDescAttr(columns, column)->atttypid);
}

Oid narrow_id_type(TupleDesc columns, int column, Oid wanted, const IdTypePlace& place) {
    const Oid found = TupleDescAttr(columns, column)->atttypid;
    if (found == wanted || !OidIsValid(wanted)) return InvalidOid;
    if (wanted == INT8OID) {
        const Oid base = getBaseType(found);
        if (base == INT8OID) return InvalidOid;
        if (base == INT2OID || base == INT4OID || base == OIDOID) return base;
    }
    const char* const type = format_type_be(found);
    ereport(
        ERROR,
        (errcode(ERRCODE_DATATYPE_MISMATCH),
         errmsg("the ids of the inner query are of type %s, not %s", type, format_type_be(wanted)),
         place.ids_of_two
             ? errhint("Write id_type => NULL::%s right after %s, and give the arguments after it "
                       "by their names. If the ids of the two are of different types, cast "
                       "both to text, as in id::text, and write id_type => NULL::text.",
                       type, place.after)
             : errhint("Write id_type => NULL::%s right after %s, and give the arguments after it "
                       "by their names.",
                       type, place.after)));
    pg_unreachable();
}

Oid common_collation(Oid a, Oid b, const char* what, const char* example) {
    const auto deterministic = [](Oid collation) {
        return !OidIsValid(collation) || get_collation_isdeterministic(collation);
    };
    if (a == b || (deterministic(a) && deterministic(b))) return a;
    const auto name = [](Oid collation) {
        return OidIsValid(collation) ? get_collation_name(collation) : "none";
    };
    ereport(ERROR,
            (errcode(ERRCODE_COLLATION_MISMATCH),
             errmsg("%s of collation \"%s\" cannot be compared with %s of collation \"%s\"", what,
                    name(a), what, name(b)),
             errdetail("A collation that is not deterministic says which of them are equal."),
             errhint("Give both the same collation, as in %s COLLATE \"C\".", example)));
    pg_unreachable();
}

}  // namespace gputext
