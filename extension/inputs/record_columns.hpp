// extension/inputs/record_columns.hpp - columns of records as fields that a linkage model compares
//
// Texts are compared by their characters, numbers and dates as numbers, arrays as sets, and values
// of any other type are equal if their text is. Integers and numeric that are compared by equality
// alone are told by their digits, so that none is rounded.

#pragma once

#include "extension/base/postgres.hpp"

extern "C" {
#include "access/tupdesc.h"
#include "fmgr.h"
}

#include <string>

#include "cpp/records/comparison.hpp"
#include "cpp/records/field_values.hpp"
#include "extension/base/growing_array.hpp"
#include "extension/order/key_column.hpp"
#include "extension/values/packed_rows.hpp"

namespace gputext {

/// How values are read.
enum class RecordForm {
    text,
    unpadded,  // char(n), whose blanks at the end mean nothing
    name,
    decimal,  // integers and numeric
    real,     // real and double precision
    date,
    output  // of any other type, by its text
};

/// The type of a column, or of the elements of its arrays.
struct RecordType {
    Oid type = InvalidOid;  // no domain
    RecordForm form = RecordForm::output;
    bool is_array = false;

    FieldKind kind() const;
};

RecordType record_type_of(TupleDesc columns, int column);

/// A column of the records of one or two inner queries. Functions raise errors, but for those that
/// say so.
class RecordColumn {
public:
    /// `comparison` is that of the field, null for a column that keys alone have; it outlives the
    /// column. Raises no errors; throws std::bad_alloc.
    RecordColumn(std::string name, const FieldComparison* comparison, std::size_t memory_limit)
        : name_(std::move(name)),
          comparison_(comparison),
          memory_limit_(memory_limit),
          bytes_(memory_limit / 2),
          begins_(memory_limit / 2) {}

    const std::string& name() const { return name_; }
    std::size_t memory_limit() const { return memory_limit_; }
    bool is_field() const { return comparison_ != nullptr; }
    std::uint64_t bytes() const { return bytes_.size() + begins_.size(); }

    /// Whether values of that column can be compared with those of the query before.
    bool fits(TupleDesc columns, int column) const;
    /// Before the rows of a query, whose column of that number it is. Raises an error for values
    /// that the comparison does not apply to, or that are of another kind than those of the query
    /// before.
    void begin_rows(TupleDesc columns, int column);
    /// Before the rows of a query of arrays, whose elements are then told apart by these numbers and
    /// not by their bytes; null for the bytes.
    void number_elements_by(KeyNumbers* numbers) { element_numbers_ = numbers; }
    /// The value of a row with these columns. The current memory context is the row's.
    void append(const Datum* values, const bool* nulls);
    /// After the last row.
    void finish();
    /// After finish() and until release(): what FieldValues are made of. Raises no errors.
    FieldRows rows() const;
    /// As PackedBytes::release().
    void release();

private:
    /// Whether values are only equal or not.
    bool compares_equality() const;
    FieldKind stored_kind() const;
    void append_begin();
    void append_set(Datum array);
    /// The bytes that tell a value from others of its type.
    struct ValueBytes {
        const void* bytes;
        std::size_t size;
    };
    ValueBytes bytes_of(Datum value);
    ValueBytes bytes_of_element(Datum element);

    std::string name_;
    const FieldComparison* comparison_;
    std::size_t memory_limit_;
    RecordType type_;
    Oid declared_type_ = InvalidOid;
    bool begun_ = false;
    int column_ = 0;
    FmgrInfo output_{};
    int16 element_length_ = 0;  // of arrays
    bool element_by_value_ = false;
    char element_align_ = 0;
    KeyNumbers* element_numbers_ = nullptr;
    std::uint32_t element_number_ = 0;  // where bytes_of_element() may have its answer
    PackedBytes bytes_, begins_;
    GrowingArray<std::uint8_t> nulls_;
    double number_ = 0;  // where bytes_of() may have its answer
    char digits_[32] = {};
};

}  // namespace gputext
