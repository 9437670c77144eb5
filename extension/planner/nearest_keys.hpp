// extension/planner/nearest_keys.hpp - numbers what an outer row and its items have to be equal in

#pragma once

#include "extension/base/postgres.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpp/knn/key_groups.hpp"
#include "extension/order/key_column.hpp"

namespace gputext {

/// Rows that have one key.
struct RowsOfKey {
    std::uint64_t items = 0;
    std::uint64_t nulls = 0;  // rows without a vector or text
};

/// Keys of one or more columns, numbered from 0, and how many rows have each. A row whose key is
/// null in a column has kNoKey, as `=` holds for none. Functions raise errors.
class NearestKeys {
public:
    NearestKeys(MemoryContext context, std::size_t memory_limit)
        : context_(context), memory_limit_(memory_limit) {}

    /// Before the first key: the types of its columns, at least one. Keys whose equality goes by a
    /// collation that is not deterministic are none (nearest_shape.hpp).
    void set_types(const std::vector<Oid>& types);
    /// Counts the row, and keeps its number if it is an item.
    void add_item(const Datum* values, const bool* nulls, bool has_vector);
    /// Behind the last item.
    void end_items();
    /// kNoKey for a key that no row of the items has.
    std::uint32_t number_of(const Datum* values, const bool* nulls);
    RowsOfKey rows_of(std::uint32_t key) const { return key == kNoKey ? RowsOfKey{} : rows_[key]; }
    const std::vector<std::uint32_t>& items() const { return items_; }
    void release();

private:
    std::uint32_t number_of_pair(std::size_t pair, std::uint32_t left, std::uint32_t right);

    MemoryContext context_;
    std::size_t memory_limit_;
    std::vector<KeyNumbers> columns_;
    /// Pair i numbers what the columns up to i give together with column i + 1.
    std::vector<KeyNumbers> pairs_;
    std::vector<std::uint32_t> items_;
    std::vector<RowsOfKey> rows_;  // by key
};

}  // namespace gputext
