// cpp/base/filling.hpp - whether memory that one thread fills has all of its bytes

#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>

#include "cpp/base/status.hpp"
#include "cpp/base/stop.hpp"

namespace gputext {

/// Whether a function that gives memory waits for its bytes, or leaves that to the caller.
enum class Arrival { awaited, later };

/// The address of such memory is known before its bytes are there. Nobody but the thread that fills
/// it reads them before wait() has returned ok. For all threads.
class Filling {
public:
    /// The thread that fills the memory begins, before other threads know the memory. Memory of
    /// which this is never said is filled.
    void begin() { filled_.store(false, std::memory_order_relaxed); }
    /// It has come to its end, after begin(): all bytes are there, or will never be.
    void end(Status status) noexcept;

    bool filled() const { return filled_.load(std::memory_order_acquire); }
    bool failed() const;
    /// Waits until all bytes are there. Looks at the stop request every few milliseconds. Errors:
    /// cancelled; unavailable when they will never be.
    Status wait(Stop stop) const;

private:
    std::atomic<bool> filled_{true};
    mutable std::mutex mutex_;
    mutable std::condition_variable ended_;
    Status error_;  // why the bytes will never be there
};

}  // namespace gputext
