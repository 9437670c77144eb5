// kernels/base/device_buffer.hpp - owner of memory on the current device

#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "kernels/base/cuda_status.hpp"

namespace gputext {

// A device is used by one thread (cpp/daemon/device.hpp), which begins all uploads to it. So a
// count of the thread is a count of its device, and buffers need not know whose they are.

/// Bytes that DeviceBuffer::upload() has had from the host on this thread, in all.
inline std::uint64_t& uploaded_to_buffers() {
    thread_local std::uint64_t bytes = 0;
    return bytes;
}

/// An array of T on the device, of any trivially copyable type. Allocated and freed on a stream, so
/// that neither waits for the device.
template <class T>
class DeviceBuffer {
public:
    DeviceBuffer() = default;
    ~DeviceBuffer() { reset(); }
    DeviceBuffer(DeviceBuffer&& other) noexcept { swap(other); }
    DeviceBuffer& operator=(DeviceBuffer&& other) noexcept {
        swap(other);
        return *this;
    }

    /// Replaces the buffer by one of `size` elements, not initialised.
    Status allocate(std::size_t size, cudaStream_t stream) {
        reset();
        stream_ = stream;
        void* data = nullptr;
        if (size == 0) return {};
        const cudaError_t error = cudaMallocAsync(&data, size * sizeof(T), stream);
        if (error != cudaSuccess) {
            cudaGetLastError();  // a failed allocation leaves the context usable
            return cuda_status(error, "allocating device memory");
        }
        data_ = static_cast<T*>(data);
        size_ = size;
        return {};
    }

    /// Copies into the first elements; a buffer that is large enough is not replaced. Counted in
    /// uploaded_to_buffers().
    Status upload(std::span<const T> from, cudaStream_t stream) {
        if (from.size() > size_) GPUTEXT_TRY(allocate(from.size(), stream));
        if (from.empty()) return {};
        uploaded_to_buffers() += from.size_bytes();
        return cuda_status(
            cudaMemcpyAsync(data_, from.data(), from.size_bytes(), cudaMemcpyHostToDevice, stream),
            "copying to the device");
    }

    void reset() {
        if (data_ != nullptr) cudaFreeAsync(data_, stream_);
        data_ = nullptr;
        size_ = 0;
    }

    T* data() const { return data_; }
    std::size_t size() const { return size_; }

private:
    void swap(DeviceBuffer& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
        std::swap(stream_, other.stream_);
    }

    T* data_ = nullptr;
    std::size_t size_ = 0;
    cudaStream_t stream_ = nullptr;
};

}  // namespace gputext
