#include "extension/queries/collected_rows.hpp"

#include <cstdint>
#include <vector>

#include "extension/base/failure.hpp"
#include "extension/base/owned.hpp"
#include "extension/order/row_order.hpp"
#include "extension/values/row_threads.hpp"

namespace gputext {

void CollectedRows::set_columns(std::size_t columns) {
    attempt_or_raise([&] {
        for (std::size_t column = 0; column < columns; ++column)
            values_[column].emplace(memory_limit_ / columns);
    });
}

void CollectedRows::append_values(std::span<const Datum> values, const InnerQueryTraits& query,
                                  const RowOrigin& row) {
    if (!values.empty() && !values_[0]) set_columns(values.size());
    for (std::size_t column = 0; column < values.size(); ++column)
        values_[column]->append(values[column], !query.parallel_safe,
                                column == 0 ? row : RowOrigin());
    if (keeps_places_ && row.place.known()) append_or_raise(places_, row.place.row);
}

void CollectedRows::end(bool ordered, std::span<KeyColumn* const> keys) {
    auto* const order = make_owned<std::vector<std::uint32_t>>(CurrentMemoryContext);
    if (ids_) put_in_order(*ids_, ordered, *order);
    for (std::optional<StoredValues>& column : values_)
        if (column) column->finish(*order);
    if (!order->empty() && places_.size() == order->size())
        run_on_rows(order->size(),
                    [&](Execution& execution) { return put_in_order(places_, *order, execution); });
    for (KeyColumn* const column : keys) column->reorder(*order);
    order->clear();
    order->shrink_to_fit();
}

std::uint64_t CollectedRows::unpacked_bytes() const {
    std::uint64_t bytes = 0;
    for (const std::optional<StoredValues>& column : values_)
        if (column) bytes += column->unpacked_bytes();
    return bytes;
}

void CollectedRows::release_values() {
    for (std::optional<StoredValues>& column : values_) {
        if (column) column->release();
        column.reset();
    }
}

}  // namespace gputext
