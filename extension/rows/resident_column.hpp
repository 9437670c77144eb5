// extension/rows/resident_column.hpp - reads the values of a column, from gputextd what it keeps
//
// A value that is stored out of line does not change, so gputextd keeps what sessions have read of
// such values, by TOAST table and number (cpp/link/resident_values.hpp). The inner query runs as
// ever: the executor alone decides which rows there are, by the session's snapshot and rights, and
// a session asks only for values that its own rows point to. Values that lie within their rows, or
// that an expression has made, have no pointer and are read each time, as are values of rows that
// are younger than the oldest transaction that runs (row_versions.hpp).

#pragma once

#include "extension/base/postgres.hpp"

#include <cstddef>
#include <cstdint>

#include "cpp/link/resident_values.hpp"
#include "extension/rows/laid_out_bytes.hpp"
#include "extension/rows/row_fill.hpp"
#include "extension/rows/stored_values.hpp"

namespace gputext {

/// How the values of a column are packed, and read by the session and its parallel workers.
class ColumnReader {
public:
    virtual ValueKind kind() const = 0;
    /// Bytes of a row's value when it is packed.
    virtual std::uint64_t size(std::size_t row) const = 0;
    /// Packs the values of these rows into `bytes`, one behind the other. Returns the first row
    /// that is no such value, or the number of all rows. Raises errors.
    virtual std::uint64_t read(ChosenRows rows, LaidOutBytes& bytes) const = 0;

protected:
    ~ColumnReader() = default;
};

/// Packs all values, after StoredValues::finish(): takes from gputextd what it keeps, reads what it
/// does not, and lets it keep that. Does without gputextd where there is little to read, none runs,
/// or it fails. Returns what ColumnReader::read() does. Raises errors.
std::uint64_t read_column(StoredValues& values, const ColumnReader& reader, LaidOutBytes& bytes);

}  // namespace gputext
