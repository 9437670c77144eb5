// kernels/base/job_status.hpp - how an operator's work on a device ends

#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <string>

#include "kernels/base/cuda_status.hpp"

namespace gputext::gpu {

/// The error of an operation, named with its verb, that needs more memory than it may take.
inline Status too_little_memory(const char* operation_takes, std::uint64_t needed,
                                std::uint64_t allowed) {
    return {ErrorCode::out_of_memory, std::string(operation_takes) + " " + std::to_string(needed) +
                                          " bytes of device memory, and " +
                                          std::to_string(allowed) + " may be taken"};
}

/// Waits until nothing of some work is on its stream any more, so that its memory can go. Gives the
/// work's own error, or one of the stream.
inline Status finish_work(Status status, cudaStream_t stream, const char* operation) {
    const Status finished = cuda_status(cudaStreamSynchronize(stream), operation);
    return status.ok() ? finished : status;
}

}  // namespace gputext::gpu
