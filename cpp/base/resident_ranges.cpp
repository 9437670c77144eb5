#include "cpp/base/resident_ranges.hpp"

#include <iterator>

namespace gputext {

void ResidentRanges::add(const Range& range, Origin origin) {
    const std::lock_guard lock(mutex_);
    if (origin != nullptr) origins_[range.id] = std::move(origin);
    by_address_[range.begin] = range;
    address_of_[range.id] = range.begin;
}

void ResidentRanges::remove(std::uint64_t id) {
    drop_origin(id);
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

ResidentRanges::Origin ResidentRanges::origin(std::uint64_t id) const {
    const std::lock_guard lock(mutex_);
    const auto found = origins_.find(id);
    return found == origins_.end() ? nullptr : found->second;
}

bool ResidentRanges::of_use_to_others(std::uint32_t device, std::uint64_t id,
                                      const ResidentOrigin& origin) const {
    for (const ResidentOrigin::Source& source : origin.sources)
        for (auto at = kept_.lower_bound({source.id, 0});
             at != kept_.end() && at->first.first == source.id; ++at)
            if (at->first.second != device && !kept_.contains({id, at->first.second})) return true;
    return false;
}

void ResidentRanges::origin_used(std::uint32_t device, std::uint64_t id) {
    {
        const std::lock_guard lock(mutex_);
        const auto found = origins_.find(id);
        if (found == origins_.end() || of_use_to_others(device, id, *found->second)) return;
    }
    drop_origin(id);
}

/// Destroying it may destroy other ranges, which then remove themselves.
void ResidentRanges::drop_origin(std::uint64_t id) {
    Origin dropped;
    const std::lock_guard lock(mutex_);
    const auto found = origins_.find(id);
    if (found == origins_.end()) return;
    dropped = std::move(found->second);
    origins_.erase(found);
}

}  // namespace gputext
