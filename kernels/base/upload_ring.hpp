// kernels/base/upload_ring.hpp - copies between pageable memory and the device at the speed of the
// link
//
// The driver's own copies from pageable memory reach half of what pinned memory does, and pinning a
// caller's memory takes longer than copying it. Here threads copy slices into a few pinned
// buffers, from where the device takes them. What the device has a copy of already
// (kernels/base/resident_copies.hpp) does not come from the host again.

#pragma once

#include <cuda_runtime_api.h>

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "cpp/base/characters.hpp"
#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"

namespace gputext::gpu {

struct DevicePiece;
class ResidentCopies;

/// Pinned buffers and a stream for copies to the current device, kept between jobs. One job
/// uses it at a time.
class UploadRing {
public:
    static constexpr std::size_t slice = std::size_t{1} << 22;  // bytes of one buffer

    /// Three buffers for every two threads that copy keep all threads busy.
    static Result<std::unique_ptr<UploadRing>> create(std::size_t buffers);
    ~UploadRing();
    UploadRing(const UploadRing&) = delete;
    UploadRing& operator=(const UploadRing&) = delete;

    /// From now on bytes of resident memory that have a copy among these are copied from there,
    /// within the device. `copies` lives longer than the ring, or until the next call; null for
    /// none.
    void use(ResidentCopies* copies) { copies_ = copies; }

    /// Copies with the threads of `execution`, whose steps are slices; begins no phase. When it
    /// returns, the last copies are still under way on stream(), from the ring's memory or the
    /// device's, not from the caller's. Before the destination is freed, its stream must wait for
    /// stream(). After an error no copy is under way. Errors: cancelled, device_error.
    Status copy(std::uint8_t* to, std::span<const std::uint8_t> from, Execution& execution);
    /// Bytes that lie on the device already.
    struct Resident {
        const std::uint8_t* data = nullptr;  // null where they do not
        std::uint64_t range = 0;             // the id of the resident memory that they are of
        std::uint64_t begin = 0;             // byte of it
        std::uint64_t copied = 0;            // bytes of the device's memory that were taken now
    };
    /// Where the device has the bytes. Valid until the job ends, for work that is ordered behind
    /// stream(). Makes a copy where one is due and takes at most `most` bytes. Errors as copy().
    Result<Resident> resident(std::span<const std::uint8_t> bytes, std::uint64_t most,
                              Execution& execution);
    /// Copies pieces one behind the other.
    Status copy_pieces(std::uint8_t* to, std::span<const Bytes> pieces, Execution& execution);
    /// Copies from the device to the host through the same buffers, after the work that is on
    /// `stream`. Returns when all bytes have arrived.
    Status copy_back(std::span<std::uint8_t> to, const std::uint8_t* from, cudaStream_t stream,
                     Execution& execution);

    cudaStream_t stream() const { return stream_; }
    /// Bytes that copy() and copy_pieces() have had from the host, in all.
    std::uint64_t uploaded() const { return uploaded_; }

private:
    struct Buffer {
        void* data = nullptr;
        cudaEvent_t copied = nullptr;
    };

    class CopyFiller;

    UploadRing() = default;
    Status allocate(std::size_t buffers);
    Status upload(std::uint8_t* to, std::span<const Bytes> pieces, Execution& execution);
    Status copy_resident(std::uint8_t* to, std::span<const Bytes> pieces, Execution& execution);
    Status find_pieces(std::uint8_t* to, std::span<const Bytes> pieces, Execution& execution,
                       std::vector<DevicePiece>& found);
    Result<const std::uint8_t*> find(Bytes bytes, std::uint64_t asked, const Execution& execution);
    Status copy_on_device(std::span<const DevicePiece> pieces, std::uint64_t least_own_copy,
                          const Execution& execution);
    Status copy_small(std::span<const DevicePiece> parts, const Execution& execution);
    Status copy_slice(const Buffer& buffer, std::uint8_t* to, std::span<const Bytes> pieces,
                      std::size_t skipped, std::size_t size);
    Status copy_slice_back(const Buffer& buffer, std::span<std::uint8_t> to,
                           const std::uint8_t* from, cudaStream_t stream);
    std::size_t take();
    void give_back(std::size_t buffer);

    int device_ = 0;
    cudaStream_t stream_ = nullptr;
    ResidentCopies* copies_ = nullptr;
    std::uint64_t uploaded_ = 0;
    std::vector<Buffer> buffers_;
    std::mutex mutex_;
    std::condition_variable given_back_;
    std::vector<std::size_t> free_;  // the longest unused first
};

}  // namespace gputext::gpu
