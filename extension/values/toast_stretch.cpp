#include "extension/values/toast_stretch.hpp"

extern "C" {
#include "access/genam.h"
#include "access/heaptoast.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/toast_internals.h"
#include "catalog/pg_class.h"
#include "utils/fmgroids.h"
#include "utils/memutils.h"
#include "utils/rel.h"
}

#include <algorithm>
#include <cstring>

#include "extension/base/server_versions.hpp"

namespace gputext {
namespace {

/// Values that are not worth a scan of their own.
constexpr std::ptrdiff_t kFewest = 4;
/// Numbers from one value to the next that are side by side: the scan reads what lies between.
constexpr Oid kWidestGap = 3;
/// A value that is larger takes longer to copy than to find.
constexpr std::uint32_t kLargest = std::uint32_t{1} << 18;
/// Bytes of a stretch that are fetched by scans; what is beyond them is left to PostgreSQL.
constexpr std::size_t kMostBytes = std::size_t{8} << 20;

/// Bytes that a value takes, with its header.
std::size_t room_of(std::uint32_t size) {
    return MAXALIGN(size + VARHDRSZ);
}

}  // namespace

ToastStretch::ToastStretch()
    : context_(CurrentMemoryContext),
      wanted_(static_cast<Wanted*>(palloc(kMost * sizeof(Wanted)))),
      fetched_(static_cast<varlena**>(palloc(kMost * sizeof(varlena*)))) {}

Datum ToastStretch::at(std::size_t i) const {
    if (fetched_[i] != nullptr) return PointerGetDatum(fetched_[i]);
    return values_->at(numbers_ != nullptr ? numbers_[i] : first_ + i);
}

void ToastStretch::add(std::size_t i, const StoredValue& value) {
    const std::uint32_t size = value.pointer.stored_size & VARLENA_EXTSIZE_MASK;
    if (size > kLargest || room_used_ + room_of(size) > kMostBytes) return;
    room_used_ += room_of(size);
    wanted_[count_++] = {value.relation, value.pointer.id, static_cast<std::uint32_t>(i),
                         size,           nullptr,          0};
}

/// For all wanted values.
void ToastStretch::make_room() {
    if (room_used_ > room_size_) {
        if (room_ != nullptr) pfree(room_);
        room_size_ = std::min(kMostBytes, room_used_ + room_used_ / 4);
        room_ = static_cast<char*>(MemoryContextAlloc(context_, room_size_));
    }
    room_used_ = 0;
}

void ToastStretch::fetch(StoredValueReader& values, const std::uint32_t* numbers,
                         std::uint64_t first, std::size_t count) {
    values_ = &values;
    numbers_ = numbers;
    first_ = first;
    count_ = 0;
    room_used_ = 0;
    std::fill(fetched_, fetched_ + count, nullptr);
    for (std::size_t i = 0; i < count; ++i) {
        const StoredValue& value = values.stored(numbers != nullptr ? numbers[i] : first + i);
        if (value.out_of_line()) add(i, value);
    }
    make_room();
    const auto before = [](const Wanted& a, const Wanted& b) {
        return a.table != b.table ? a.table < b.table : a.number < b.number;
    };
    Wanted* const end = wanted_ + count_;
    if (!std::is_sorted(wanted_, end, before)) std::sort(wanted_, end, before);
    for (Wanted *run = wanted_, *next; run < end; run = next) {
        next = run + 1;
        while (next < end && next->table == run->table &&
               next->number - next[-1].number <= kWidestGap && next->number > next[-1].number)
            ++next;
        if (next - run >= kFewest) fetch_run(run, next);
    }
}

void ToastStretch::open(Oid table) {
    if (table == table_) return;
    close();
    relation_ = table_open(table, AccessShareLock);
    valid_index_ = toast_open_indexes(relation_, AccessShareLock, &indexes_, &index_count_);
    table_ = table;
}

void ToastStretch::close() {
    if (!OidIsValid(table_)) return;
    toast_close_indexes(indexes_, index_count_, AccessShareLock);
    table_close(relation_, AccessShareLock);
    table_ = InvalidOid;
}

/// Copies a chunk to its place if it is the next one of the wanted value, and else leaves the value
/// to PostgreSQL, which says what is wrong with it.
void ToastStretch::take_chunk(HeapTuple chunk, Wanted*& wanted, const Wanted* end) const {
    const TupleDesc columns = RelationGetDescr(relation_);
    bool null = false;
    const Oid number = DatumGetObjectId(fastgetattr(chunk, 1, columns, &null));
    while (wanted < end && wanted->number < number) ++wanted;
    if (wanted == end || wanted->number != number) return;
    const auto place =
        static_cast<std::uint32_t>(DatumGetInt32(fastgetattr(chunk, 2, columns, &null))) *
        static_cast<std::uint64_t>(TOAST_MAX_CHUNK_SIZE);
    const auto* const bytes =
        reinterpret_cast<const varlena*>(DatumGetPointer(fastgetattr(chunk, 3, columns, &null)));
    if (VARATT_IS_EXTERNAL(bytes) || VARATT_IS_COMPRESSED(bytes)) return;
    const std::size_t size = VARSIZE_ANY_EXHDR(bytes);
    if (place != wanted->arrived || size > wanted->size - wanted->arrived) return;
    std::memcpy(wanted->begin + place, VARDATA_ANY(bytes), size);
    wanted->arrived += static_cast<std::uint32_t>(size);
}

/// Values of one table, with numbers side by side.
void ToastStretch::fetch_run(Wanted* begin, Wanted* end) {
    for (Wanted* wanted = begin; wanted < end; ++wanted) {
        auto* const value = reinterpret_cast<varlena*>(room_ + room_used_);
        room_used_ += room_of(wanted->size);
        fetched_[wanted->i] = value;
        wanted->begin = VARDATA(value);
    }
    open(begin->table);
    ScanKeyData keys[2];
    ScanKeyInit(&keys[0], 1, BTGreaterEqualStrategyNumber, F_OIDGE,
                ObjectIdGetDatum(begin->number));
    ScanKeyInit(&keys[1], 1, BTLessEqualStrategyNumber, F_OIDLE, ObjectIdGetDatum(end[-1].number));
    SnapshotData room;
    const SysScanDesc scan = systable_beginscan_ordered(relation_, indexes_[valid_index_],
                                                        snapshot_of_values(room), 2, keys);
    Wanted* wanted = begin;
    while (HeapTuple chunk = systable_getnext_ordered(scan, ForwardScanDirection)) {
        CHECK_FOR_INTERRUPTS();
        take_chunk(chunk, wanted, end);
    }
    systable_endscan_ordered(scan);
    for (wanted = begin; wanted < end; ++wanted) {
        varlena*& value = fetched_[wanted->i];
        const StoredValue& stored =
            values_->stored(numbers_ != nullptr ? numbers_[wanted->i] : first_ + wanted->i);
        if (wanted->arrived != wanted->size)
            value = nullptr;
        else if (wanted->size < static_cast<std::uint32_t>(stored.pointer.size) - VARHDRSZ)
            SET_VARSIZE_COMPRESSED(value, wanted->size + VARHDRSZ);
        else
            SET_VARSIZE(value, wanted->size + VARHDRSZ);
    }
}

}  // namespace gputext
