#include "extension/inputs/row_form.hpp"

extern "C" {
#include "access/htup_details.h"
#include "access/tupmacs.h"
}

#include <algorithm>
#include <cstring>

namespace gputext {
namespace {

/// Moves up to a multiple of the alignment, behind zeros.
char* aligned(char* to, const char* begin, std::size_t align) {
    const std::size_t at = static_cast<std::size_t>(to - begin);
    const std::size_t padding = TYPEALIGN(align, at) - at;
    std::memset(to, 0, padding);
    return to + padding;
}

}  // namespace

RowForm::RowForm(TupleDesc columns) {
    if (columns->natts > kMostColumns) return;
    // The header is the same for all rows without nulls of these columns.
    const std::size_t header = MAXALIGN(SizeofHeapTupleHeader);
    tuple_ = {};
    tuple_.t_data = static_cast<HeapTupleHeader>(palloc0(header + kRoom));
    tuple_.t_data->t_hoff = static_cast<uint8>(header);
    HeapTupleHeaderSetNatts(tuple_.t_data, columns->natts);
    begin_ = reinterpret_cast<char*>(tuple_.t_data) + header;
    for (int i = 0; i < columns->natts; ++i) {
        const FormData_pg_attribute* const column = TupleDescAttr(columns, i);
        // Neither cstring nor what a table has lost.
        if (column->attlen < -1 || column->attisdropped) return;
        columns_[i] = {static_cast<std::uint8_t>(att_align_nominal(1, column->attalign)),
                       column->attlen, column->attbyval, column->attstorage != TYPSTORAGE_PLAIN};
        if (column->attlen == -1) tuple_.t_data->t_infomask |= HEAP_HASVARWIDTH;
    }
    count_ = columns->natts;
}

char* RowForm::write(const Column& column, Datum value, char* to) const {
    if (column.length < 0)
        return write_varlena(column, static_cast<const char*>(DatumGetPointer(value)), to);
    const auto size = static_cast<std::size_t>(column.length);
    if (!has_room(to, size)) return nullptr;
    to = aligned(to, begin_, column.align);
    if (column.by_value)
        store_att_byval(to, value, column.length);
    else
        std::memcpy(to, DatumGetPointer(value), size);
    return to + size;
}

char* RowForm::write_varlena(const Column& column, const char* from, char* to) const {
    if (VARATT_IS_EXTERNAL(from)) return nullptr;
    const std::size_t size = VARSIZE_ANY(from);
    if (!has_room(to, size)) return nullptr;
    if (column.may_be_short && VARATT_CAN_MAKE_SHORT(from)) {
        const std::size_t short_size = VARATT_CONVERTED_SHORT_SIZE(from);
        SET_VARSIZE_SHORT(to, short_size);
        std::memcpy(to + VARHDRSZ_SHORT, VARDATA(from), short_size - VARHDRSZ_SHORT);
        return to + short_size;
    }
    if (!VARATT_IS_SHORT(from)) to = aligned(to, begin_, column.align);
    std::memcpy(to, from, size);
    return to + size;
}

HeapTuple RowForm::form(const Datum* values, const bool* nulls) {
    if (count_ == 0 || std::any_of(nulls, nulls + count_, [](bool null) { return null; }))
        return nullptr;
    char* to = begin_;
    for (int i = 0; i < count_; ++i)
        if ((to = write(columns_[i], values[i], to)) == nullptr) return nullptr;
    tuple_.t_len = static_cast<uint32>(to - reinterpret_cast<char*>(tuple_.t_data));
    return &tuple_;
}

}  // namespace gputext
