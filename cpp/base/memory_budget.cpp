#include "cpp/base/memory_budget.hpp"

#include <string>

namespace gputext {
namespace {

constexpr std::uint64_t kKilobyte = 1024;
constexpr std::uint64_t kMegabyte = kKilobyte * kKilobyte;

/// A limit is a whole number of its unit wherever a person has set it.
std::string rounded_up(std::uint64_t bytes, std::uint64_t unit) {
    const std::uint64_t units = bytes / unit + (bytes % unit != 0);
    return std::to_string(units) + (unit == kMegabyte ? " MB" : " kB");
}

}  // namespace

Status over_memory_limit(const char* what, std::uint64_t bytes, std::uint64_t limit) {
    const std::uint64_t unit = limit % kMegabyte == 0 ? kMegabyte : kKilobyte;
    return {ErrorCode::memory_limit,
            std::string(what) + " would take at least " + rounded_up(bytes, unit) +
                ", more than the memory limit of " + rounded_up(limit, unit)};
}

Status MemoryBudget::take(std::size_t bytes, const char* what) {
    std::size_t used = used_.load(std::memory_order_relaxed);
    do {
        if (bytes > limit_ - used)
            return over_memory_limit(what, std::uint64_t{used} + bytes, limit_);
    } while (!used_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
    return {};
}

}  // namespace gputext
