// kernels/cuda_status.hpp - errors of the CUDA runtime as Status

#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "cpp/status.hpp"

namespace gputext {

/// Ok, out_of_memory, or device_error with the operation and the runtime's own words.
/// An error that the context cannot recover from stays there: see is_sticky.
inline Status cuda_status(cudaError_t error, const char* operation) {
    if (error == cudaSuccess) return {};
    if (error == cudaErrorMemoryAllocation)
        return {ErrorCode::out_of_memory, std::string("out of device memory in ") + operation};
    return {ErrorCode::device_error,
            std::string(operation) + " failed: " + cudaGetErrorString(error)};
}

}  // namespace gputext
