#include <algorithm>
#include <cstring>
#include <utility>

#include "kernels/base/launch.hpp"
#include "kernels/base/upload_ring.hpp"

namespace gputext::gpu {

Result<std::unique_ptr<UploadRing>> UploadRing::create(std::size_t buffers) {
    std::unique_ptr<UploadRing> ring(new UploadRing);
    GPUTEXT_TRY(ring->allocate(std::max<std::size_t>(buffers, 2)));
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

/// `size` bytes of the pieces, less the first one's first `skipped`.
Status UploadRing::copy_slice(const Buffer& buffer, std::uint8_t* to, std::span<const Bytes> pieces,
                              std::size_t skipped, std::size_t size) {
    GPUTEXT_TRY(cuda_status(cudaSetDevice(device_), "choosing the device"));
    GPUTEXT_TRY(cuda_status(cudaEventSynchronize(buffer.copied), "copying to the device"));
    for (std::size_t done = 0, i = 0; done < size; ++i) {
        const Bytes piece = pieces[i].subspan(i == 0 ? skipped : 0);
        const std::size_t part = std::min(size - done, piece.size());
        if (part > 0)
            std::memcpy(static_cast<std::uint8_t*>(buffer.data) + done, piece.data(), part);
        done += part;
    }
    GPUTEXT_TRY(cuda_status(cudaMemcpyAsync(to, buffer.data, size, cudaMemcpyHostToDevice, stream_),
                            "copying to the device"));
    return cuda_status(cudaEventRecord(buffer.copied, stream_), "copying to the device");
}

Status UploadRing::copy(std::uint8_t* to, std::span<const std::uint8_t> from,
                        Execution& execution) {
    return copy_pieces(to, {&from, 1}, execution);
}

Status UploadRing::copy_pieces(std::uint8_t* to, std::span<const Bytes> pieces,
                               Execution& execution) {
    std::vector<std::uint64_t> ends(pieces.size());
    std::uint64_t all = 0;
    for (std::size_t i = 0; i < pieces.size(); ++i) ends[i] = all += pieces[i].size();
    const auto copy_one = [&](std::size_t i, unsigned) {
        const std::uint64_t begin = i * slice;
        const std::size_t first =
            static_cast<std::size_t>(std::ranges::upper_bound(ends, begin) - ends.begin());
        const std::size_t buffer = take();
        Status status = copy_slice(buffers_[buffer], to + begin, pieces.subspan(first),
                                   begin - (first == 0 ? 0 : ends[first - 1]),
                                   std::min<std::uint64_t>(slice, all - begin));
        give_back(buffer);
        return status;
    };
    const Status status = execution.parallel_for((all + slice - 1) / slice, copy_one);
    // Else the caller would free memory under the copies that have begun.
    if (!status.ok()) cudaStreamSynchronize(stream_);
    return status;
}

Status UploadRing::copy_slice_back(const Buffer& buffer, std::span<std::uint8_t> to,
                                   const std::uint8_t* from, cudaStream_t stream) {
    GPUTEXT_TRY(cuda_status(cudaSetDevice(device_), "choosing the device"));
    GPUTEXT_TRY(cuda_status(cudaEventSynchronize(buffer.copied), "copying to the device"));
    GPUTEXT_TRY(
        cuda_status(cudaMemcpyAsync(buffer.data, from, to.size(), cudaMemcpyDeviceToHost, stream),
                    "copying from the device"));
    GPUTEXT_TRY(cuda_status(cudaEventRecord(buffer.copied, stream), "copying from the device"));
    GPUTEXT_TRY(cuda_status(cudaEventSynchronize(buffer.copied), "copying from the device"));
    std::memcpy(to.data(), buffer.data, to.size());
    return {};
}

Status UploadRing::copy_back(std::span<std::uint8_t> to, const std::uint8_t* from,
                             cudaStream_t stream, Execution& execution) {
    return execution.parallel_for((to.size() + slice - 1) / slice, [&](std::size_t i, unsigned) {
        const std::size_t begin = i * slice;
        const std::size_t buffer = take();
        Status status = copy_slice_back(
            buffers_[buffer], to.subspan(begin, std::min<std::size_t>(slice, to.size() - begin)),
            from + begin, stream);
        give_back(buffer);
        return status;
    });
}

}  // namespace gputext::gpu
