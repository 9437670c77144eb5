// extension/operators/tfidf_items.hpp - reads the texts of tfidf's inner query as counts of terms

#pragma once

#include "extension/base/postgres.hpp"

#include <cstddef>

#include "extension/rows/inner_query.hpp"
#include "extension/rows/term_rows.hpp"
#include "extension/rows/vector_query.hpp"

namespace gputext {

/// Rows of texts: for each the numbers of its terms, ascending, and how often it has them.
struct TfidfItems {
    TfidfItems(const IdType& id_type, std::size_t memory_limit)
        : rows("item", id_type, memory_limit) {}

    VectorRows rows;
    /// Numbered as the rows have them. With terms that are closed before, all others are left out.
    TermNumbers terms;
};

/// Runs the inner query, which gives an id and a text or tsvector; `config` is the text search
/// configuration of texts. Raises an error for other columns and for what run_inner_query() and
/// read_terms() refuse.
void read_tfidf_items(const InnerQuery& query, Oid config, TfidfItems& items);

}  // namespace gputext
