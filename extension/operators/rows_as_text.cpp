// gputext_rows_as_text(): the rows of an inner query in a form that is sent to other servers, and
// the names that types and operators have there
//
// Values become text as postgres_fdw makes it: in the ISO style of dates, and floating-point
// numbers with as many digits as tell them from all others, whatever the session's settings are.

#include "extension/base/postgres.hpp"

extern "C" {
#include "access/htup_details.h"
#include "catalog/pg_operator.h"
#include "catalog/pg_type.h"
#include "utils/array.h"
#include "utils/builtins.h"
#include "utils/float.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
#include "utils/typcache.h"
}

#include <cstdint>
#include <cstring>
#include <iterator>

#include "extension/base/local_setting.hpp"
#include "extension/base/sql_function.hpp"
#include "extension/inputs/arguments.hpp"
#include "extension/inputs/set_call.hpp"
#include "extension/queries/inner_query.hpp"
#include "extension/server/activity.hpp"
#include "extension/types/column_types.hpp"

namespace gputext {
namespace {

constexpr int kMostColumns = 5;  // an id, terms, weights and two keys

constexpr char kDigits[] = "0123456789abcdef";

/// The array's bits as digits; null for one that has nulls, or not exactly one dimension.
text* digits_of(Datum value) {
    const ArrayType* const array = DatumGetArrayTypeP(value);
    if (ARR_NDIM(array) != 1 || ARR_HASNULL(array)) return nullptr;
    const auto count = static_cast<std::size_t>(ARR_DIMS(array)[0]);
    const auto* const elements = reinterpret_cast<const float4*>(ARR_DATA_PTR(array));
    const std::size_t size = VARHDRSZ + 1 + 8 * count;
    auto* const digits = static_cast<text*>(palloc(size));
    SET_VARSIZE(digits, size);
    char* to = VARDATA(digits);
    *to++ = 'x';
    for (std::size_t i = 0; i < count; ++i) {
        std::uint32_t bits;
        std::memcpy(&bits, elements + i, sizeof bits);
        for (int shift = 28; shift >= 0; shift -= 4) *to++ = kDigits[(bits >> shift) & 15];
    }
    return digits;
}

/// The value of a digit, or 16.
unsigned value_of(char digit) {
    if (digit >= '0' && digit <= '9') return static_cast<unsigned>(digit - '0');
    if (digit >= 'a' && digit <= 'f') return static_cast<unsigned>(digit - 'a') + 10;
    return 16;
}

/// The array of the digits after the x. Raises an error where they are none.
ArrayType* array_of(const char* digits, std::size_t size) {
    const std::size_t count = size / 8;
    const std::size_t bytes = ARR_OVERHEAD_NONULLS(1) + count * sizeof(float4);
    auto* const array = static_cast<ArrayType*>(palloc0(bytes));
    SET_VARSIZE(array, bytes);
    array->ndim = 1;
    array->elemtype = FLOAT4OID;
    ARR_DIMS(array)[0] = static_cast<int>(count);
    ARR_LBOUND(array)[0] = 1;
    auto* const elements = reinterpret_cast<float4*>(ARR_DATA_PTR(array));
    unsigned wrong = size % 8 == 0 && count > 0 ? 0 : 16;
    for (std::size_t i = 0; i < count; ++i) {
        std::uint32_t bits = 0;
        for (int d = 0; d < 8; ++d) {
            const unsigned value = value_of(digits[8 * i + d]);
            wrong |= value;
            bits = bits << 4 | (value & 15);
        }
        std::memcpy(elements + i, &bits, sizeof bits);
    }
    if (wrong & 16)
        ereport(ERROR, (errcode(ERRCODE_INVALID_TEXT_REPRESENTATION),
                        errmsg("the text is no array of real in hexadecimal digits")));
    return array;
}

/// Gives the session, up to restore_form(), the settings by which another server reads the text
/// form of values as it is meant here. After an error PostgreSQL itself restores them.
int set_portable_form() {
    const int level = NewGUCNestLevel();
    if (DateStyle != USE_ISO_DATES) set_locally("datestyle", "ISO");
    if (IntervalStyle != INTSTYLE_POSTGRES) set_locally("intervalstyle", "postgres");
    if (extra_float_digits < 3) set_locally("extra_float_digits", "3");
    return level;
}

void restore_form(int level) {
    AtEOXact_GUC(true, level);
}

Datum text_array(Datum* texts, bool* nulls, int count) {
    int first = 1;
    return PointerGetDatum(
        construct_md_array(texts, nulls, 1, &count, &first, TEXTOID, -1, false, TYPALIGN_INT));
}

/// With its schema, but for those that the grammar itself knows.
text* type_name(Oid type) {
    return cstring_to_text(format_type_extended(type, -1, FORMAT_TYPE_FORCE_QUALIFY));
}

class TextReceiver final : public RowReceiver {
public:
    TextReceiver(int columns, Oid id_type, SetCall& set)
        : count_(columns), id_type_(id_type), set_(set), context_(CurrentMemoryContext) {}

