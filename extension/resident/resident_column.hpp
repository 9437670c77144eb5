// extension/resident/resident_column.hpp - reads the values of a column, from gputextd what it
// keeps (resident_request.hpp)

#pragma once

#include "extension/base/postgres.hpp"

#include <cstddef>
#include <cstdint>

#include "cpp/base/filling.hpp"
#include "extension/resident/resident_request.hpp"
#include "extension/values/laid_out_bytes.hpp"
#include "extension/values/stored_values.hpp"

namespace gputext {

/// How the values of a column are packed, and read by the session and its parallel workers.
class ColumnReader : public PackedColumn {
public:
    /// Packs the values of these rows into `bytes`, one behind the other. Returns the first row
    /// that is no such value, or the number of all rows. Raises errors.
    virtual std::uint64_t read(ChosenRows rows, LaidOutBytes& bytes) const = 0;

protected:
    ~ColumnReader() = default;
};

/// Packs all values, after StoredValues::finish(): takes from gputextd what it keeps, reads what it
/// does not, and lets it keep that. Does without gputextd where there is little to read, none runs,
/// or it fails. Returns what ColumnReader::read() does. Raises errors. With Arrival::later, the
/// bytes may not have arrived: then await_column() has to be called before they are read, and
/// `values` has to stay until then. With `again`, gputextd keeps a copy of a few of its values, too,
/// for take_resident_column().
std::uint64_t read_column(StoredValues& values, const ColumnReader& reader, LaidOutBytes& bytes,
                          Arrival arrival = Arrival::awaited, bool again = false);

/// Takes the `size` bytes that gputextd called `resident` when an earlier statement packed these
/// values; `unpacked` is what StoredValues::unpacked_bytes() was. False, and `bytes` as it was,
/// where gputextd keeps them no more, or the session must not hold so much in memory. Raises
/// errors.
bool take_resident_column(std::uint64_t resident, std::uint64_t size, std::uint64_t unpacked,
                          LaidOutBytes& bytes);

/// Waits for bytes that have not arrived, or reads the values where they never will. Returns what
/// ColumnReader::read() does. Raises errors.
std::uint64_t await_column(const StoredValues& values, const ColumnReader& reader,
                           LaidOutBytes& bytes);

}  // namespace gputext
