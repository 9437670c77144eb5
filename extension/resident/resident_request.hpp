// extension/resident/resident_request.hpp - asks gputextd which values of a column it keeps
//
// A value that is stored does not change, so gputextd keeps what sessions have read of values, by
// TOAST table and number, or by table, place of the row and column (cpp/link/resident_values.hpp).
// The inner query runs as ever: the executor alone decides which rows there are, by the session's
// snapshot and rights, and a session asks only for values that its own rows have. Values that an
// expression has made are read each time, as are very short ones (row_places.hpp), and values of
// rows that are younger than the oldest transaction that runs (row_versions.hpp).

#pragma once

#include "extension/base/postgres.hpp"

#include <cstddef>
#include <cstdint>

#include "cpp/link/resident_values.hpp"
#include "extension/server/value_store.hpp"
#include "extension/values/packed_rows.hpp"
#include "extension/values/stored_values.hpp"

namespace gputext {

/// How the values of a column are packed.
class PackedColumn {
public:
    virtual ValueKind kind() const = 0;
    /// Bytes of a row's value when it is packed; 0 of terms.
    virtual std::uint64_t size(std::size_t row) const = 0;

protected:
    ~PackedColumn() = default;
};

/// One connection. Functions that return false have failed, or there is nothing to be gained: the
/// session goes on without gputextd. They may raise errors.
class ResidentRequest {
public:
    explicit ResidentRequest(std::size_t memory_limit) : pointers_(memory_limit) {}

    /// Values that take fewer seconds to read are not worth a question. Only tests change it.
    static inline double fewest_seconds = 0.02;

    /// Whether there is a chance that gputextd helps, where one process takes about so many seconds
    /// to read the values. After StoredValues::finish().
    static bool worth_asking(const StoredValues& values, double seconds);

    /// Asks for the values of all rows; whether gputextd has said what it keeps. False also for a
    /// column of which it may keep too little.
    bool ask(const StoredValues& values, const PackedColumn& column);
    /// After ask(), for what comes then.
    ValueStore& store() { return store_; }

private:
    std::uint64_t pack_pointers(const StoredValues& values, const PackedColumn& column,
                                std::uint64_t horizon);
    bool find(const FindValues& wanted);

    ValueStore store_;
    PackedBytes pointers_;
    FileDescriptor pointers_file_;
};

}  // namespace gputext