    WantedColumns wanted_columns() const override {
        return {count_, count_,
                "The columns are an id and a value, and after them the keys that were asked for."};
    }
    void check_columns(TupleDesc columns) override;
    bool left_out(const bool* nulls) const override { return nulls[1]; }
    void take_row(const Datum* values, const bool* nulls) override;
    void report_nulls(int64 rows, const char*) override {
        ereport(NOTICE,
                (errmsg_plural("skipped %lld row whose value is null",
                               "skipped %lld rows whose value is null",
                               static_cast<unsigned long>(rows), static_cast<long long>(rows))));
    }

private:
    const int count_;
    const Oid id_type_;
    SetCall& set_;
    const MemoryContext context_;  // that outlives the rows
    FmgrInfo outputs_[kMostColumns] = {};
    bool are_reals_[kMostColumns] = {};
    Datum types_ = 0;  // names of the columns' types, without the domains over them
    std::uint64_t rows_ = 0, bytes_ = 0;
};

void TextReceiver::check_columns(TupleDesc columns) {
    const MemoryContext before = MemoryContextSwitchTo(context_);
    Datum names[kMostColumns];
    for (int i = 0; i < count_; ++i) {
        // Ids have the type that is wanted when they come here.
        const Oid type = i == 0 ? id_type_ : base_type_of_column(columns, i);
        Oid output;
        bool is_varlena;
        getTypeOutputInfo(type, &output, &is_varlena);
        fmgr_info_cxt(output, &outputs_[i], context_);
        are_reals_[i] = i > 0 && type == FLOAT4ARRAYOID;
        names[i] = PointerGetDatum(type_name(type));
    }
    types_ = text_array(names, nullptr, count_);
    MemoryContextSwitchTo(before);
}

void TextReceiver::take_row(const Datum* values, const bool* nulls) {
    Datum texts[kMostColumns] = {};
    bool text_nulls[kMostColumns];
    const int level = set_portable_form();
    for (int i = 0; i < count_; ++i) {
        text_nulls[i] = nulls[i];
        if (nulls[i]) continue;
        text* value = are_reals_[i] ? digits_of(values[i]) : nullptr;
        if (value == nullptr) value = cstring_to_text(OutputFunctionCall(&outputs_[i], values[i]));
        texts[i] = PointerGetDatum(value);
        bytes_ += VARSIZE(value);
    }
    restore_form(level);
    Datum row[] = {Int64GetDatum(static_cast<std::int64_t>(++rows_)), BoolGetDatum(query().ordered),
                   values[0], text_array(texts, text_nulls, count_), types_};
    bool row_nulls[std::size(row)] = {};
    set_.put(row, row_nulls);
    show_rows(rows_, bytes_);
}

}  // namespace
}  // namespace gputext

using namespace gputext;

extern "C" {
SQL_FUNCTION(gputext_rows_as_text) {
    const Arguments given(fcinfo);
    const Oid id_type = id_type_argument(given);
    const int columns = given.integer("columns");
    if (columns < 2 || columns > kMostColumns)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("columns must be 2 to %d, not %d", kMostColumns, columns)));
    const InnerQuery query{given.text("inner_query"), id_type};
    SetCall set(fcinfo, "gputext_rows_as_text");
    TextReceiver receiver(columns, id_type, set);
    run_inner_query(query, receiver);
    set.end();
    PG_RETURN_NULL();
}

SQL_FUNCTION(gputext_reals) {
    const text* const value = PG_GETARG_TEXT_PP(0);
    const char* const from = VARDATA_ANY(value);
    const std::size_t size = VARSIZE_ANY_EXHDR(value);
    if (size > 0 && from[0] == 'x') PG_RETURN_ARRAYTYPE_P(array_of(from + 1, size - 1));
    Oid input, element;
    getTypeInputInfo(FLOAT4ARRAYOID, &input, &element);
    PG_RETURN_DATUM(OidInputFunctionCall(input, text_to_cstring(value), element, -1));
}

SQL_FUNCTION(gputext_type_text) {
    const Oid type = PG_GETARG_OID(0);
    lookup_type_cache(type, 0);  // raises the error for a type that does not exist
    PG_RETURN_TEXT_P(type_name(type));
}

SQL_FUNCTION(gputext_equality) {
    const Oid type = PG_GETARG_OID(0);
    const Oid equality = lookup_type_cache(type, TYPECACHE_EQ_OPR)->eq_opr;
    if (!OidIsValid(equality))
        ereport(ERROR, (errcode(ERRCODE_UNDEFINED_FUNCTION),
                        errmsg("could not identify an equality operator for type %s",
                               format_type_be(type))));
    HeapTuple tuple = SearchSysCache1(OPEROID, ObjectIdGetDatum(equality));
    if (!HeapTupleIsValid(tuple)) elog(ERROR, "cache lookup failed for operator %u", equality);
    const auto* const found = reinterpret_cast<const FormData_pg_operator*>(GETSTRUCT(tuple));
    const char* const schema = get_namespace_name_or_temp(found->oprnamespace);
    const char* const name =
        psprintf("OPERATOR(%s.%s)", quote_identifier(schema), NameStr(found->oprname));
    ReleaseSysCache(tuple);
    PG_RETURN_TEXT_P(cstring_to_text(name));
}

SQL_FUNCTION(gputext_bigint_ids) {
    id_type_argument(Arguments(fcinfo));
    PG_RETURN_NULL();
}
}
