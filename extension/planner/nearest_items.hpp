// extension/planner/nearest_items.hpp - the rows that the nearest ones are chosen from

#pragma once

#include "extension/base/postgres.hpp"

extern "C" {
#include "catalog/pg_type_d.h"
#include "executor/execdesc.h"
#include "executor/tuptable.h"
#include "nodes/execnodes.h"
}

#include <cstdint>
#include <optional>

#include "cpp/knn/float_bound.hpp"
#include "extension/base/growing_array.hpp"
#include "extension/inputs/string_rows.hpp"
#include "extension/inputs/vector_query.hpp"
#include "extension/planner/item_statement.hpp"
#include "extension/planner/nearest_keys.hpp"
#include "extension/planner/nearest_plan.hpp"
#include "extension/queries/executed_rows.hpp"
#include "extension/queries/repeated_scan.hpp"
#include "extension/values/packed_rows.hpp"

namespace gputext {

/// The plan of the item query, of rows or of bundles. `kept`: whether NearestItems reads it.
const PlannedStmt* statement_of_items(const NearestPlan& plan, bool kept);

/// Whether items of a plan for which finds_of_one() holds are to be read by NearestItems all the
/// same: they are remembered, or gputextd can keep their vectors, so that they will be. By the
/// active snapshot.
bool are_worth_keeping(const NearestPlan& plan, ParamListInfo parameters);

/// The rows of the item query whose vector or text is not null, numbered from 0: their vectors or
/// trigrams, and their other columns in files in memory, or on disk beyond
/// gputext.host_memory_limit. They are numbered in the order in which they came.
///
/// Those of one table, without keys, are numbered in the order of their places, so that gputextd
/// gives their vectors in the order in which it has them. Of their other columns nothing is kept:
/// they are read from the table, by the same snapshot, for the rows that are shown. So such rows can
/// be those of an earlier scan that the session remembers (repeated_scan.hpp), with what has changed
/// since. Functions raise errors.
class NearestItems {
public:
    /// `context` keeps the keys, and what makes trigrams.
    NearestItems(MemoryContext context, std::size_t memory_limit)
        : vectors("item", IdType{INT8OID, sizeof(int64), true}, memory_limit),
          keys(context, memory_limit),
          context_(context),
          rows_(memory_limit),
          repeated_(context) {}

    /// Runs the item query, one that was started of statement_of_items(), or takes its rows from an
    /// earlier scan.
    void read(const NearestPlan& plan, ItemStatement& statement);
    /// Whether it has taken them.
    bool remembered() const { return remembered_; }
    /// Whether all vectors are such as can be searched: of one length, with finite numbers alone,
    /// and for pgvector's types of norms that the bound of cpp/knn/float_bound.hpp holds for. Or
    /// all texts: of no more than kLongestText bytes, with trigrams that fit into memory.
    bool searchable() const { return searchable_; }
    /// The rows that an outer row of this key is compared with: all where there are no keys.
    RowsOfKey rows_of(std::uint32_t key) const {
        return keyed_ ? keys.rows_of(key) : RowsOfKey{size(), nulls_};
    }
    bool keyed() const { return keyed_; }
    /// Of `vectors`, those that count, and those that were added.
    std::size_t size() const {
        return vectors.size() - vectors.removed().size() +
               (vectors.added() == nullptr ? 0 : vectors.added()->size());
    }
    /// Whether the item query gave no row.
    bool empty() const { return size() == 0 && nulls_ == 0; }

    VectorRows vectors;  // of texts their rows alone
    StringRows trigrams;
    NearestKeys keys;

    /// Of searchable texts: makes the trigrams of others.
    TrigramReader& reader() { return *reader_; }

    const NormRange& norms() const { return norms_; }
    /// The columns of the item query before the vector or text, of one row: into a slot of at least
    /// so many columns.
    /// They are valid until the next call.
    void get(std::size_t item, TupleTableSlot* row);

    void release();

private:
    class Taker;

    void begin_places(const NearestPlan& plan, const EState* estate);
    bool take_remembered();
    void remember();
    void run(const NearestPlan& plan, ItemStatement& statement);
    void take(const ExecutedRow& row, const NearestPlan& plan);
    void keep_columns(const ExecutedRow& row);
    void set_key_types(const NearestPlan& plan, TupleDesc columns);
    void measure(const NearestPlan& plan);
    bool read_trigrams();
    ItemPointerData place_of(std::size_t item);
    bool by_place() const { return repeated_.known(); }
    InnerQueryTraits traits(const NearestPlan& plan) const;

    MemoryContext context_;
    std::optional<TrigramReader> reader_;
    PackedBytes rows_;
    GrowingArray<std::uint64_t> begins_;  // of the rows' tuples
    TupleDesc columns_ = nullptr;         // before the vector or text
    std::uint64_t nulls_ = 0;             // rows without one
    bool keyed_ = false;
    bool searchable_ = false;
    NormRange norms_;

    // Of rows of one table, whose ids are number_of_place():
    RepeatedScan repeated_;  // known for such rows
    RepeatedScan::Found found_;
    bool remembered_ = false;
    Relation table_ = nullptr;
    Snapshot snapshot_ = nullptr;
    TupleTableSlot* table_row_ = nullptr;
    GrowingArray<AttrNumber> table_columns_;    // that are the columns of the item query
    GrowingArray<ItemPointerData> null_places_;  // of rows without a vector
    GrowingArray<ItemPointerData> places_;       // of remembered rows with other ids, when asked for
};

}  // namespace gputext
