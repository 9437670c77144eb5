#include "extension/types/count_column.hpp"

extern "C" {
#include "parser/parse_coerce.h"
#include "utils/builtins.h"
}

#include "extension/types/column_types.hpp"

namespace gputext {

Oid count_type_of(TupleDesc columns, const char* rows, const char* wanted) {
    const Oid type = base_type_of_column(columns, 1);
    const bool fits[2] = {IsBinaryCoercible(base_type_of_column(columns, 0), TEXTOID),
                          is_count_type(type)};
    for (int i = 0; i < 2; ++i)
        if (!fits[i])
            ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
                            errmsg("column %d of the %s is of type %s", i + 1, rows,
                                   format_type_be(TupleDescAttr(columns, i)->atttypid)),
                            errdetail("%s", wanted)));
    return type;
}

}  // namespace gputext
