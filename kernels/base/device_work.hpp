// kernels/base/device_work.hpp - stream and memory that an operator may use on a device

#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "kernels/base/cuda_status.hpp"

namespace gputext::gpu {

/// Memory and stream of the current device for one operator. The operator looks at its Execution
/// between launches, none of which takes longer than some 50 ms, and does all its work on this
/// one stream unless its header says more.
struct DeviceWork {
    cudaStream_t stream = nullptr;
    std::size_t bytes = 0;  // of device memory, at most
};

/// The error out_of_memory, which says how many bytes an operation needs and may take.
/// `operation_takes`: its name and verb, as in "cosine similarities take".
inline Status too_little_memory(const char* operation_takes, std::uint64_t needed,
                                std::uint64_t allowed) {
    return {ErrorCode::out_of_memory, std::string(operation_takes) + " " + std::to_string(needed) +
                                          " bytes of device memory, and " +
                                          std::to_string(allowed) + " may be taken"};
}

/// Waits for the stream, so that the memory of the work on it can be freed. Returns the work's own
/// error, or else the stream's.
inline Status finish_work(Status status, cudaStream_t stream, const char* operation) {
    const Status finished = cuda_status(cudaStreamSynchronize(stream), operation);
    return status.ok() ? finished : status;
}

}  // namespace gputext::gpu
