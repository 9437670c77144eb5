#include "cpp/base/device_copies.hpp"

#include <algorithm>

namespace gputext {
namespace {

constexpr std::uint64_t kPartAsked = 4;  // divisor of a range's size

}  // namespace

bool DeviceCopies::ask(const Range& range, std::uint64_t bytes) {
    const auto [at, first] = asked_.try_emplace(range.id);
    if (first) at->second.first_job = job_;
    at->second.last_job = job_;
    at->second.bytes += bytes;
    return at->second.copied != 0;
}

bool DeviceCopies::wanted(const Range& range) const {
    const auto found = asked_.find(range.id);
    return found != asked_.end() && found->second.copied == 0 && range.size > 0 &&
           found->second.refused_job != job_ && found->second.bytes >= range.size / kPartAsked;
}

std::optional<std::vector<std::uint64_t>> DeviceCopies::make_room(const Range& range,
                                                                  const Room& room) const {
    const std::uint64_t size = range.size;
    if (size > room.most) return std::nullopt;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> unused;  // last job and id
    const auto own = asked_.find(range.id);
    if (own != asked_.end() && own->second.first_job != job_)
        for (const auto& [id, asked] : asked_)
            if (asked.copied != 0 && asked.last_job != job_)
                unused.emplace_back(asked.last_job, id);
    std::ranges::sort(unused);
    std::vector<std::uint64_t> going;
    std::uint64_t freed = 0;
    for (std::size_t i = 0; bytes_ - freed > room.most - size; ++i) {
        if (i == unused.size()) return std::nullopt;
        going.push_back(unused[i].second);
        freed += asked_.at(going.back()).copied;
    }
    if ((room.left + freed) / 2 < size) return std::nullopt;
    return going;
}

void DeviceCopies::refuse(const Range& range) {
    asked_[range.id].refused_job = job_;
}

void DeviceCopies::add(const Range& range) {
    Asked& asked = asked_[range.id];
    bytes_ += range.size - asked.copied;
    asked.copied = range.size;
}

void DeviceCopies::remove(std::uint64_t id) {
    const auto found = asked_.find(id);
    if (found == asked_.end()) return;
    bytes_ -= found->second.copied;
    found->second.copied = 0;
    found->second.bytes = 0;
}

std::vector<std::uint64_t> DeviceCopies::gone(const ResidentRanges& ranges) {
    std::vector<std::uint64_t> ids;
    for (auto at = asked_.begin(); at != asked_.end();) {
        const bool gone = !ranges.has(at->first);
        if (gone && at->second.copied != 0) ids.push_back(at->first);
        if (gone && at->second.copied == 0)
            at = asked_.erase(at);
        else
            ++at;
    }
    return ids;
}

}  // namespace gputext
