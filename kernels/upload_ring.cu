#include <algorithm>
#include <cstring>
#include <utility>

#include "kernels/launch.hpp"
#include "kernels/upload_ring.hpp"

namespace gputext::gpu {

Result<std::unique_ptr<UploadRing>> UploadRing::create(std::size_t buffers) {
    std::unique_ptr<UploadRing> ring(new UploadRing);
    if (Status status = ring->allocate(std::max<std::size_t>(buffers, 2)); !status.ok())
        return status;
    return Result<std::unique_ptr<UploadRing>>(std::move(ring));
}

Status UploadRing::allocate(std::size_t buffers) {
    GPUTEXT_TRY(cuda_status(cudaGetDevice(&device_), "asking for the device"));
    GPUTEXT_TRY(cuda_status(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking),
                            "creating a stream"));
    buffers_.resize(buffers);
    for (std::size_t i = 0; i < buffers; ++i) {
        GPUTEXT_TRY(cuda_status(cudaMallocHost(&buffers_[i].data, slice), "pinning memory"));
        GPUTEXT_TRY(
            cuda_status(cudaEventCreateWithFlags(&buffers_[i].copied, cudaEventDisableTiming),
                        "creating an event"));
        free_.push_back(i);
    }
    return {};
}

UploadRing::~UploadRing() {
    if (stream_ != nullptr) cudaStreamSynchronize(stream_);
    for (const Buffer& buffer : buffers_) {
        if (buffer.copied != nullptr) cudaEventDestroy(buffer.copied);
        if (buffer.data != nullptr) cudaFreeHost(buffer.data);
    }
    if (stream_ != nullptr) cudaStreamDestroy(stream_);
}

std::size_t UploadRing::take() {
    std::unique_lock lock(mutex_);
    given_back_.wait(lock, [this] { return !free_.empty(); });
    const std::size_t buffer = free_.front();
    free_.erase(free_.begin());
    return buffer;
}

void UploadRing::give_back(std::size_t buffer) {
    {
        const std::lock_guard lock(mutex_);
        free_.push_back(buffer);
    }
    given_back_.notify_one();
}

Status UploadRing::copy_slice(const Buffer& buffer, std::uint8_t* to,
                              std::span<const std::uint8_t> from) {
    GPUTEXT_TRY(cuda_status(cudaSetDevice(device_), "choosing the device"));
    GPUTEXT_TRY(cuda_status(cudaEventSynchronize(buffer.copied), "copying to the device"));
    std::memcpy(buffer.data, from.data(), from.size());
    GPUTEXT_TRY(
        cuda_status(cudaMemcpyAsync(to, buffer.data, from.size(), cudaMemcpyHostToDevice, stream_),
                    "copying to the device"));
    return cuda_status(cudaEventRecord(buffer.copied, stream_), "copying to the device");
}

Status UploadRing::copy(std::uint8_t* to, std::span<const std::uint8_t> from,
                        Execution& execution) {
    const std::size_t slices = (from.size() + slice - 1) / slice;
    return execution.parallel_for(slices, [&](std::size_t i, unsigned) {
        const std::size_t begin = i * slice;
        const std::size_t buffer = take();
        Status status = copy_slice(buffers_[buffer], to + begin,
                                   from.subspan(begin, std::min(slice, from.size() - begin)));
        give_back(buffer);
        return status;
    });
}

}  // namespace gputext::gpu
