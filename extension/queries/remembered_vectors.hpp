// extension/queries/remembered_vectors.hpp - rows with vectors that stay when their statement has
// ended

#pragma once

#include "extension/base/postgres.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "cpp/base/vectors.hpp"
#include "extension/order/key_column.hpp"
#include "extension/order/row_ids.hpp"
#include "extension/types/vector_type.hpp"

namespace gputext {

/// The keys in the columns behind the vectors; null where there is no such column.
using RememberedKeyColumns = std::array<std::shared_ptr<const RememberedKeys>, 2>;

/// Their ids, what gputextd calls the bytes of their vectors, and their keys.
struct RememberedVectors {
    VectorType type;
    std::size_t dimensions;
    std::uint64_t resident;
    std::uint64_t unpacked;  // as in take_resident_column()
    RememberedIds ids;
    RememberedKeyColumns keys;

    std::uint64_t bytes() const { return ids.size * row_size(type.element, dimensions); }
    std::size_t memory() const {
        std::size_t bytes = sizeof *this + ids.memory();
        for (const auto& column : keys)
            if (column != nullptr) bytes += column->memory();
        return bytes;
    }
};

/// A row that came later. Its values last as long as what gives it.
struct AddedRow {
    Datum id, value;  // neither is null
    std::array<NullableDatum, 2> keys{};
};

/// How rows differ from those that are remembered.
struct RowChanges {
    std::span<const std::uint32_t> removed;  // their numbers among the remembered rows, ascending
    std::span<const AddedRow> added;         // in no order
};

}  // namespace gputext
