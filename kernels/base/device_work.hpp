// kernels/base/device_work.hpp - stream and memory that an operator may use on a device

#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

namespace gputext::gpu {

/// Memory and stream of the current device for one operator. The operator looks at its Execution
/// between launches, none of which takes longer than some 50 ms, and does all its work on this
/// one stream unless its header says more.
struct DeviceWork {
    cudaStream_t stream = nullptr;
    std::size_t bytes = 0;  // of device memory, at most
};

}  // namespace gputext::gpu
