// extension/order/row_ids.hpp - stores the ids of an inner query's rows, of any type

#pragma once

#include "extension/base/postgres.hpp"

#include <memory>
#include <span>
#include <vector>

#include "extension/values/packed_rows.hpp"

namespace gputext {

/// Ids that stay when their statement has ended, in the order of its rows.
struct RememberedIds {
    IdType type;
    std::size_t size;
    std::size_t stride;                 // as in RowIds
    std::uint64_t bytes;                // what RowIds::bytes() was
    std::vector<std::uint64_t> packed;  // aligned for any type
    std::vector<std::uint64_t> begins;  // as in RowIds

    std::size_t memory() const { return (packed.size() + begins.size()) * sizeof(std::uint64_t); }
};

/// Functions raise errors.
class RowIds {
public:
    RowIds(const IdType& type, std::size_t memory_limit);

    void append(Datum id);
    const IdType& type() const { return type_; }
    std::size_t size() const { return size_; }
    std::uint64_t bytes() const { return remembered_ ? remembered_->bytes : bytes_.size(); }

    /// Ends the appending; what follows is for then.
    void finish() {
        bytes_.finish();
        packed_ = bytes_.data();
        places_ = begins_.data();
    }
    /// Puts the rows into this order of their numbers so far; none leaves them as they are.
    void reorder(const std::vector<std::uint32_t>& order);
    Datum at(std::size_t row) const {
        return type_.by_value ? reinterpret_cast<const Datum*>(packed_)[row]
                              : PointerGetDatum(packed_ + begin_of(row));
    }
    /// Writes the ids of the rows to `ids`. Faster than at() for each, where rows are many and in
    /// no order: the processor fetches one id while it still waits for another.
    void at(std::span<const std::uint32_t> rows, Datum* ids) const;

    /// After finish() and reorder(): a copy to be remembered. Raises no errors; throws
    /// std::bad_alloc.
    RememberedIds copy() const;
    /// Takes ids of this type in the place of appending them.
    void take(std::shared_ptr<const RememberedIds> ids);

    /// "pair 17" for the row with the id 17, where `word` is "pair". Allocates. During the
    /// appending, too.
    const char* name_of(const char* word, Datum id) const;

    /// As PackedBytes::release().
    void release();

private:
    std::size_t begin_of(std::size_t row) const {
        return stride_ > 0 ? row * stride_ : places_[row];
    }

    IdType type_;
    std::size_t stride_;  // from one id to the next; 0 where they are of several lengths
    std::size_t size_ = 0;
    PackedBytes bytes_;
    std::vector<std::uint64_t> begins_;  // of ids of several lengths
    std::vector<Datum> ordered_;         // the ids, where they are values in another order
    std::shared_ptr<const RememberedIds> remembered_;  // in place of all of these
    const std::uint8_t* packed_ = nullptr;   // of the bytes or the ordered ids, once finished
    const std::uint64_t* places_ = nullptr;  // of the ids of several lengths, the same
};

}  // namespace gputext
