// extension/order/row_order.hpp - puts the rows of an inner query into the order of their ids
//
// Rows that come from parallel workers, or from a scan that began in the middle of its table, come
// in no order, but which of two equal neighbors is the nearer one, and by which document a group
// is called, follows the order of rows. So rows of a query without an ORDER BY of its own are taken
// by their ids, where the type of the ids has a default order: that of ORDER BY. Rows with equal
// ids stay as they came.

#pragma once

#include "extension/base/postgres.hpp"

#include <cstdint>
#include <span>
#include <vector>

#include "extension/order/row_ids.hpp"

namespace gputext {

/// Fills `order` with the numbers of the rows by their ids, or leaves it empty where they are in
/// order already, or cannot be ordered. Takes O(n) comparisons for rows in order, O(n log n) for
/// others. Raises errors.
void order_by_id(const RowIds& ids, std::vector<std::uint32_t>& order);
/// The same in the order of a collation, by which ids may be equal that have other bytes.
void order_by_id(const RowIds& ids, Oid collation, std::vector<std::uint32_t>& order);

/// Ends the appending of the ids, and puts them into their order, which `order` gets as from
/// order_by_id(), unless rows are `ordered`. Raises errors.
void put_in_order(RowIds& ids, bool ordered, std::vector<std::uint32_t>& order);

/// Whether the type has a default order. False for InvalidOid.
bool has_order(Oid type);

/// Whether ids in order, none of which is equal to another, have no other order: false also for a
/// type that has none. O(n) comparisons. Raises errors.
bool have_one_order(const RowIds& ids);

/// Where ids that were added, in order, come among ids that have one order and of which those with
/// the numbers `removed`, ascending, are gone: fills `before` with how many ids, gone or not, are
/// less than each. False where one that was added is equal to another or to one that is not gone.
/// O(n log m) comparisons. Raises errors.
bool find_places(const RowIds& ids, std::span<const std::uint32_t> removed, const RowIds& added,
                 std::vector<std::uint32_t>& before);

}  // namespace gputext
