#include "extension/inputs/record_columns.hpp"

extern "C" {
#include "catalog/pg_type.h"
#include "parser/parse_coerce.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/date.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"
#include "utils/numeric.h"
}

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "extension/base/failure.hpp"
#include "extension/types/column_types.hpp"

namespace gputext {
namespace {

/// Elements of an array between two looks for an interrupt.
constexpr int kPart = 1024;

RecordForm form_of(Oid type) {
    switch (type) {
        case BPCHAROID:
            return RecordForm::unpadded;
        case NAMEOID:
            return RecordForm::name;
        case INT2OID:
        case INT4OID:
        case INT8OID:
        case NUMERICOID:
            return RecordForm::decimal;
        case FLOAT4OID:
        case FLOAT8OID:
            return RecordForm::real;
        case DATEOID:
            return RecordForm::date;
        default:
            return IsBinaryCoercible(type, TEXTOID) ? RecordForm::text : RecordForm::output;
    }
}

bool is_text(RecordForm form) {
    return form == RecordForm::text || form == RecordForm::unpadded || form == RecordForm::name;
}

bool is_number(RecordForm form) {
    return form == RecordForm::decimal || form == RecordForm::real;
}

double number_of(const RecordType& type, Datum value) {
    switch (type.type) {
        case INT2OID:
            return DatumGetInt16(value);
        case INT4OID:
            return DatumGetInt32(value);
        case INT8OID:
            return static_cast<double>(DatumGetInt64(value));
        case FLOAT4OID:
            return static_cast<double>(DatumGetFloat4(value));
        case FLOAT8OID:
            return DatumGetFloat8(value);
        case DATEOID: {
            const DateADT days = DatumGetDateADT(value);
            if (DATE_IS_NOBEGIN(days)) return -std::numeric_limits<double>::infinity();
            if (DATE_IS_NOEND(days)) return std::numeric_limits<double>::infinity();
            return days + (POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE);
        }
        default:
            return DatumGetFloat8(DirectFunctionCall1(numeric_float8_no_overflow, value));
    }
}

}  // namespace

FieldKind RecordType::kind() const {
    if (is_array) return FieldKind::set;
    if (is_text(form)) return FieldKind::text;
    if (form == RecordForm::date) return FieldKind::date;
    return is_number(form) ? FieldKind::number : FieldKind::other;
}

RecordType record_type_of(TupleDesc columns, int column) {
    RecordType type;
    type.type = base_type_of_column(columns, column);
    if (const Oid element = get_element_type(type.type); OidIsValid(element)) {
        type.is_array = true;
        type.type = getBaseType(element);
    }
    type.form = form_of(type.type);
    return type;
}

// ---- Kinds ----

bool RecordColumn::compares_equality() const {
    return comparison_ == nullptr ||
           std::ranges::all_of(comparison_->conditions, [](const Condition& condition) {
               return condition.kind == ConditionKind::exact;
           });
}

FieldKind RecordColumn::stored_kind() const {
    const FieldKind kind = type_.kind();
    const bool has_exact_bytes = kind == FieldKind::text || type_.form == RecordForm::decimal;
    return kind != FieldKind::set && has_exact_bytes && compares_equality() ? FieldKind::other
                                                                            : kind;
}

/// Whether values of both are compared as they are read.
static bool comparable(const RecordType& a, const RecordType& b, bool equality) {
    if (a.is_array != b.is_array) return false;
    if (is_text(a.form) && is_text(b.form)) return true;
    if (is_number(a.form) && is_number(b.form))
        return a.form == b.form || !(equality || a.is_array);
    return a.form == b.form && (a.form != RecordForm::output || a.type == b.type);
}

bool RecordColumn::fits(TupleDesc columns, int column) const {
    return comparable(record_type_of(columns, column), type_, compares_equality());
}

void RecordColumn::begin_rows(TupleDesc columns, int column) {
    const RecordType type = record_type_of(columns, column);
    if (begun_ && !fits(columns, column))
        ereport(ERROR,
                (errcode(ERRCODE_DATATYPE_MISMATCH),
                 errmsg("column \"%s\" is of type %s among the second records, which cannot be "
                        "compared with the type among the first ones, %s",
                        name_.c_str(), format_type_be(TupleDescAttr(columns, column)->atttypid),
                        format_type_be(declared_type_)),
                 errhint("Cast both to one type in the inner queries, as in %s::text%s AS %s.",
                         quote_identifier(name_.c_str()), type.is_array && type_.is_array ? "[]" : "",
                         quote_identifier(name_.c_str()))));
    type_ = type;
    declared_type_ = TupleDescAttr(columns, column)->atttypid;
    column_ = column;
    begun_ = true;
    if (is_field()) attempt_or_raise([&] { return check_comparison(*comparison_, type_.kind()); });
    if (type_.form == RecordForm::output) {
        Oid output;
        bool is_varlena;
        getTypeOutputInfo(type_.type, &output, &is_varlena);
        fmgr_info(output, &output_);
    }
    if (type_.is_array)
        get_typlenbyvalalign(type_.type, &element_length_, &element_by_value_, &element_align_);
}

// ---- Values ----

RecordColumn::ValueBytes RecordColumn::bytes_of(Datum value) {
    switch (type_.form) {
        case RecordForm::text:
        case RecordForm::unpadded: {
            const varlena* const text = PG_DETOAST_DATUM_PACKED(value);
            const char* const bytes = VARDATA_ANY(text);
            std::size_t size = VARSIZE_ANY_EXHDR(text);
            if (type_.form == RecordForm::unpadded)
                while (size > 0 && bytes[size - 1] == ' ') --size;
            return {bytes, size};
        }
        case RecordForm::name: {
            const char* const text = NameStr(*DatumGetName(value));
            return {text, std::strlen(text)};
        }
        case RecordForm::decimal: {
            if (type_.type == NUMERICOID) {
                const char* const digits = numeric_normalize(DatumGetNumeric(value));
                return {digits, std::strlen(digits)};
            }
            const int64 integer = type_.type == INT2OID   ? DatumGetInt16(value)
                                  : type_.type == INT4OID ? DatumGetInt32(value)
                                                          : DatumGetInt64(value);
            return {digits_, static_cast<std::size_t>(pg_lltoa(integer, digits_))};
        }
        case RecordForm::real:
        case RecordForm::date:
            number_ = number_of(type_, value) + 0.0;  // that of -0 is 0
            if (std::isnan(number_)) number_ = std::numeric_limits<double>::quiet_NaN();
            return {&number_, sizeof number_};
        case RecordForm::output: {
            const char* const text = OutputFunctionCall(&output_, value);
            return {text, std::strlen(text)};
        }
    }
    pg_unreachable();
}

RecordColumn::ValueBytes RecordColumn::bytes_of_element(Datum element) {
    if (element_numbers_ == nullptr) return bytes_of(element);
    element_number_ = element_numbers_->number_of(element);
    return {&element_number_, sizeof element_number_};
}

void RecordColumn::append_begin() {
    const std::uint64_t begin = bytes_.size();
    begins_.append(&begin, sizeof begin);
}

void RecordColumn::append_set(Datum value) {
    ArrayType* const array = DatumGetArrayTypeP(value);
    Datum* elements;
    bool* nulls;
    int count;
    deconstruct_array(array, type_.type, element_length_, element_by_value_, element_align_,
                      &elements, &nulls, &count);
    for (int i = 0; i < count; ++i) {
        if (i % kPart == 0) CHECK_FOR_INTERRUPTS();
        if (nulls[i]) continue;
        const ValueBytes element = bytes_of_element(elements[i]);
        const auto size = static_cast<std::uint32_t>(element.size);
        bytes_.append(&size, sizeof size);
        bytes_.append(element.bytes, element.size);
    }
}

void RecordColumn::append(const Datum* values, const bool* nulls) {
    const bool null = nulls[column_];
    append_or_raise(nulls_, static_cast<std::uint8_t>(null));
    if (is_number(stored_kind())) {
        const double number = null ? 0 : number_of(type_, values[column_]);
        bytes_.append(&number, sizeof number);
        return;
    }
    append_begin();
    if (null) return;
    if (type_.is_array) return append_set(values[column_]);
    const ValueBytes value = bytes_of(values[column_]);
    bytes_.append(value.bytes, value.size);
}

void RecordColumn::finish() {
    append_begin();
    bytes_.finish();
    begins_.finish();
}

FieldRows RecordColumn::rows() const {
    FieldRows rows;
    rows.kind = stored_kind();
    rows.rows = nulls_.size();
    rows.nulls = {nulls_.data(), nulls_.size()};
    if (is_number(rows.kind))
        rows.numbers = {reinterpret_cast<const double*>(bytes_.data()), rows.rows};
    else
        rows.bytes = {bytes_.data(), reinterpret_cast<const std::uint64_t*>(begins_.data()),
                      rows.rows};
    return rows;
}

void RecordColumn::release() {
    bytes_.release();
    begins_.release();
    nulls_.clear();
}

}  // namespace gputext
