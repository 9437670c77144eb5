// extension/inputs/document_query.hpp - packs the documents that an inner query gives

#pragma once

#include "extension/base/postgres.hpp"

#include <optional>
#include <vector>

#include "cpp/documents/ctph.hpp"
#include "cpp/documents/documents.hpp"
#include "extension/inputs/inner_queries.hpp"
#include "extension/order/row_ids.hpp"
#include "extension/values/laid_out_bytes.hpp"
#include "extension/values/stored_values.hpp"

namespace gputext {

/// Documents with their ids and perhaps their signatures, of one inner query or of two.
struct DocumentRows {
    DocumentRows(const IdType& id_type, bool may_have_signatures, std::size_t memory_limit)
        : takes_signatures(may_have_signatures),
          ids(id_type, memory_limit),
          second_ids(id_type, memory_limit),
          values(memory_limit),
          laid_out(memory_limit) {}

    const bool takes_signatures;  // as the third column

    RowIds ids, second_ids;  // the documents of the second query follow those of the first
    /// The documents' bytes: as they were collected where all of them are there, or laid out.
    StoredValues values;
    LaidOutBytes laid_out;
    FileDescriptor values_file;                   // once shared
    bool binary = false;                          // bytea, which has no characters but bytes
    std::vector<Extent> extents;                  // of each row's document
    std::vector<std::optional<Ctph>> signatures;  // empty, or one a row

    /// Of a document, in the order of all.
    Datum id(std::size_t document) const {
        return document < ids.size() ? ids.at(document) : second_ids.at(document - ids.size());
    }
    const std::uint8_t* bytes() const {
        return values.plain() ? values.plain_bytes().data() : laid_out.data();
    }
    /// With what may lie between documents.
    std::uint64_t byte_count() const {
        return values.plain() ? values.plain_bytes().size() : laid_out.size();
    }
    /// Makes the bytes readable for another process.
    void share() {
        if (values.plain()) values_file = values.plain_bytes().share();
    }
    FileParts files() const {
        return values.plain() ? FileParts(values_file.get()) : laid_out.share();
    }

    /// As PackedBytes::release().
    void release_bytes() {
        values.release();
        values_file.reset();
        laid_out.release();
    }
    void release() {
        ids.release();
        second_ids.release();
        release_bytes();
    }
};

/// Packs the rows (id, document [, signature]) of the query, or of both, into `rows`, by their ids
/// where a query has no order of its own, showing meanwhile how many there are. Documents are read
/// in parallel workers. Documents that are null are left out, with one NOTICE. Raises an error for
/// other columns, where one query gives texts and the other bytea, and what run_inner_query()
/// raises.
void run_document_queries(const InnerQueries& queries, DocumentRows& rows);

}  // namespace gputext
