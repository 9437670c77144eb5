// extension/values/shared_rows.hpp - rows that processes share out among each other, stretch by
// stretch

#pragma once

#include "extension/base/postgres.hpp"

extern "C" {
#include "port/atomics.h"
}

#include <sys/types.h>

#include <algorithm>
#include <cstdint>

#include "extension/server/activity.hpp"
#include "extension/server/parallel_work.hpp"
#include "extension/values/shared_array.hpp"

namespace gputext {

/// A part of what the processes of parallel work share (parallel_work.hpp). Functions raise errors.
class SharedRows {
public:
    /// In the session, before the work: `rows` are to be read, so many of them at a time, of
    /// `ranges` ranges one behind the other. A process begins with a range of its own, so that what
    /// processes write side by side does not lie side by side; with one range, stretches are taken
    /// in the order of rows. `phase` is a literal, which gputext_activity shows.
    void begin(std::uint64_t rows, std::uint64_t stretch_rows, unsigned ranges,
               const char* phase = "reading rows") {
        rows_ = rows;
        phase_ = phase;
        stretch_rows_ = stretch_rows;
        ranges_ = std::min(ranges, kMostReaders);
        for (pg_atomic_uint64& taken : taken_) pg_atomic_init_u64(&taken, 0);
        pg_atomic_init_u64(&done_, 0);
        pg_atomic_init_u64(&first_fault_, rows);
    }

    /// In each process: calls read(begin, end) for the stretches that it takes, which returns the
    /// first row of them with which something is wrong, or `end`. What follows a row that is wrong
    /// does not matter any more; one that precedes it may be wrong, too, and then the error is
    /// about that one. Goes on while go_on() says so.
    template <class Read, class GoOn>
    void read(unsigned process, const GoOn& go_on, const Read& read) {
        for (unsigned i = 0; i < ranges_; ++i)
            read_range((process + i) % ranges_, process, go_on, read);
    }

    std::uint64_t rows() const { return rows_; }
    std::uint64_t stretch_rows() const { return stretch_rows_; }

    /// In the session, after the work: the first row that is wrong, or the number of rows. Raises
    /// an error where rows were not read, and none is wrong.
    std::uint64_t end() {
        const std::uint64_t fault = first_fault();
        if (fault == rows_) check_all_read(pg_atomic_read_u64(&done_), rows_);
        return fault;
    }
    std::uint64_t first_fault() { return pg_atomic_read_u64(&first_fault_); }

private:
    template <class Read, class GoOn>
    void read_range(unsigned range, unsigned process, const GoOn& go_on, const Read& read) {
        const std::uint64_t first = rows_ * range / ranges_;
        const std::uint64_t count = rows_ * (range + 1) / ranges_ - first;
        for (;;) {
            const std::uint64_t taken =
                pg_atomic_fetch_add_u64(&taken_[range], static_cast<int64>(stretch_rows_));
            if (taken >= count || first + taken > first_fault() || !go_on()) return;
            const std::uint64_t begin = first + taken;
            const std::uint64_t end = first + std::min(count, taken + stretch_rows_);
            if (const std::uint64_t fault = read(begin, end); fault < end) {
                note_fault(first_fault_, fault);
                continue;
            }
            const std::uint64_t before =
                pg_atomic_fetch_add_u64(&done_, static_cast<int64>(end - begin));
            if (process == 0) show_step({phase_, before + end - begin, rows_, kNowhereYet});
        }
    }

    std::uint64_t rows_, stretch_rows_;
    unsigned ranges_;
    const char* phase_;                     // in the session
    pg_atomic_uint64 taken_[kMostReaders];  // rows of each range
    pg_atomic_uint64 done_;                 // rows
    pg_atomic_uint64 first_fault_;
};

}  // namespace gputext
