#include "cpp/base/resident_ranges.hpp"

#include <iterator>

namespace gputext {

void ResidentRanges::add(const Range& range) {
    const std::lock_guard lock(mutex_);
    by_address_[range.begin] = range;
    address_of_[range.id] = range.begin;
}

void ResidentRanges::remove(std::uint64_t id) {
    const std::lock_guard lock(mutex_);
    const auto found = address_of_.find(id);
    if (found == address_of_.end()) return;
    by_address_.erase(found->second);
    address_of_.erase(found);
    kept_.erase(kept_.lower_bound({id, 0}), kept_.upper_bound({id, UINT32_MAX}));
}

bool ResidentRanges::empty() const {
    const std::lock_guard lock(mutex_);
    return by_address_.empty();
}

std::optional<ResidentRanges::Range> ResidentRanges::containing(const std::uint8_t* begin,
                                                                std::size_t size) const {
    const std::lock_guard lock(mutex_);
    const auto next = by_address_.upper_bound(begin);
    if (next == by_address_.begin()) return std::nullopt;
    const Range& range = std::prev(next)->second;
    const std::size_t at = static_cast<std::size_t>(begin - range.begin);
    if (at > range.size || size > range.size - at) return std::nullopt;
    return range;
}

bool ResidentRanges::has(std::uint64_t id) const {
    const std::lock_guard lock(mutex_);
    return address_of_.contains(id);
}

void ResidentRanges::set_kept(std::uint32_t device, std::uint64_t id, std::uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    if (bytes == 0)
        kept_.erase({id, device});
    else if (address_of_.contains(id))
        kept_[{id, device}] = bytes;
}

std::uint64_t ResidentRanges::kept(std::uint64_t id) const {
    const std::lock_guard lock(mutex_);
    std::uint64_t bytes = 0;
    for (auto at = kept_.lower_bound({id, 0}); at != kept_.end() && at->first.first == id; ++at)
        bytes += at->second;
    return bytes;
}

}  // namespace gputext
