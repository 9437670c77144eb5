// extension/queries/collected_rows.hpp - the rows of an inner query until they are read
//
// Values are collected as the executor gives them (stored_values.hpp), and put in order when the
// last row has come.

#pragma once

#include "extension/base/postgres.hpp"

#include <cstddef>
#include <optional>
#include <span>

#include "extension/base/growing_array.hpp"
#include "extension/order/key_column.hpp"
#include "extension/order/row_ids.hpp"
#include "extension/queries/inner_query.hpp"
#include "extension/values/stored_values.hpp"

namespace gputext {

/// Rows of an id, perhaps, and one or two values that are not null. Functions raise errors.
class CollectedRows {
public:
    explicit CollectedRows(std::size_t memory_limit) : memory_limit_(memory_limit) {}
    CollectedRows(const IdType& id_type, std::size_t memory_limit) : memory_limit_(memory_limit) {
        ids_.emplace(id_type, memory_limit);
    }

    /// Before the first row: rows have ids after all. Inside attempt().
    void set_id_type(const IdType& id_type) { ids_.emplace(id_type, memory_limit_); }

    /// Before the first row: each has so many values. append_values() does it, too.
    void set_columns(std::size_t columns);
    void append_id(Datum id) { ids_->append(id); }
    /// The values of a row, to be read later. They are fetched or copied at once if the query is
    /// not safe in parallel workers. `row` is that of the first value, as RowReceiver::row().
    void append_values(std::span<const Datum> values, const InnerQueryTraits& query,
                       const RowOrigin& row);
    /// As RowReceiver::forget_row_versions().
    void forget_row_versions() {
        if (values_[0]) values_[0]->forget_row_versions();
        places_.clear();
    }
    /// Before the first row: places() will be asked for.
    void keep_places() { keeps_places_ = true; }
    /// After the last row: puts rows that have ids into the order of these, unless rows are
    /// `ordered`. `keys` have a number for each row, and are put into the same order.
    void end(bool ordered, std::span<KeyColumn* const> keys = {});

    bool has_ids() const { return ids_.has_value(); }
    RowIds& ids() { return *ids_; }
    const RowIds& ids() const { return *ids_; }
    /// The values of a column, one of set_columns().
    StoredValues& values(std::size_t column) { return *values_[column]; }
    bool has_values(std::size_t column) const { return values_[column].has_value(); }
    /// Size of all values when they are fetched and unpacked.
    std::uint64_t unpacked_bytes() const;
    /// After end(): where the rows of the first values lie in their table; fewer than there are
    /// rows where that is not known.
    std::span<const ItemPointerData> places() const { return {places_.data(), places_.size()}; }
    /// Gives the values back, and keeps the ids and places.
    void release_values();

private:
    std::size_t memory_limit_;
    std::optional<RowIds> ids_;
    std::optional<StoredValues> values_[2];
    bool keeps_places_ = false;
    GrowingArray<ItemPointerData> places_;
};

}  // namespace gputext
