// extension/inner_query.hpp - runs the query in a text argument and packs its rows
//
// Read-only, under the caller's snapshot and rights, so that row-level security holds, and to its
// end without a cursor, so that it may use parallel workers.

#pragma once

#include "extension/packed_rows.hpp"

namespace gputext {

struct DocumentQuery {
    const char* sql;
    Oid id_type;
};

/// Packs the rows (id, document [, signature]) of the query into `rows`, showing meanwhile how many
/// there are. Documents that are null are left out, with one NOTICE. Raises an error for other
/// columns, a null id, an id of another type, a query that writes or gives no rows, and whatever
/// the query itself raises.
void run_document_query(const DocumentQuery& query, DocumentRows& rows);

}  // namespace gputext
