// cpp/base/stop.hpp - request to stop a long computation

#pragma once

namespace gputext {

/// Asked by every long loop between steps of at most a few milliseconds. Cheap enough for that:
/// one indirect call. The default never stops.
struct Stop {
    bool (*requested)(void* context) = nullptr;
    void* context = nullptr;

    bool operator()() const { return requested != nullptr && requested(context); }
};

}  // namespace gputext
