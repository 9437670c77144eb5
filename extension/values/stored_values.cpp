#include "extension/values/stored_values.hpp"

extern "C" {
#include "access/detoast.h"
#include "access/toast_compression.h"
#include "catalog/pg_class.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
}

#include <algorithm>
#include <cstring>

#include "extension/base/failure.hpp"
#include "extension/server/parallel_work.hpp"
#include "extension/values/row_threads.hpp"

namespace gputext {
namespace {

/// What it takes to find a value in its TOAST table; bytes a second that are copied from there; and
/// that are unpacked, by the slower method.
constexpr double kSecondsOfFetch = 3e-6;
/// What it takes to find a row of a heap.
constexpr double kSecondsOfRow = 0.4e-6;
constexpr double kCopyRate = 1.5e9;
constexpr double kUnpackRate = 0.6e9;

/// Size of a value that is not out of line, once unpacked, with a header of four bytes.
std::size_t unpacked_size_of(const varlena* value) {
    return VARATT_IS_COMPRESSED(value) ? VARDATA_COMPRESSED_GET_EXTSIZE(value) + VARHDRSZ
                                       : VARSIZE_ANY_EXHDR(value) + VARHDRSZ;
}

}  // namespace

bool StoredValues::is_temporary(Oid toast_relation) {
    if (toast_relation != last_relation_) {
        last_is_temporary_ = get_rel_persistence(toast_relation) == RELPERSISTENCE_TEMP;
        last_relation_ = toast_relation;
    }
    return last_is_temporary_;
}

/// The value, or what is to be copied in its place.
const varlena* StoredValues::whole(const varlena* value, bool fetch) {
    if (!VARATT_IS_EXTERNAL(value)) return value;
    if (VARATT_IS_EXTERNAL_ONDISK(value) && !fetch) {
        varatt_external pointer;
        VARATT_EXTERNAL_GET_POINTER(pointer, value);
        if (!is_temporary(pointer.va_toastrelid)) return value;
    }
    return detoast_external_attr(const_cast<varlena*>(value));
}

/// Of the value that was appended last.
void StoredValues::append_version(TransactionId version) {
    if (versions_.size() + 1 < values_.size())
        attempt_or_raise([&] { versions_.resize(values_.size() - 1); });
    append_or_raise(versions_, version);
}

StoredValue StoredValues::copy(const varlena* value) {
    static const char zeros[MAXIMUM_ALIGNOF] = {};
    if (!VARATT_IS_SHORT(value)) bytes_.append(zeros, MAXALIGN(bytes_.size()) - bytes_.size());
    const std::uint64_t begin = bytes_.size();
    const auto size = static_cast<uint32>(VARSIZE_ANY(value));
    bytes_.append(value, size);
    StoredValue stored{};
    stored.copy = {size, static_cast<uint32>(begin), static_cast<uint32>(begin >> 32)};
    return stored;
}

void StoredValues::append(Datum datum, bool fetch, const RowOrigin& row) {
    const RowPlace& place = row.place;
    const auto* const given = reinterpret_cast<const varlena*>(DatumGetPointer(datum));
    const varlena* const value = whole(given, fetch);
    StoredValue stored{};
    if (VARATT_IS_EXTERNAL(value)) {
        varatt_external pointer;
        VARATT_EXTERNAL_GET_POINTER(pointer, value);
        stored.relation = pointer.va_toastrelid;
        stored.pointer = {pointer.va_valueid, pointer.va_rawsize, pointer.va_extinfo};
        ++fetched_;
        unpacked_bytes_ += pointer.va_rawsize;
        if (VARATT_EXTERNAL_IS_COMPRESSED(pointer)) packed_bytes_ += pointer.va_rawsize;
    } else if (row.value_in_row ||
               (place.known() && !fetch && value == given && VARSIZE_ANY(value) >= kWorthPlacing)) {
        stored.relation = place.relation;
        stored.row = {ItemPointerGetBlockNumber(&place.row),
                      -static_cast<int32>(unpacked_size_of(value)),
                      ItemPointerGetOffsetNumber(&place.row), place.attribute};
        ++placed_;
        unpacked_bytes_ += unpacked_size_of(value);
        if (VARATT_IS_COMPRESSED(value)) packed_bytes_ += unpacked_size_of(value);
    } else {
        stored = copy(value);
        unpacked_bytes_ += unpacked_size_of(value);
        if (VARATT_IS_COMPRESSED(value)) packed_bytes_ += unpacked_size_of(value);
    }
    append_or_raise(values_, stored);
    if (TransactionIdIsValid(row.version)) append_version(row.version);
}

void StoredValues::fetch_all() {
    const MemoryContext context =
        AllocSetContextCreate(CurrentMemoryContext, "gputext values", ALLOCSET_DEFAULT_SIZES);
    StoredValueReader reader(values_.data(), nullptr);
    const MemoryContext before = MemoryContextSwitchTo(context);
    for (std::size_t row = 0; row < values_.size(); ++row) {
        if (values_[row].copied()) continue;
        CHECK_FOR_INTERRUPTS();
        const auto* const value = reinterpret_cast<const varlena*>(DatumGetPointer(reader.at(row)));
        values_.set(row, copy(whole(value, true)));
        MemoryContextReset(context);
    }
    reader.close();
    MemoryContextSwitchTo(before);
    MemoryContextDelete(context);
    fetched_ = placed_ = 0;
}

double StoredValues::seconds() const {
    return static_cast<double>(fetched_) * kSecondsOfFetch +
           static_cast<double>(placed_) * kSecondsOfRow +
           static_cast<double>(unpacked_bytes_) / kCopyRate +
           static_cast<double>(packed_bytes_) / kUnpackRate;
}

std::size_t StoredValues::unpacked_size(std::size_t row) const {
    const StoredValue& stored = values_[row];
    if (stored.out_of_line()) return static_cast<std::size_t>(stored.pointer.size);
    if (stored.in_row()) return static_cast<std::size_t>(-stored.row.negative_size);
    return unpacked_size_of(
        reinterpret_cast<const varlena*>(bytes_.data() + stored.begin_of_copy()));
}

Extent StoredValues::plain_extent(std::size_t row) const {
    const StoredValue& stored = values_[row];
    const std::uint64_t begin = stored.begin_of_copy();
    const auto* const value = reinterpret_cast<const varlena*>(bytes_.data() + begin);
    const std::size_t size = VARSIZE_ANY_EXHDR(value);
    return {begin + stored.copy.size - size, size};
}

void StoredValues::finish(const std::vector<std::uint32_t>& order) {
    if (!order.empty())
        run_on_rows(order.size(), [&](Execution& execution) -> Status {
            GPUTEXT_TRY(put_in_order(values_, order, execution));
            if (versions_.empty()) return {};
            versions_.resize(order.size());
            return put_in_order(versions_, order, execution);
        });
    bytes_.finish();
}

StoredValueFiles StoredValues::files() {
    if (shared_values_.size() == 0) {
        shared_values_.append(values_.data(), values_.size() * sizeof(StoredValue));
        shared_values_.finish();
    }
    values_file_ = shared_values_.share();
    bytes_file_ = bytes_.share();
    return {MyProcPid,     values_file_.get(), bytes_file_.get(), values_.size(),
            bytes_.size(), values_.data(),     bytes_.data()};
}

Datum StoredValues::detoasted(std::size_t row) const {
    StoredValueReader reader(values_.data(), bytes_.data());
    varlena* value = PG_DETOAST_DATUM_PACKED(reader.at(row));
    if (stored(row).in_row()) value = PG_DETOAST_DATUM_COPY(PointerGetDatum(value));
    reader.close();
    return PointerGetDatum(value);
}

void StoredValues::release() {
    shared_values_.release();
    bytes_.release();
    values_file_.reset();
    bytes_file_.reset();
    values_.clear();
    versions_.clear();
}

bool StoredValueReader::open(const StoredValueFiles& files, unsigned process) {
    if (process == 0) {
        values_ = files.session_values;
        bytes_ = files.session_bytes;
        return true;
    }
    values_ = static_cast<const StoredValue*>(
        map_file_of_session(files.session, files.values, files.count * sizeof(StoredValue)));
    bytes_ = static_cast<const std::uint8_t*>(
        map_file_of_session(files.session, files.bytes, files.bytes_size));
    return values_ != nullptr && bytes_ != nullptr;
}

Datum StoredValueReader::at(std::size_t row) {
    const StoredValue& stored = values_[row];
    if (stored.copied()) return PointerGetDatum(bytes_ + stored.begin_of_copy());
    if (stored.in_row()) return rows_.at(stored.place(), context_);
    const varatt_external pointer{stored.pointer.size, stored.pointer.stored_size,
                                  stored.pointer.id, stored.relation};
    auto* const value = static_cast<varlena*>(palloc(TOAST_POINTER_SIZE));
    SET_VARTAG_EXTERNAL(value, VARTAG_ONDISK);
    std::memcpy(VARDATA_EXTERNAL(value), &pointer, sizeof pointer);
    return PointerGetDatum(value);
}

}  // namespace gputext
