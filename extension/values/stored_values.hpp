// extension/values/stored_values.hpp - stores values as the executor gives them, to be read later
//
// A value that is stored out of line takes 16 bytes here, whatever its size: its TOAST pointer. The
// same goes for a value that lies within a row of a heap whose place is known, unless it is short.
// The bytes of any other value are copied as they are, compressed or not. So the session stores a
// million rows in the time in which it scans their heap, and parallel workers fetch, unpack and
// parse the values (parallel_work.hpp).
//
// A pointer or a place is good as long as the transaction holds the snapshot that the row was found
// by: VACUUM leaves the value alone until then, and TRUNCATE waits for the transaction's lock.
// Functions that the inner query calls can do what it cannot, so with functions that are not safe
// in parallel workers values are fetched at once, and so are those of temporary tables, which no
// worker can read.

#pragma once

#include "extension/base/postgres.hpp"

extern "C" {
#include "access/transam.h"
}

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cpp/documents/documents.hpp"
#include "extension/base/growing_array.hpp"
#include "extension/values/packed_rows.hpp"
#include "extension/values/row_places.hpp"

namespace gputext {

/// The rows whose values are to be read, in ascending order; none for all rows.
using ChosenRows = std::span<const std::uint32_t>;

/// Where a value lies.
struct StoredValue {
    Oid relation;  // the TOAST table or the heap; InvalidOid for bytes that were copied
    union {
        struct {  // out of line, as in a varatt_external
            Oid id;
            int32 size;          // when it is fetched and unpacked, with a header
            uint32 stored_size;  // and the compression
        } pointer;
        struct {  // within a row
            BlockNumber block;
            int32 negative_size;  // less the size when it is unpacked, with a header
            OffsetNumber line;
            AttrNumber attribute;
        } row;
        struct {
            uint32 size;       // with a header of one kind or another
            uint32 low, high;  // where it begins among the bytes
        } copy;
    };

    bool copied() const { return !OidIsValid(relation); }
    bool out_of_line() const { return !copied() && pointer.size >= 0; }
    bool in_row() const { return !copied() && row.negative_size < 0; }
    RowPlace place() const {
        RowPlace place{relation, row.attribute, {}};
        ItemPointerSet(&place.row, row.block, row.line);
        return place;
    }
    std::uint64_t begin_of_copy() const { return copy.low | std::uint64_t{copy.high} << 32; }
    /// Of a value that is not copied: no other one of the relation has it at the same time. A
    /// TOAST table has no values within rows of a column that anybody reads.
    std::uint64_t number() const {
        return in_row() ? std::uint64_t{row.block} << 32 | std::uint64_t{row.line} << 16 |
                              static_cast<std::uint16_t>(row.attribute)
                        : pointer.id;
    }
};
static_assert(sizeof(StoredValue) == 16);

/// What another process needs to read values.
struct StoredValueFiles {
    pid_t session;
    int values, bytes;  // open in the session
    std::uint64_t count, bytes_size;
    const StoredValue* session_values;  // their addresses in the session
    const std::uint8_t* session_bytes;
};

/// Reads values that the session stores, in any process of its parallel work.
class StoredValueReader {
public:
    StoredValueReader() = default;
    StoredValueReader(const StoredValue* values, const std::uint8_t* bytes)
        : values_(values), bytes_(bytes) {}

    /// False when the system does not let another process have the session's files. The current
    /// context is to outlive the reader.
    bool open(const StoredValueFiles& files, unsigned process);
    /// The value, as a row of a table has it: still to be detoasted. May lie in memory of the
    /// current context. Valid as long as that is, and the files, until the next call.
    Datum at(std::size_t row);
    /// To be called at the end, but not after an error.
    void close() { rows_.close(); }
    /// Where the value lies.
    const StoredValue& stored(std::size_t row) const { return values_[row]; }

private:
    const StoredValue* values_ = nullptr;
    const std::uint8_t* bytes_ = nullptr;
    PlacedRows rows_;
    MemoryContext context_ = CurrentMemoryContext;
};

/// The values of a column of an inner query, row by row. Functions raise errors.
class StoredValues {
public:
    explicit StoredValues(std::size_t memory_limit)
        : shared_values_(memory_limit), bytes_(memory_limit) {}

    /// A value that is not null. It is fetched or copied at once if that is said. `row` is
    /// where it comes from, as RowReceiver::row().
    void append(Datum value, bool fetch, const RowOrigin& row = {});
    /// Fetches the values so far that are not here yet.
    void fetch_all();
    std::size_t size() const { return values_.size(); }
    /// Size of all values when they are fetched and unpacked.
    std::uint64_t unpacked_bytes() const { return unpacked_bytes_; }
    /// Seconds that one process takes to fetch and unpack them, about.
    double seconds() const;
    /// Size of the value when it is fetched and unpacked, with a header.
    std::size_t unpacked_size(std::size_t row) const;
    /// Where the value lies.
    const StoredValue& stored(std::size_t row) const { return values_[row]; }
    /// Version of the value's row; InvalidTransactionId where it is not known.
    TransactionId row_version(std::size_t row) const {
        return row < versions_.size() ? versions_[row] : InvalidTransactionId;
    }
    bool knows_row_versions() const { return !versions_.empty(); }
    void forget_row_versions() { versions_.clear(); }

    /// Ends the appending, with the rows in this order: their numbers so far; none to keep them.
    void finish(const std::vector<std::uint32_t>& order);
    /// Whether all values are here, and none is compressed: plain_bytes() then has them, after
    /// finish(), at these places.
    bool plain() const { return fetched_ == 0 && placed_ == 0 && packed_bytes_ == 0; }
    Extent plain_extent(std::size_t row) const;
    const PackedBytes& plain_bytes() const { return bytes_; }
    PackedBytes& plain_bytes() { return bytes_; }

    /// After finish(), for parallel work.
    StoredValueFiles files();
    /// After finish() and until release(), in the session: a single value, unpacked. Lies in memory
    /// of the current context, or in that of the values.
    Datum detoasted(std::size_t row) const;

    /// As PackedBytes::release().
    void release();

private:
    const varlena* whole(const varlena* value, bool fetch);
    StoredValue copy(const varlena* value);
    void append_version(TransactionId version);
    bool is_temporary(Oid toast_relation);

    GrowingArray<StoredValue> values_;
    GrowingArray<TransactionId> versions_;  // up to the last one that is known
    PackedBytes shared_values_;             // the values, for parallel work
    PackedBytes bytes_;
    FileDescriptor values_file_, bytes_file_;
    std::uint64_t unpacked_bytes_ = 0;
    std::uint64_t fetched_ = 0;       // values to be fetched from TOAST tables
    std::uint64_t placed_ = 0;        // values to be read in their rows
    std::uint64_t packed_bytes_ = 0;  // of values to be unpacked
    Oid last_relation_ = InvalidOid;
    bool last_is_temporary_ = false;
};

}  // namespace gputext
