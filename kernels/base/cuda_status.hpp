// kernels/base/cuda_status.hpp - converts errors of the CUDA runtime to Status

#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "cpp/base/status.hpp"

namespace gputext {

/// Whether every later call of this process fails too, so that only a new process can go on.
inline bool is_sticky(cudaError_t error) {
    switch (error) {
        case cudaErrorIllegalAddress:
        case cudaErrorIllegalInstruction:
        case cudaErrorInvalidAddressSpace:
        case cudaErrorInvalidPc:
        case cudaErrorMisalignedAddress:
        case cudaErrorHardwareStackError:
        case cudaErrorLaunchFailure:
        case cudaErrorLaunchTimeout:
        case cudaErrorAssert:
        case cudaErrorECCUncorrectable:
        case cudaErrorNvlinkUncorrectable:
        case cudaErrorContained:
            return true;
        default:
            return false;
    }
}

/// Ok, out_of_memory, device_lost, or device_error with the operation and the runtime's own words.
inline Status cuda_status(cudaError_t error, const char* operation) {
    if (error == cudaSuccess) return {};
    if (error == cudaErrorMemoryAllocation)
        return {ErrorCode::out_of_memory, std::string("out of device memory in ") + operation};
    return {is_sticky(error) ? ErrorCode::device_lost : ErrorCode::device_error,
            std::string(operation) + " failed: " + cudaGetErrorString(error)};
}

}  // namespace gputext
