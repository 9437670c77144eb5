// kernels/base/early_launch.cuh - launches kernels that begin while the previous one on their
// stream ends
//
// Between two small kernels a device is idle for a microsecond or two. From compute capability 9.0
// on a kernel can be brought to its multiprocessors meanwhile ("programmatic dependent launch" in
// the CUDA C++ Programming Guide); before that version it is launched as any other.

#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>

#include "kernels/base/launch.hpp"

namespace gputext::gpu {

/// Called by a kernel that a kernel launched early may follow. When all its blocks have called this
/// or have ended, blocks of the next kernel may start where there is room.
__device__ inline void let_next_begin() {
#if __CUDA_ARCH__ >= 900
    cudaTriggerProgrammaticLaunchCompletion();
#endif
}

/// Called by all threads of a kernel that is launched early, before they touch memory that earlier
/// work on the stream reads or writes. Waits for all of that work.
__device__ inline void wait_for_previous() {
#if __CUDA_ARCH__ >= 900
    cudaGridDependencySynchronize();
#endif
}

/// Launches a kernel that calls wait_for_previous(). Errors: a device's.
template <class... Parameters, class... Arguments>
Status launch_early(const char* operation, void (*kernel)(Parameters...), dim3 blocks,
                    unsigned threads, std::size_t shared_bytes, cudaStream_t stream,
                    const Arguments&... arguments) {
    int device = 0, major = 0;
    GPUTEXT_TRY(cuda_status(cudaGetDevice(&device), operation));
    GPUTEXT_TRY(cuda_status(
        cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device), operation));
    cudaLaunchAttribute early{};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config{};
    config.gridDim = blocks;
    config.blockDim = threads;
    config.dynamicSmemBytes = shared_bytes;
    config.stream = stream;
    config.attrs = &early;
    config.numAttrs = major >= 9 ? 1 : 0;
    return cuda_status(cudaLaunchKernelEx(&config, kernel, Parameters(arguments)...), operation);
}

}  // namespace gputext::gpu
