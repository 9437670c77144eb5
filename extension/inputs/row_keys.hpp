// extension/inputs/row_keys.hpp - numbers ids of any type, equal ids alike
//
// Equal is what the type's default equality says by the collation of the ids' column, as = between
// them does: 1.0 and 1.00 of type numeric are equal.

#pragma once

#include "extension/base/postgres.hpp"

#include <cstdint>
#include <vector>

#include "cpp/base/hash_table.hpp"
#include "extension/inputs/vector_query.hpp"

namespace gputext {

struct NumberedIds {
    std::vector<std::uint32_t> queries, items;

    // Used meanwhile:
    std::vector<std::uint32_t> hashes;  // of the queries' ids, then the items'
    HashTable<NumberSlot> table;        // rows with different ids
};

/// Numbers the ids of both, which are of one type, into `numbers`, which a memory context owns.
/// Raises an error when the type has no equality or no hash function.
void number_ids(const VectorRows& queries, const VectorRows& items, Oid collation,
                NumberedIds& numbers);

}  // namespace gputext
