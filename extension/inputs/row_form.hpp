// extension/inputs/row_form.hpp - forms the tuples of many rows of one kind

#pragma once

#include "extension/base/postgres.hpp"

extern "C" {
#include "access/htup.h"
#include "access/tupdesc.h"
}

#include <cstddef>
#include <cstdint>

namespace gputext {

/// The tuple of a row without nulls, formed in the same memory again and again. It has the bytes
/// that heap_form_tuple() gives, which looks at the columns three times and allocates the tuple.
class RowForm {
public:
    /// Allocates in the current memory context.
    explicit RowForm(TupleDesc columns);

    /// The row as a tuple, valid until the next call; null for a row that heap_form_tuple() has to
    /// form: one with nulls, one that is long, or one of a type or value that is not known here.
    HeapTuple form(const Datum* values, const bool* nulls);

private:
    struct Column {
        std::uint8_t align;
        std::int16_t length;  // -1 of varlena
        bool by_value;
        bool may_be_short;  // of varlena, which then has a header of one byte
    };

    /// Write a value at or behind `to`, and return its end; null where there is no room for it, or
    /// it is not stored in a row as it is.
    char* write(const Column& column, Datum value, char* to) const;
    char* write_varlena(const Column& column, const char* from, char* to) const;
    bool has_room(const char* to, std::size_t size) const {
        return size + MAXIMUM_ALIGNOF <= static_cast<std::size_t>(begin_ + kRoom - to);
    }

    static constexpr int kMostColumns = 16;
    static constexpr std::size_t kRoom = 2048;  // bytes of all values of a row

    int count_ = 0;  // of columns; 0 where this class can do nothing
    Column columns_[kMostColumns];
    HeapTupleData tuple_;
    char* begin_;  // of the values
};

}  // namespace gputext
