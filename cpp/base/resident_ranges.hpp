// cpp/base/resident_ranges.hpp - memory of gputextd that stays as it is from job to job
//
// What sessions have read once stays in gputextd's memory (cpp/resident), where it does not change
// until it is given up. A device may keep a copy of such memory, and knows it again by its address.

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

namespace gputext {

/// The ranges of such memory. For all threads. Functions take O(log ranges).
class ResidentRanges {
public:
    struct Range {
        std::uint64_t id = 0;  // that no other range ever has; not 0
        const std::uint8_t* begin = nullptr;
        std::size_t size = 0;
    };

    /// Before the first job reads it.
    void add(const Range& range);
    /// After the last job that reads it, and before its memory is given up.
    void remove(std::uint64_t id);

    bool empty() const;
    /// The range that all these bytes lie in, if there is one. It stays while a job holds it.
    std::optional<Range> containing(const std::uint8_t* begin, std::size_t size) const;
    /// Whether it has been added and not removed: else a device's copy is of no use any more.
    bool has(std::uint64_t id) const;

    /// A device says how many bytes it keeps of a range now.
    void set_kept(std::uint32_t device, std::uint64_t id, std::uint64_t bytes);
    /// How many bytes all devices keep of a range.
    std::uint64_t kept(std::uint64_t id) const;

private:
    mutable std::mutex mutex_;
    std::map<const std::uint8_t*, Range> by_address_;
    std::map<std::uint64_t, const std::uint8_t*> address_of_;
    std::map<std::pair<std::uint64_t, std::uint32_t>, std::uint64_t> kept_;  // by id and device
};

}  // namespace gputext
