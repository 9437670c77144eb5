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
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "cpp/base/hash_table.hpp"
#include "cpp/knn/key_table.hpp"
#include "extension/base/growing_array.hpp"

namespace gputext {

/// Keys of rows that stay when their statement has ended: of each row the number of its key, and
/// each key once.
struct RememberedKeys {
    static constexpr std::uint32_t kNull = UINT32_MAX;

    std::vector<std::uint32_t> numbers;  // of the rows' keys, or kNull
    bool by_value = false;
    std::vector<std::uint64_t> keys;   // by number: values, or where they begin in `bytes`
    std::vector<std::uint64_t> bytes;  // aligned for any type

    std::size_t size() const { return keys.size(); }
    Datum key(std::size_t number) const {
        if (by_value) return static_cast<Datum>(keys[number]);
        return PointerGetDatum(reinterpret_cast<const char*>(bytes.data()) + keys[number]);
    }
    std::size_t memory() const {
        return sizeof *this + numbers.size() * sizeof numbers[0] +
               (keys.size() + bytes.size()) * sizeof keys[0];
    }
};

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
    /// Memory in use.
    std::size_t bytes() const { return key_bytes_ + table_.bytes() + keys_.size() * 12; }
    /// Puts the keys into `copied`, by number. Raises no errors; throws std::bad_alloc.
    void copy(RememberedKeys& copied) const;
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
    std::span<const std::uint32_t> numbers() const {
        return own_numbers_ ? std::span(kept_->numbers) : std::span(numbers_);
    }

    /// Has the keys stay. So far a null has the number kNull, and all keys are numbered by
    /// `numbers` or, if equal bits are equal keys, by the table, and no others are.
    void keep(const KeyNumbers& numbers, const KeyTable& table);
    /// Takes such keys in the place of appending them.
    void take(std::shared_ptr<const RememberedKeys> keys) { kept_ = std::move(keys); }
    /// Null for none.
    const std::shared_ptr<const RememberedKeys>& kept() const { return kept_; }
    /// After look_up_kept(): more may be appended.
    void keep_no_more() { kept_.reset(); }
    void clear() { *this = {}; }
    /// After keep(), the numbers are those so far.
    void use_own_numbers() { own_numbers_ = true; }
    /// After keep() or take(), each row has the number of its key in `numbers` or in the table,
    /// which is not filled anew.
    void look_up_kept(KeyNumbers& numbers, const KeyTable& table, std::uint32_t null,
                      std::uint32_t unknown);
    /// After take(), the keys get numbers in `numbers` or in the table, which is filled with them.
    /// So do rows that were added, whose values have been appended to `added` if equal bits are
    /// equal keys.
    void number_kept(KeyNumbers& numbers, KeyTable& table, std::uint32_t null, KeyColumn& added);

private:
    void end_values(std::uint32_t null);
    void number_different(KeyNumbers& numbers, std::uint32_t unknown);
    void number_rows(std::uint32_t null);

    std::vector<std::uint32_t> numbers_;
    GrowingArray<std::uint64_t> values_;  // of keys that are equal if their bits are
    std::vector<std::uint32_t> nulls_;    // rows of these
    std::shared_ptr<const RememberedKeys> kept_;
    bool own_numbers_ = false;                   // those of the kept keys, in place of numbers_
    std::vector<std::uint32_t> number_of_kept_;  // while they are numbered: of each different key
};

}  // namespace gputext
