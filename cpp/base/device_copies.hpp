// cpp/base/device_copies.hpp - which resident ranges a device has copies of
//
// A job asks for pieces of ranges, and nobody knows what it will ask for next: a search asks for a
// whole range at once, another operator for one batch after another, a third one for a single row.
// A range is copied as a whole once the bytes that have been asked for, by all jobs until then,
// come to a quarter of it. A job that takes all of the range in batches then uploads at most a
// quarter twice, and a job that takes little of it does not pay for all.
//
// Copies and jobs share the device's memory: all copies together take at most half of it, and a new
// one leaves the job that asks at least as much again as the copy takes. Where that takes others'
// place, those go that jobs have not used for the longest time, but only when a second job asks for
// the range, since a range that is read once must not push out ranges that are read again and
// again. What the running job has used stays until it ends.

#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "cpp/base/resident_ranges.hpp"

namespace gputext {

/// The choice alone; the memory is the device's matter. Used by one thread. Functions take
/// O(log ranges) except where they say more.
class DeviceCopies {
public:
    using Range = ResidentRanges::Range;

    /// Bytes of device memory at the time when a copy is to be made.
    struct Room {
        std::uint64_t most = 0;  // that all copies may take
        std::uint64_t left = 0;  // of what the job may take, it has not taken these
    };

    void begin_job() { ++job_; }

    /// The job asks for so many bytes of a range. Whether there is a copy.
    bool ask(const Range& range, std::uint64_t bytes);
    /// Whether a copy of the range, of which there is none, is due.
    bool wanted(const Range& range) const;
    /// The copies that have to go for a copy of the range, none if there is room enough; nothing if
    /// it cannot be made. Takes O(copies * log copies).
    std::optional<std::vector<std::uint64_t>> make_room(const Range& range, const Room& room) const;

    /// A copy could not be made: the running job does without it.
    void refuse(const Range& range);

    void add(const Range& range);
    void remove(std::uint64_t id);
    /// Copies of ranges that are no longer there, which the caller removes. Forgets what was asked
    /// of such ranges that have none. Takes O(ranges).
    std::vector<std::uint64_t> gone(const ResidentRanges& ranges);

    std::uint64_t bytes() const { return bytes_; }

private:
    struct Asked {
        std::uint64_t bytes = 0;      // by all jobs since the last copy was given up
        std::uint64_t first_job = 0;  // that ever asked
        std::uint64_t last_job = 0;
        std::uint64_t refused_job = 0;  // that did without a copy; 0 is none
        std::uint64_t copied = 0;       // bytes of the copy; 0 without one
    };

    std::uint64_t job_ = 1;
    std::uint64_t bytes_ = 0;
    std::map<std::uint64_t, Asked> asked_;  // by id
};

}  // namespace gputext
