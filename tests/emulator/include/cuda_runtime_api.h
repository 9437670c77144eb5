// tests/emulator/include/cuda_runtime_api.h - of CUDA's runtime what kernels/ and their tests call,
// without a GPU
//
// In the place of CUDA's header of this name. What is put on a stream is done at once, and memory
// of the device is the process's. Memory that nobody has written begins with bytes that are not 0.

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#define __host__
#define __device__

enum cudaError_t {
    cudaSuccess,
    cudaErrorMemoryAllocation,
    cudaErrorIllegalAddress,
    cudaErrorIllegalInstruction,
    cudaErrorInvalidAddressSpace,
    cudaErrorInvalidPc,
    cudaErrorMisalignedAddress,
    cudaErrorHardwareStackError,
    cudaErrorLaunchFailure,
    cudaErrorLaunchTimeout,
    cudaErrorAssert,
    cudaErrorECCUncorrectable,
    cudaErrorNvlinkUncorrectable,
    cudaErrorContained,
};
enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice };
enum cudaDeviceAttr { cudaDevAttrComputeCapabilityMajor };
enum cudaMemPoolAttr { cudaMemPoolAttrReservedMemCurrent, cudaMemPoolAttrUsedMemCurrent };
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize };
inline constexpr unsigned cudaStreamNonBlocking = 1, cudaEventDisableTiming = 2;

struct EmulatedStream {};
using cudaStream_t = EmulatedStream*;
struct EmulatedEvent {};
using cudaEvent_t = EmulatedEvent*;
struct EmulatedPool {};
using cudaMemPool_t = EmulatedPool*;

struct alignas(8) uint2 {
    unsigned x, y;
};
struct uint3 {
    unsigned x, y, z;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
struct alignas(8) ushort4 {
    unsigned short x, y, z, w;
};
struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned of_x = 1, unsigned of_y = 1, unsigned of_z = 1)
        : x(of_x), y(of_y), z(of_z) {}
};

inline const char* cudaGetErrorString(cudaError_t) {
    return "an error of the emulator";
}
inline cudaError_t cudaGetLastError() {
    return cudaSuccess;
}

// ---- Devices ----

inline cudaError_t cudaGetDeviceCount(int* count) {
    *count = 1;
    return cudaSuccess;
}
inline cudaError_t cudaGetDevice(int* device) {
    *device = 0;
    return cudaSuccess;
}
inline cudaError_t cudaSetDevice(int) {
    return cudaSuccess;
}
inline cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int) {
    *value = 8;
    return cudaSuccess;
}
template <class Kernel>
cudaError_t cudaFuncSetAttribute(Kernel*, cudaFuncAttribute, int) {
    return cudaSuccess;
}

// ---- Streams and events ----

inline cudaError_t cudaStreamCreate(cudaStream_t* stream) {
    *stream = new EmulatedStream;
    return cudaSuccess;
}
inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
    return cudaStreamCreate(stream);
}
inline cudaError_t cudaStreamDestroy(cudaStream_t stream) {
    delete stream;
    return cudaSuccess;
}
inline cudaError_t cudaStreamSynchronize(cudaStream_t) {
    return cudaSuccess;
}
inline cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) {
    return cudaSuccess;
}
inline cudaError_t cudaLaunchHostFunc(cudaStream_t, void (*function)(void*), void* data) {
    function(data);
    return cudaSuccess;
}
inline cudaError_t cudaEventCreate(cudaEvent_t* event) {
    *event = new EmulatedEvent;
    return cudaSuccess;
}
inline cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
    return cudaEventCreate(event);
}
inline cudaError_t cudaEventDestroy(cudaEvent_t event) {
    delete event;
    return cudaSuccess;
}
inline cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) {
    return cudaSuccess;
}
inline cudaError_t cudaEventSynchronize(cudaEvent_t) {
    return cudaSuccess;
}
inline cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t, cudaEvent_t) {
    *milliseconds = 0;
    return cudaSuccess;
}

// ---- Memory ----

inline cudaError_t cudaMallocHost(void** data, std::size_t bytes) {
    *data = std::malloc(bytes);
    if (*data == nullptr) return cudaErrorMemoryAllocation;
    constexpr std::size_t kMost = 1 << 20;  // more would take longer than what is tested
    std::memset(*data, 0xab, bytes < kMost ? bytes : kMost);
    return cudaSuccess;
}
inline cudaError_t cudaFreeHost(void* data) {
    std::free(data);
    return cudaSuccess;
}
inline cudaError_t cudaMallocAsync(void** data, std::size_t bytes, cudaStream_t) {
    return cudaMallocHost(data, bytes);
}
inline cudaError_t cudaFreeAsync(void* data, cudaStream_t) {
    return cudaFreeHost(data);
}
inline cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind,
                                   cudaStream_t) {
    std::memcpy(to, from, bytes);
    return cudaSuccess;
}
inline cudaError_t cudaMemsetAsync(void* data, int value, std::size_t bytes, cudaStream_t) {
    std::memset(data, value, bytes);
    return cudaSuccess;
}
inline cudaError_t cudaMemGetInfo(std::size_t* available, std::size_t* all) {
    *available = *all = std::size_t{1} << 34;
    return cudaSuccess;
}
inline cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int) {
    *pool = nullptr;
    return cudaSuccess;
}
inline cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t, cudaMemPoolAttr, void* value) {
    std::memset(value, 0, sizeof(std::uint64_t));
    return cudaSuccess;
}
