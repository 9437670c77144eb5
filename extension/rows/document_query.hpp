// extension/rows/document_query.hpp - packs the documents that an inner query gives

#pragma once

#include "extension/rows/inner_query.hpp"
#include "extension/rows/packed_rows.hpp"

namespace gputext {

/// Packs the rows (id, document [, signature]) of the query into `rows`, showing meanwhile how many
/// there are. Documents that are null are left out, with one NOTICE. Raises an error for other
/// columns, and what run_inner_query() raises.
void run_document_query(const InnerQuery& query, DocumentRows& rows);

}  // namespace gputext
