// kernels/base/launch.hpp - small helpers around kernel launches and CUB's calls

#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "kernels/base/cuda_status.hpp"
#include "kernels/base/device_buffer.hpp"

namespace gputext::gpu {

/// Blocks of `threads` that cover `size` items.
inline unsigned blocks_for(std::size_t size, unsigned threads) {
    return static_cast<unsigned>((size + threads - 1) / threads);
}

/// Whether the launch just before was accepted.
inline Status launched(const char* operation) {
    return cuda_status(cudaGetLastError(), operation);
}

/// Whether the current device's compute capability is at least `major`.0.
inline Status has_capability(int major, bool& has) {
    int device = 0, own = 0;
    GPUTEXT_TRY(cuda_status(cudaGetDevice(&device), "asking for the device"));
    GPUTEXT_TRY(cuda_status(cudaDeviceGetAttribute(&own, cudaDevAttrComputeCapabilityMajor, device),
                            "asking for the device's compute capability"));
    has = own >= major;
    return {};
}

/// Lets a kernel have so much dynamic shared memory.
template <class Kernel>
Status allow_shared_bytes(Kernel* kernel, std::size_t bytes) {
    if (bytes <= 32 << 10) return {};
    return cuda_status(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                            static_cast<int>(bytes)),
                       "asking for shared memory");
}

/// Calls a CUB algorithm twice, as it wants it: for the size of its scratch memory, and to run.
template <class Call>
Status with_scratch(DeviceBuffer<std::uint8_t>& scratch, cudaStream_t stream, Call&& call) {
    std::size_t bytes = 0;
    GPUTEXT_TRY(cuda_status(call(nullptr, bytes), "planning a device algorithm"));
    if (bytes > scratch.size()) GPUTEXT_TRY(scratch.allocate(bytes, stream));
    return cuda_status(call(scratch.data(), bytes), "running a device algorithm");
}

/// Values from the device; waits for the stream.
template <class T>
Status download(const T* from, T* to, std::size_t size, cudaStream_t stream,
                const char* operation) {
    GPUTEXT_TRY(cuda_status(
        cudaMemcpyAsync(to, from, size * sizeof(T), cudaMemcpyDeviceToHost, stream), operation));
    return cuda_status(cudaStreamSynchronize(stream), operation);
}

template <class T>
Status download_value(const T* from, T& value, cudaStream_t stream, const char* operation) {
    return download(from, &value, 1, stream, operation);
}

}  // namespace gputext::gpu
