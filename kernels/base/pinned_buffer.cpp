#include "kernels/base/pinned_buffer.hpp"

#include <atomic>
#include <chrono>
#include <mutex>
#include <new>
#include <vector>

namespace gputext::gpu {
namespace {

/// How long the host polls the word before it waits through the runtime. That takes some
/// microseconds more, which do not matter after so long.
constexpr std::chrono::microseconds kLooking{1000};
constexpr unsigned kLooksAtOnce = 256;

/// Buffers that have no owner.
class Spare {
public:
    void* take() {
        const std::lock_guard lock(mutex_);
        if (buffers_.empty()) return nullptr;
        void* const memory = buffers_.back();
        buffers_.pop_back();
        return memory;
    }
    void add(void* memory) {
        const std::lock_guard lock(mutex_);
        try {
            buffers_.push_back(memory);
        } catch (const std::bad_alloc&) {
            cudaFreeHost(memory);
        }
    }

private:
    std::mutex mutex_;
    std::vector<void*> buffers_;
};

/// Never destroyed: when the process ends, the driver may have gone before.
Spare& spare() {
    static Spare* const made = new Spare;
    return *made;
}

std::uint64_t look(std::uint64_t& word) {
    return std::atomic_ref(word).load(std::memory_order_acquire);
}

}  // namespace

PinnedBuffer::~PinnedBuffer() {
    if (memory_ != nullptr) spare().add(memory_);
}

Status PinnedBuffer::prepare() {
    if (memory_ == nullptr) memory_ = spare().take();
    if (memory_ == nullptr) {
        const cudaError_t error =
            cudaHostAlloc(&memory_, 64 + bytes, cudaHostAllocPortable | cudaHostAllocMapped);
        if (error != cudaSuccess) {
            cudaGetLastError();  // a failed allocation leaves the context usable
            memory_ = nullptr;
            return cuda_status(error, "pinning memory");
        }
    }
    std::atomic_ref(*word()).store(0, std::memory_order_release);
    return {};
}

Status PinnedBuffer::wait(cudaStream_t stream, const char* operation, std::uint64_t& value) const {
    const auto end = std::chrono::steady_clock::now() + kLooking;
    do {
        for (unsigned i = 0; i < kLooksAtOnce; ++i) {
            value = look(*word());
            if (value != 0) return {};
        }
    } while (std::chrono::steady_clock::now() < end);
    GPUTEXT_TRY(cuda_status(cudaStreamSynchronize(stream), operation));
    value = look(*word());
    if (value != 0) return {};
    return {ErrorCode::device_error, std::string(operation) + " failed: no result was written"};
}

}  // namespace gputext::gpu
