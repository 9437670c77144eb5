#include "cpp/base/filling.hpp"

#include <chrono>
#include <new>

namespace gputext {
namespace {

constexpr std::chrono::milliseconds kLookEvery{5};

Status never_filled(const Status& why) noexcept {
    try {
        return {ErrorCode::unavailable, "gputextd could not copy values: " + why.message()};
    } catch (const std::bad_alloc&) {
        return {ErrorCode::unavailable, {}};
    }
}

}  // namespace

void Filling::end(Status status) noexcept {
    {
        const std::lock_guard lock(mutex_);
        if (status.ok())
            filled_.store(true, std::memory_order_release);
        else
            error_ = never_filled(status);
    }
    ended_.notify_all();
}

bool Filling::failed() const {
    const std::lock_guard lock(mutex_);
    return !error_.ok();
}

Status Filling::wait(Stop stop) const {
    if (filled()) return {};
    std::unique_lock lock(mutex_);
    for (;;) {
        if (filled()) return {};
        if (!error_.ok()) return error_;
        if (stop()) return Status::cancelled();
        ended_.wait_for(lock, kLookEvery);
    }
}

}  // namespace gputext
