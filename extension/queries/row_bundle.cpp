#include "extension/queries/row_bundle.hpp"

extern "C" {
#include "access/detoast.h"
#include "utils/memutils.h"
}

#include <algorithm>
#include <cstring>

#include "cpp/base/prefetch.hpp"

namespace gputext {
namespace {

struct RowHead {
    uint32 nulls;  // a bit a column
    uint32 value_is_in_row;
};
static_assert(sizeof(RowHead) == MAXALIGN(sizeof(RowHead)));

/// The header of a value, and of one that is compressed the size of what it was made of.
constexpr std::size_t kBytesOfSize = 8;
/// A shorter bytea would lose the alignment of its rows, since a tuple has a header of another kind
/// for it.
constexpr std::size_t kLeast = 256;

/// Bytes of a column that is no value.
std::size_t size_of(Datum value, int16 length) {
    return length > 0 ? static_cast<std::size_t>(length) : VARSIZE_ANY(DatumGetPointer(value));
}

}  // namespace

bool can_be_bundled(TupleDesc columns) {
    if (columns->natts > BundledRows::kMostColumns) return false;
    for (int i = 0; i < columns->natts; ++i)
        if (TupleDescAttr(columns, i)->attlen < -1) return false;
    return true;
}

BundleWriter::BundleWriter(TupleDesc columns, const BundledRows& rows)
    : columns_(columns),
      rows_(rows),
      origins_(rows.table, columns->natts - rows.table.columns),
      bundle_(static_cast<char*>(palloc0(2 * kFull))),
      capacity_(2 * kFull) {}

/// Room behind what there is.
char* BundleWriter::extend(std::size_t size) {
    const std::size_t begin = size_;
    if (begin + size > capacity_) {
        capacity_ = std::max(begin + size, std::min<std::size_t>(2 * capacity_, MaxAllocSize));
        bundle_ = static_cast<char*>(repalloc(bundle_, capacity_));
    }
    size_ += size;
    return bundle_ + begin;
}

void BundleWriter::append_bytes(const void* bytes, std::size_t size) {
    const std::size_t aligned = MAXALIGN(size);
    char* const to = extend(aligned);
    if (aligned > size) std::memset(to + aligned - sizeof(Datum), 0, sizeof(Datum));
    std::memcpy(to, bytes, size);
}

void BundleWriter::append_column(Datum value, int column) {
    const FormData_pg_attribute* const type = TupleDescAttr(columns_, column);
    if (type->attbyval) return append_bytes(&value, sizeof value);
    auto* bytes = reinterpret_cast<varlena*>(DatumGetPointer(value));
    // What is in memory elsewhere is no value for another process.
    if (type->attlen == -1 && VARATT_IS_EXTERNAL(bytes) && !VARATT_IS_EXTERNAL_ONDISK(bytes))
        bytes = detoast_external_attr(bytes);
    append_bytes(bytes, size_of(PointerGetDatum(bytes), type->attlen));
}

/// Of the value that may be read within its row: true where it will be.
bool BundleWriter::append_size_of(const TupleTableSlot* row) {
    if (!rows_.table.has_places()) return false;
    const Datum value = row->tts_values[rows_.value];
    const auto* const bytes = reinterpret_cast<const varlena*>(DatumGetPointer(value));
    if (VARATT_IS_EXTERNAL(bytes) || VARSIZE_ANY(bytes) < kWorthPlacing) return false;
    if (!origins_.of(row->tts_values, row->tts_isnull, true).place.known()) return false;
    append_bytes(bytes, kBytesOfSize);
    return true;
}

void BundleWriter::append(TupleTableSlot* row) {
    if (taken_) {
        size_ = kHeader;
        count_ = 0;
        taken_ = false;
    }
    ++count_;
    slot_getallattrs(row);
    const std::size_t head = size_;
    extend(sizeof(RowHead));
    RowHead made{};
    for (int i = 0; i < columns_->natts; ++i) {
        if (row->tts_isnull[i])
            made.nulls |= 1u << i;
        else if (i == rows_.value && append_size_of(row))
            made.value_is_in_row = 1;
        else
            append_column(row->tts_values[i], i);
    }
    std::memcpy(bundle_ + head, &made, sizeof made);
}

Datum BundleWriter::take() {
    if (size_ < kLeast) {
        const std::size_t rest = kLeast - size_;
        std::memset(extend(rest), 0, rest);
    }
    SET_VARSIZE(bundle_, size_);
    std::memcpy(VARDATA(bundle_), &count_, sizeof count_);
    taken_ = true;
    return PointerGetDatum(bundle_);
}

BundleReader::BundleReader(TupleDesc columns, int value) : count_(columns->natts), value_(value) {
    for (int i = 0; i < count_; ++i) {
        const FormData_pg_attribute* const column = TupleDescAttr(columns, i);
        lengths_[i] = column->attbyval ? kByValue : column->attlen;
    }
}

void BundleReader::open(Datum bundle) {
    const char* begin = static_cast<const char*>(DatumGetPointer(bundle));
    if (reinterpret_cast<uintptr_t>(begin) % MAXIMUM_ALIGNOF != 0) {
        auto* const copy = static_cast<char*>(palloc(VARSIZE(begin)));
        std::memcpy(copy, begin, VARSIZE(begin));
        begin = copy;
    }
    // Another process has written it, so that it lies in the cache of another core.
    prefetch(begin, VARSIZE(begin));
    std::memcpy(&left_, VARDATA(begin), sizeof left_);
    at_ = begin + MAXALIGN(VARHDRSZ);
}

bool BundleReader::next(Datum* values, bool* nulls) {
    if (left_ == 0) return false;
    --left_;
    RowHead head;
    std::memcpy(&head, at_, sizeof head);
    at_ += sizeof head;
    value_is_in_row_ = head.value_is_in_row != 0;
    for (int i = 0; i < count_; ++i) {
        nulls[i] = (head.nulls >> i & 1) != 0;
        if (nulls[i]) continue;
        if (lengths_[i] == kByValue) {
            std::memcpy(&values[i], at_, sizeof(Datum));
            at_ += sizeof(Datum);
            continue;
        }
        values[i] = PointerGetDatum(at_);
        const bool in_row = value_is_in_row_ && i == value_;
        at_ += MAXALIGN(in_row ? kBytesOfSize : size_of(values[i], lengths_[i]));
    }
    return true;
}

}  // namespace gputext
