// extension/rows/document_query.hpp - packs the documents that an inner query gives

#pragma once

#include "extension/base/postgres.hpp"

#include <optional>
#include <vector>

#include "cpp/documents/ctph.hpp"
#include "cpp/documents/documents.hpp"
#include "extension/rows/inner_query.hpp"
#include "extension/rows/laid_out_bytes.hpp"
#include "extension/rows/row_ids.hpp"

namespace gputext {

/// Documents with their ids and perhaps their signatures.
struct DocumentRows {
    DocumentRows(const IdType& id_type, std::size_t memory_limit)
        : ids(id_type, memory_limit), bytes(memory_limit) {}

    RowIds ids;
    LaidOutBytes bytes;                           // of all documents
    bool binary = false;                          // bytea, which has no characters but bytes
    std::vector<Extent> extents;                  // of each row's document
    std::vector<std::optional<Ctph>> signatures;  // empty, or one a row

    /// As PackedBytes::release().
    void release() {
        ids.release();
        bytes.release();
    }
};

/// Packs the rows (id, document [, signature]) of the query into `rows`, by their ids where the
/// query has no order of its own, showing meanwhile how many there are. Documents are read in
/// parallel workers. Documents that are null are left out, with one NOTICE. Raises an error for
/// other columns, and what run_inner_query() raises.
void run_document_query(const InnerQuery& query, DocumentRows& rows);

}  // namespace gputext
