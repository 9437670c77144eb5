// extension/queries/row_reducer.hpp - what a process of a query makes of its rows, in place of
// handing them on (reduced_rows.hpp)

#pragma once

#include "extension/base/postgres.hpp"

#include <cstddef>
#include <cstdint>

#include "extension/values/packed_rows.hpp"

namespace gputext {

/// In one process. Functions raise errors.
class RowReducer {
public:
    virtual ~RowReducer() = default;

    /// The values need not outlive the call, nor does what is allocated during it. False where
    /// a row like this one is not to be reduced, or where memory does not suffice: no process goes
    /// on then, and all rows are to come to the session.
    virtual bool take(const Datum* values, const bool* nulls) = 0;
    /// Behind the last row.
    virtual void leave(PackedBytes& output) = 0;
};

/// Makes a reducer for one of so many processes, owned by the memory that is current. The request
/// may lie at any address, aligned or not.
using NewRowReducer = RowReducer* (*)(const void* request, unsigned processes);

/// What is to be made of rows.
struct RowReduction {
    const char* entry;    // the exported C function, of type NewRowReducer
    const void* request;  // plain memory, of which each process gets a copy
    std::size_t size;     // of the request
};

/// What a process says when it has taken in its rows: the only value that its plan gives.
struct ReducerReport {
    std::uint32_t process;  // 0 for the session, 1 and above for workers
    std::uint32_t reduced;  // whether it has taken in all of them
    std::uint64_t rows;
    std::uint64_t bytes;  // of its file
};

}  // namespace gputext
