// kernels/base/stream_event.hpp - lets a stream wait for the work of another stream

#pragma once

#include <cuda_runtime_api.h>

#include <utility>
#include <vector>

#include "kernels/base/cuda_status.hpp"

namespace gputext::gpu {

/// Makes one stream wait for the work that is on another one. It may be used again while streams
/// still wait for an earlier use.
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
    /// Work put on `waiting` from now on begins after all work that is on `for_stream` now.
    Status hold(cudaStream_t waiting, cudaStream_t for_stream) {
        GPUTEXT_TRY(cuda_status(cudaEventRecord(event_, for_stream), "recording an event"));
        return cuda_status(cudaStreamWaitEvent(waiting, event_, 0), "waiting for an event");
    }

private:
    cudaEvent_t event_ = nullptr;
};

/// Adds up spans of a stream's time, for those who measure. Does nothing unless enabled.
class StreamTimer {
public:
    StreamTimer(bool enabled, cudaStream_t stream) : enabled_(enabled), stream_(stream) {}
    ~StreamTimer() {
        for (const auto& [begin, end] : spans_) {
            cudaEventDestroy(begin);
            if (end != nullptr) cudaEventDestroy(end);
        }
    }
    StreamTimer(const StreamTimer&) = delete;
    StreamTimer& operator=(const StreamTimer&) = delete;

    void begin() {
        if (enabled_) spans_.emplace_back(record(), nullptr);
    }
    void end() {
        if (enabled_) spans_.back().second = record();
    }
    /// Total time of all spans that have ended; the stream must have reached their ends.
    double milliseconds() const {
        double sum = 0;
        for (const auto& [begin, end] : spans_) {
            float some = 0;
            if (end != nullptr && cudaEventElapsedTime(&some, begin, end) == cudaSuccess)
                sum += some;
        }
        return sum;
    }

private:
    cudaEvent_t record() {
        cudaEvent_t event = nullptr;
        if (cudaEventCreate(&event) == cudaSuccess) cudaEventRecord(event, stream_);
        return event;
    }

    bool enabled_;
    cudaStream_t stream_;
    std::vector<std::pair<cudaEvent_t, cudaEvent_t>> spans_;
};

}  // namespace gputext::gpu
