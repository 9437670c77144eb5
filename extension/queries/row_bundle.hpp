// extension/queries/row_bundle.hpp - rows of an inner query, many in one value of type bytea
//
// A parallel worker hands its rows to the session one by one, each by a message that both copy
// column by column. Of a bundle of some hundred rows there is one message, whose rows the session
// reads where they lie. A bundle is read by the same build of this library that has written it, and
// lives as long as a statement.
//
// A row is the mask of its columns that are null, flags, and its other columns one behind the
// other, each aligned for any type. Of a value that will be read within its row (row_places.hpp)
// there are only the bytes that tell its size.

#pragma once

#include "extension/base/postgres.hpp"

extern "C" {
#include "access/tupdesc.h"
#include "executor/tuptable.h"
}

#include <cstddef>
#include <cstdint>

#include "extension/values/row_versions.hpp"

namespace gputext {

/// What both sides know of the rows.
struct BundledRows {
    /// Whose system columns the rows have behind all others, where it is known.
    VersionedTable table;
    int value = -1;  // the column that may be read within its row; -1 for none

    /// A bundle has rows of so many columns at most.
    static constexpr int kMostColumns = 32;
};

/// Whether rows of these columns can be in a bundle.
bool can_be_bundled(TupleDesc columns);

/// Makes bundles, one after the other, in one piece of memory. Functions raise errors.
class BundleWriter {
public:
    /// Allocates in the memory that is current.
    BundleWriter(TupleDesc columns, const BundledRows& rows);

    void append(TupleTableSlot* row);
    bool empty() const { return size_ == kHeader; }
    bool full() const { return size_ >= kFull; }
    /// Ends the bundle, which lasts until the next call of append(). At least one row is in it.
    Datum take();

private:
    // The header of the value, and the number of rows.
    static constexpr std::size_t kHeader = 8;
    /// A fraction of the queue of a worker, so that one is written while another is read.
    static constexpr std::size_t kFull = 16 * 1024;

    char* extend(std::size_t size);
    void append_bytes(const void* bytes, std::size_t size);
    void append_column(Datum value, int column);
    bool append_size_of(const TupleTableSlot* row);

    TupleDesc columns_;
    BundledRows rows_;
    RowOrigins origins_;
    char* bundle_;
    std::size_t capacity_, size_ = kHeader;
    std::uint32_t count_ = 0;  // rows
    bool taken_ = false;
};

/// Reads the rows of bundles.
class BundleReader {
public:
    /// `value` as in BundledRows.
    BundleReader(TupleDesc columns, int value);

    /// The bundle has to last while it is read; it may be copied to memory that is current.
    void open(Datum bundle);
    /// The next row, into arrays of so many elements as there are columns. False behind the last.
    bool next(Datum* values, bool* nulls);
    /// Of the row that was read: whether of its value that may be read within its row there is the
    /// size alone.
    bool value_is_in_row() const { return value_is_in_row_; }

private:
    static constexpr int16 kByValue = 0;

    int count_, value_;
    int16 lengths_[BundledRows::kMostColumns];  // as in the server's catalog, but of values
    const char* at_ = nullptr;
    std::uint32_t left_ = 0;  // rows
    bool value_is_in_row_ = false;
};

}  // namespace gputext
