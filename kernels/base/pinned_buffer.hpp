// kernels/base/pinned_buffer.hpp - memory of the host that kernels write small results to
//
// A copy of a few bytes to pageable memory takes the driver longer than the kernels of a small job.
// A kernel can write to pinned memory itself, and the host sees it a microsecond or two later.

#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "kernels/base/cuda_status.hpp"

namespace gputext::gpu {

/// A buffer of pinned memory at the same address for the host and all devices. To pin memory takes
/// longer than a small job, so the process keeps what is given back for the next owner, of any
/// thread and device.
class PinnedBuffer {
public:
    /// Bytes of a buffer that lie behind its word.
    static constexpr std::size_t bytes = (std::size_t{1} << 18) - 64;

    PinnedBuffer() = default;
    /// No kernel may write to it any more.
    ~PinnedBuffer();
    PinnedBuffer(const PinnedBuffer&) = delete;
    PinnedBuffer& operator=(const PinnedBuffer&) = delete;

    /// Takes a buffer unless there is one, and makes its word 0. Errors: out_of_memory,
    /// device_error.
    Status prepare();

    /// The word that a kernel writes at its end, by write_word(): any value but 0.
    std::uint64_t* word() const { return static_cast<std::uint64_t*>(memory_); }
    std::byte* data() const { return static_cast<std::byte*>(memory_) + 64; }

    /// Waits until a kernel on the stream has written the word. The kernel itself may still go on,
    /// but nothing of the stream does after an error. Errors: device_error, device_lost.
    Status wait(cudaStream_t stream, const char* operation, std::uint64_t& value) const;

private:
    void* memory_ = nullptr;
};

#ifdef __CUDACC__
/// Writes the word, by one thread. What the host reads after the word has to be written before,
/// with __threadfence_system() in between.
__device__ inline void write_word(std::uint64_t* word, std::uint64_t value) {
    *static_cast<volatile std::uint64_t*>(word) = value;
}
#endif

}  // namespace gputext::gpu
