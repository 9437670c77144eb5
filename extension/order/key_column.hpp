// extension/order/key_column.hpp - numbers keys of any type, equal keys alike
//
// Equal is what the type's default equality says, as for ids, by the collation of their column:
// 1.0 and 1.00 of type numeric are equal, and a and A by a collation that does not tell them apart.
// Keys are numbered as rows come, and only the number of a row's key is kept, and each key once.
// Integers and other types whose values are equal if their bits are take no call of a function: a
// column of them keeps the values, and numbers them on threads behind the last row.

#pragma once

#include "extension/base/postgres.hpp"

extern "C" {
#include "fmgr.h"
}

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpp/base/hash_table.hpp"
#include "cpp/knn/key_table.hpp"
#include "extension/base/growing_array.hpp"

namespace gputext {

/// Keys of one type and their numbers from 0, in the order in which they came first. Functions
/// raise errors.
class KeyNumbers {
public:
    static constexpr std::uint32_t kNone = UINT32_MAX;

    /// `parent` is the memory context that keeps what is not a value. Messages call the keys
    /// `what`, and have `cast` as an example of how they are cast.
    KeyNumbers(MemoryContext parent, std::size_t memory_limit, const char* what = "keys",
               const char* cast = "key::text")
        : parent_(parent), memory_limit_(memory_limit), what_(what), cast_(cast) {}

    /// Before the first key: its type, and the collation that says which are equal. Keys of a
    /// domain are of its base type. Raises an error that names a type without a default equality
    /// that can be hashed.
    void set_type(Oid type, Oid collation);
    Oid type() const { return type_; }
    Oid collation() const { return collation_; }
    /// Whether keys are equal if their bits are.
    bool bitwise() const { return bitwise_; }
    std::size_t memory_limit() const { return memory_limit_; }
    const char* what() const { return what_; }
    /// From now on keys that are new get no number.
    void close() { closed_ = true; }
    /// kNone for a new one, once closed. Amortised O(1).
    std::uint32_t number_of(Datum key);
    std::size_t size() const { return hashes_.size(); }
    /// Gives the memory back; numbers stay valid.
    void release();

private:
    std::uint32_t hash_of(Datum key);
    bool equal(Datum a, Datum b);
    void append(Datum key, std::uint32_t hash);

    MemoryContext parent_;
    std::size_t memory_limit_, key_bytes_ = 0;
    const char *what_, *cast_;
    Oid type_ = InvalidOid, collation_ = InvalidOid;
    int16 length_ = 0;
    bool by_value_ = false, bitwise_ = false, closed_ = false;
    FmgrInfo hash_{}, equal_{};
    MemoryContext context_ = nullptr;    // of the keys that are not values
    std::vector<Datum> keys_;            // by number
    std::vector<std::uint32_t> hashes_;  // the same
    HashTable<NumberSlot> table_;
};

/// The numbers of the keys of one side's rows. Functions raise errors.
class KeyColumn {
public:
    /// `null` is the number of a row whose key is null, `unknown` of one whose key is new to closed
    /// numbers.
    void append(KeyNumbers& numbers, Datum key, bool is_null, std::uint32_t null,
                std::uint32_t unknown);
    /// The same of keys that are equal if their bits are, to be numbered behind the last row by one
    /// of the next two.
    void append(const KeyNumbers& numbers, Datum key, bool is_null);
    /// Fills the table.
    void number_by(KeyTable& table, const KeyNumbers& numbers, std::uint32_t null);
    /// By a table that was filled. `unknown` is the number of a key that it does not have.
    void look_up_in(const KeyTable& table, std::uint32_t null, std::uint32_t unknown);
    /// Puts the rows into this order of their numbers so far; none leaves them as they are.
    void reorder(const std::vector<std::uint32_t>& order);
    const std::vector<std::uint32_t>& numbers() const { return numbers_; }

private:
    void end_values(std::uint32_t null);

    std::vector<std::uint32_t> numbers_;
    GrowingArray<std::uint64_t> values_;  // of keys that are equal if their bits are
    std::vector<std::uint32_t> nulls_;    // rows of these
};

}  // namespace gputext
