// cpp/base/memory_budget.hpp - counts the bytes that an operator takes as its answer grows

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "cpp/base/status.hpp"

namespace gputext {

/// The bytes that an answer, or candidates for it, may take. An operator whose memory grows faster
/// than its input takes the bytes from here before it allocates them, and returns the Status when
/// they are more than the caller allows. Several threads may use one budget: take() is one atomic
/// operation, so a thread should take many elements at once.
class MemoryBudget {
public:
    explicit MemoryBudget(std::size_t limit) : limit_(limit) {}
    MemoryBudget(const MemoryBudget&) = delete;
    MemoryBudget& operator=(const MemoryBudget&) = delete;

    /// Counts `bytes` as taken. Error: memory_limit, and then nothing is taken; the message names
    /// `what` ("the answer", "the candidates"), the limit, and the least that would be needed.
    Status take(std::size_t bytes, const char* what = "the answer");

    /// Counts bytes that were taken before as free.
    void give_back(std::size_t bytes) { used_.fetch_sub(bytes, std::memory_order_relaxed); }

    std::size_t used() const { return used_.load(std::memory_order_relaxed); }
    std::size_t limit() const { return limit_; }

private:
    const std::size_t limit_;
    std::atomic<std::size_t> used_{0};
};

/// The error of an operator that would take at least so many bytes where the caller allows `limit`.
Status over_memory_limit(const char* what, std::uint64_t bytes, std::uint64_t limit);

}  // namespace gputext
