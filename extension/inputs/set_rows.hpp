// extension/inputs/set_rows.hpp - reads texts, arrays or the lexemes of tsvector as sets, with their
// ids

#pragma once

#include "extension/base/postgres.hpp"

#include <cstdint>
#include <string>
#include <vector>

#include "extension/inputs/inner_queries.hpp"
#include "extension/inputs/record_columns.hpp"
#include "extension/order/row_ids.hpp"

namespace gputext {

/// The rows (id; text, array or tsvector) of an inner query or of two, those of the second behind those of the
/// first. Elements of arrays are equal if the default equality of their type says so by the collation
/// of the column. Functions raise errors, but for those that say so.
class SetRows {
public:
    /// The current memory context keeps elements until they are read. Raises no errors; throws
    /// std::bad_alloc.
    SetRows(const IdType& id_type, std::size_t memory_limit)
        : ids_(id_type, memory_limit),
          second_ids_(id_type, memory_limit),
          column_("set", nullptr, memory_limit),
          elements_(CurrentMemoryContext, memory_limit, "elements", "items::text[]") {}

    /// Runs the query, or both, showing meanwhile how many rows there are. Rows with a null are left
    /// out, with a NOTICE. Raises an error for other columns, for texts beside arrays, and what
    /// run_inner_query() raises.
    void read(const InnerQueries& queries);

    std::size_t size() const { return ids_.size() + second_ids_.size(); }
    /// Rows of the first query.
    std::size_t split() const { return ids_.size(); }
    /// Whether they are arrays, or lexemes, and not texts.
    bool arrays() const { return kind_ == FieldKind::set; }
    std::uint64_t bytes() const { return column_.bytes(); }
    /// What was read, in no order.
    FieldRows values() const { return column_.rows(); }
    /// The row of values() that is at a place in the order of rows.
    std::uint32_t row(std::size_t place) const {
        return order_.empty() ? static_cast<std::uint32_t>(place) : order_[place];
    }
    Datum id(std::size_t place) const {
        return place < ids_.size() ? ids_.at(place) : second_ids_.at(place - ids_.size());
    }

    void release_values() { column_.release(); }
    void release() {
        ids_.release();
        second_ids_.release();
    }

private:
    friend class SetReceiver;

    void end_rows(RowIds& ids, bool ordered);

    RowIds ids_, second_ids_;
    FieldKind kind_ = FieldKind::text;
    Oid type_ = InvalidOid;  // of the query that ran last
    Oid collation_ = InvalidOid;  // the same
    RecordColumn column_;
    KeyNumbers elements_;  // of arrays that are not told by their bytes, whose type it has then
    std::vector<std::uint32_t> order_;  // empty where rows came in their order
};

}  // namespace gputext
