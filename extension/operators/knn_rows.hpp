// extension/operators/knn_rows.hpp - reads the rows of gpu_knn's inner queries: vectors, texts or
// weights of terms

#pragma once

#include "extension/base/postgres.hpp"

#include <optional>

#include "cpp/knn/distance.hpp"
#include "extension/rows/inner_query.hpp"
#include "extension/rows/row_keys.hpp"
#include "extension/rows/term_rows.hpp"
#include "extension/rows/vector_query.hpp"

namespace gputext {

/// What rows are, by the types of their columns. Those of both inner queries are of one kind.
enum class RowKind { vectors, texts, weights };

/// What a call says of its rows.
struct KnnInput {
    InnerQuery queries;
    InnerQuery items;
    Metric metric;
    bool exclude_self;
    Oid config;                            // the text search configuration, for texts
    std::uint32_t min_document_frequency;  // for texts and weights
};

struct KnnRows {
    /// The ids of queries and items are of one type.
    KnnRows(const IdType& id_type, std::size_t memory_limit)
        : queries("query", id_type, memory_limit),
          items("item", id_type, memory_limit),
          terms(std::in_place) {}
    /// Vectors whose queries and items have ids of different types; `word` names an item.
    KnnRows(const IdType& query_ids, const char* word, const IdType& item_ids,
            std::size_t memory_limit)
        : queries("query", query_ids, memory_limit), items(word, item_ids, memory_limit) {}

    RowKind kind = RowKind::vectors;
    VectorRows queries, items;
    std::optional<TermNumbers> terms;  // while rows are read
    NumberedIds numbers;               // with exclude_self

    RowKeys keys() const { return {numbers.queries, numbers.items}; }
};

/// Reads the rows of both inner queries, the items first: their terms are numbered, and of the
/// queries' only those that an item has. Raises an error for what cannot be compared, or not by the
/// metric. The items' vectors have to be awaited before they are read here.
void read_knn_rows(const KnnInput& input, KnnRows& rows);

}  // namespace gputext
