// extension/server/activity.hpp - progress of this session's operators, for gputext_activity and
// gputext.progress
//
// An operator whose inner query calls another one is shown again when that one has ended.

#pragma once

#include "extension/base/postgres.hpp"

#include <cstdint>

#include "extension/server/shared_state.hpp"

namespace gputext {

/// How far an operator is.
struct Step {
    const char* phase;
    std::uint64_t done;
    std::uint64_t total;      // 0 when nobody knows it
    std::int32_t device;      // its number, kOnCpu or kNowhereYet
    std::uint32_t epoch = 0;  // of a training, as in Execution
    double loss = 0;          // the same
};

/// Shows the operator from here on, until the context is reset or deleted or the session ends.
void begin_activity(const char* operation, MemoryContext context);

/// Shows how far it is. May be called often: it does something only when a client wants to know.
void show_step(const Step& step);

/// Shows how many rows of the inner query were read.
void show_rows(std::uint64_t rows, std::uint64_t bytes);

/// Whether show_rows() has something to do after so many rows.
bool rows_are_due(std::uint64_t rows);
/// As show_rows(), where to add up the bytes takes as long as a row: bytes() is called now and
/// then. To be followed by show_rows() after the last row.
template <class Bytes>
void show_rows_so_far(std::uint64_t rows, const Bytes& bytes) {
    if (rows_are_due(rows)) show_rows(rows, bytes());
}

}  // namespace gputext
