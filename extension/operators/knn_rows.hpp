// extension/operators/knn_rows.hpp - reads the rows of gpu_knn's inner queries: vectors, texts,
// weights of terms, strings, or bits

#pragma once

#include "extension/base/postgres.hpp"

#include <cstdint>
#include <optional>

#include "cpp/bits/bit_distance.hpp"
#include "cpp/knn/distance.hpp"
#include "cpp/knn/key_groups.hpp"
#include "cpp/knn/neighbors.hpp"
#include "cpp/terms/tfidf.hpp"
#include "extension/inputs/frequency_query.hpp"
#include "extension/inputs/row_keys.hpp"
#include "extension/inputs/string_rows.hpp"
#include "extension/inputs/term_rows.hpp"
#include "extension/inputs/vector_query.hpp"
#include "extension/order/key_column.hpp"
#include "extension/queries/inner_query.hpp"

namespace gputext {

/// What rows are, by the types of their columns and the metric. Those of both inner queries are of one kind.
enum class RowKind { vectors, texts, weights, strings, bits };

/// What a call says of its rows.
struct KnnInput {
    InnerQuery queries;
    InnerQuery items;
    Metric metric;
    std::optional<StringMetric> string_metric;  // in place of the other, for strings
    std::optional<BitMetric> bit_metric;        // the same, for bits
    bool exclude_self;
    bool exclude_key;         // the last column is a key that excludes
    Oid config;               // the text search configuration, for texts
    TermParameters terms;     // for texts: tf_idf or bm25; for texts and weights: what is ignored
    const char* frequencies;  // the inner query, for texts; null where items have them

    bool bm25() const { return terms.weighting == TermWeighting::bm25; }
};

/// Keys of both inner queries, which have them or not.
struct KnnKeys {
    KnnKeys(MemoryContext context, std::size_t memory_limit)
        : numbers(context, memory_limit), own(context, memory_limit) {}

    /// Different keys of the items.
    std::size_t size() const { return numbers.bitwise() ? table.size() : numbers.size(); }
    /// Gives memory back; the columns stay.
    void release_keys() {
        release_own();
        numbers.release();
        table = {};
    }
    void release_own() {
        own.release();
        own_table = {};
    }

    bool given = false;
    KeyNumbers numbers;
    KeyTable table;  // of keys that are equal if their bits are
    // Of queries that are to be remembered, all keys, while they are read; `numbers` has the
    // items':
    KeyNumbers own;
    KeyTable own_table;
    KeyColumn queries, items;
    KeyColumn added;  // of items that were added: VectorRows::added()
};

struct KnnRows {
    /// The ids of queries and items are of one type. `context` keeps what the rows are made of.
    KnnRows(MemoryContext context, const IdType& id_type, std::size_t memory_limit)
        : queries("query", id_type, memory_limit),
          items("item", id_type, memory_limit),
          terms(std::in_place),
          match(context, memory_limit),
          exclude(context, memory_limit) {}
    /// Vectors whose queries and items have ids of different types; `word` names an item.
    KnnRows(MemoryContext context, const IdType& query_ids, const char* word,
            const IdType& item_ids, std::size_t memory_limit)
        : queries("query", query_ids, memory_limit),
          items(word, item_ids, memory_limit),
          match(context, memory_limit),
          exclude(context, memory_limit) {}

    RowKind kind = RowKind::vectors;
    VectorRows queries, items;
    /// Whether the items are the queries, too, as both inner queries are one: `queries` and
    /// `query_strings` are empty then.
    bool one_side = false;
    std::int64_t left_out_items = 0;  // rows of the items' inner query that were left out
    std::optional<TermNumbers> terms;            // while rows are read
    StringRows query_strings, item_strings;      // in place of vectors
    bool bytes = false;                          // these are bytea
    GivenFrequencies frequencies;      // of the terms of texts
    Oid item_collation = InvalidOid;   // of the ids
    Oid query_collation = InvalidOid;  // the same
    NumberedIds numbers;               // with exclude_self
    NumberedIds added_numbers;         // the same of items that were added: VectorRows::added()
    KnnKeys match;                     // only rows of equal keys are neighbors
    KnnKeys exclude;                   // rows of equal keys are no neighbors
    RememberedKeyColumns kept_keys;    // of the side that was read last
    double matching_pairs = 0;         // pairs of equal keys, where there are such keys
    std::uint32_t most_of_one_id = 0;  // items of one id, where both ids and keys exclude

    VectorRows& query_rows() { return one_side ? items : queries; }
    const VectorRows& query_rows() const { return one_side ? items : queries; }
    const StringRows& strings_of_queries() const {
        return one_side ? item_strings : query_strings;
    }
    MatchKeys matches() const { return {match.queries.numbers(), match.items.numbers()}; }
    /// What the search leaves out: by keys, where there are such; else by ids.
    RowKeys excluded() const {
        if (exclude.given) return {exclude.queries.numbers(), exclude.items.numbers()};
        return {numbers.queries, numbers.items};
    }
    /// The same of items that were added.
    MatchKeys added_matches() const { return {match.queries.numbers(), match.added.numbers()}; }
    RowKeys added_excluded() const {
        if (exclude.given) return {exclude.queries.numbers(), exclude.added.numbers()};
        return {added_numbers.queries, added_numbers.items};
    }
    /// What is left out of its answer: pairs of equal ids, where the search leaves out keys.
    RowKeys left_out() const {
        return exclude.given ? RowKeys{numbers.queries, numbers.items} : RowKeys{};
    }
};

/// Reads the rows of both inner queries, the items first: their terms are numbered, and of the
/// queries' only those that an item has. Where both are the same text that gives the same rows each
/// time, and there are no keys, it runs once. Raises an error for what cannot be compared, or not by the
/// metric. The items' vectors have to be awaited before they are read here.
void read_knn_rows(const KnnInput& input, KnnRows& rows);

}  // namespace gputext
