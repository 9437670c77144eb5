// kernels/base/stream_event.hpp - lets a stream wait for the work of another stream

#pragma once

#include <cuda_runtime_api.h>

#include "kernels/base/cuda_status.hpp"

namespace gputext::gpu {

/// An event that one stream waits for until another has come so far. Used again, it leaves those
/// that wait already as they are.
class StreamEvent {
public:
    StreamEvent() = default;
    ~StreamEvent() {
        if (event_ != nullptr) cudaEventDestroy(event_);
    }
    StreamEvent(const StreamEvent&) = delete;
    StreamEvent& operator=(const StreamEvent&) = delete;

    Status create() {
        return cuda_status(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming),
                           "creating an event");
    }
    /// What comes on `waiting` from now on begins after what is on `for_stream` by now.
    Status hold(cudaStream_t waiting, cudaStream_t for_stream) {
        GPUTEXT_TRY(cuda_status(cudaEventRecord(event_, for_stream), "recording an event"));
        return cuda_status(cudaStreamWaitEvent(waiting, event_, 0), "waiting for an event");
    }

private:
    cudaEvent_t event_ = nullptr;
};

}  // namespace gputext::gpu
