#include <algorithm>
#include <cstring>
#include <utility>

#include "cpp/base/exception_status.hpp"
#include "kernels/base/device_pieces.hpp"
#include "kernels/base/launch.hpp"
#include "kernels/base/resident_copies.hpp"
#include "kernels/base/upload_ring.hpp"

namespace gputext::gpu {
namespace {

// Pieces of fewer bytes are copied together, by a kernel that reads a list of them: a copy of its
// own takes the device as long to begin as a warp takes for so many bytes.
constexpr std::uint64_t kLeastOwnCopy = std::uint64_t{1} << 18;
constexpr std::uint64_t kLeastOwnOfMany = std::uint64_t{1} << 26;
constexpr std::uint64_t kPartBytes = std::uint64_t{1} << 14;  // of a piece, for one warp
constexpr std::size_t kPartsAtOnce = std::size_t{1} << 14;

std::uint64_t size_of(std::span<const Bytes> pieces) {
    std::uint64_t sum = 0;
    for (const Bytes piece : pieces) sum += piece.size();
    return sum;
}

/// From the first byte of all pieces to the last.
Bytes hull_of(std::span<const Bytes> pieces) {
    const std::uint8_t* begin = nullptr;
    const std::uint8_t* end = nullptr;
    for (const Bytes piece : pieces) {
        if (piece.empty()) continue;
        if (begin == nullptr || piece.data() < begin) begin = piece.data();
        if (end == nullptr || piece.data() + piece.size() > end) end = piece.data() + piece.size();
    }
    return {begin, end};
}

/// An execution for a part of an operation. Its steps do not count as progress of the whole.
Execution without_steps(const Execution& execution) {
    return {execution.threads(), execution};
}

}  // namespace

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

/// Copies `size` bytes of the pieces, from byte `skipped` of the first one on.
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
    if (copies_ == nullptr || !copies_->any()) return upload(to, pieces, execution);
    // Where memory for the lists of pieces is short, too, no copy may be under way.
    const Status status = status_or_exception([&] { return copy_resident(to, pieces, execution); });
    if (!status.ok()) cudaStreamSynchronize(stream_);
    return status;
}

Result<UploadRing::Resident> UploadRing::resident(Bytes bytes, std::uint64_t most,
                                                  Execution& execution) {
    Resident found;
    if (copies_ == nullptr || bytes.empty()) return found;
    const auto range = copies_->range_of(bytes);
    if (!range || (range->size > most && !copies_->has(range->id))) return found;
    const std::uint64_t before = copies_->bytes();
    const Status status = status_or_exception([&]() -> Status {
        const auto there = find(bytes, bytes.size(), execution);
        if (!there.ok()) return there.status();
        found.data = *there;
        return {};
    });
    if (!status.ok()) {
        cudaStreamSynchronize(stream_);
        return status;
    }
    found.range = range->id;
    found.begin = static_cast<std::uint64_t>(bytes.data() - range->begin);
    const std::uint64_t after = copies_->bytes();
    found.copied = after > before ? after - before : 0;
    return found;
}

/// Each piece from where it lies: on the device, or in the host's memory.
Status UploadRing::copy_resident(std::uint8_t* to, std::span<const Bytes> pieces,
                                 Execution& execution) {
    std::vector<DevicePiece> found;
    const Bytes hull = hull_of(pieces);
    if (pieces.size() == 1 || !copies_->in_one_range(hull)) {
        GPUTEXT_TRY(find_pieces(to, pieces, execution, found));
    } else {
        const auto there = find(hull, size_of(pieces), execution);
        if (!there.ok()) return there.status();
        if (*there == nullptr) return upload(to, pieces, execution);
        for (const Bytes piece : pieces) {
            if (!piece.empty())
                found.push_back({to, *there + (piece.data() - hull.data()), piece.size()});
            to += piece.size();
        }
    }
    GPUTEXT_TRY(copy_on_device(found, kLeastOwnCopy, execution));
    std::uint64_t bytes = 0;
    for (const DevicePiece& piece : found) bytes += piece.size;
    return execution.checkpoint((bytes + slice - 1) / slice);
}

/// Asks for the pieces one by one, and uploads those that are not on the device.
Status UploadRing::find_pieces(std::uint8_t* to, std::span<const Bytes> pieces,
                               Execution& execution, std::vector<DevicePiece>& found) {
    std::size_t first = 0;  // of the pieces that are not on the device, and where it goes
    std::uint8_t* first_to = to;
    for (std::size_t i = 0; i < pieces.size(); to += pieces[i++].size()) {
        const auto there = find(pieces[i], pieces[i].size(), execution);
        if (!there.ok()) return there.status();
        if (*there == nullptr) continue;
        GPUTEXT_TRY(upload(first_to, pieces.subspan(first, i - first), execution));
        found.push_back({to, *there, pieces[i].size()});
        first = i + 1;
        first_to = to + pieces[i].size();
    }
    return upload(first_to, pieces.subspan(first), execution);
}

/// Fills copies of resident memory by way of the ring.
class UploadRing::CopyFiller final : public ResidentCopies::Filler {
public:
    CopyFiller(UploadRing& ring, const Execution& execution) : ring_(ring), execution_(execution) {}

    Status upload(std::uint8_t* to, Bytes from) override {
        Execution filling = without_steps(execution_);
        return ring_.upload(to, {&from, 1}, filling);
    }
    Status copy(std::span<const DevicePiece> pieces) override {
        return ring_.copy_on_device(pieces, kLeastOwnOfMany, execution_);
    }
    Stop stop() const override { return execution_.stop(); }

private:
    UploadRing& ring_;
    const Execution& execution_;
};

Result<const std::uint8_t*> UploadRing::find(Bytes bytes, std::uint64_t asked,
                                             const Execution& execution) {
    CopyFiller filler(*this, execution);
    return copies_->find(bytes, asked, stream_, filler);
}

Status UploadRing::copy_on_device(std::span<const DevicePiece> pieces, std::uint64_t least_own_copy,
                                  const Execution& execution) {
    std::vector<DevicePiece> parts;
    for (const DevicePiece& piece : pieces) {
        if (piece.size >= least_own_copy) {
            GPUTEXT_TRY(cuda_status(cudaMemcpyAsync(piece.to, piece.from, piece.size,
                                                    cudaMemcpyDeviceToDevice, stream_),
                                    "copying within the device"));
            continue;
        }
        for (std::uint64_t begin = 0; begin < piece.size; begin += kPartBytes)
            parts.push_back(
                {piece.to + begin, piece.from + begin, std::min(kPartBytes, piece.size - begin)});
    }
    return copy_small(parts, execution);
}

/// Copies the parts by a kernel that reads a list of them.
Status UploadRing::copy_small(std::span<const DevicePiece> parts, const Execution& execution) {
    DeviceBuffer<DevicePiece> list;
    if (!parts.empty()) GPUTEXT_TRY(list.allocate(std::min(parts.size(), kPartsAtOnce), stream_));
    for (std::size_t begin = 0; begin < parts.size(); begin += kPartsAtOnce) {
        const auto some = parts.subspan(begin, std::min(kPartsAtOnce, parts.size() - begin));
        const Bytes bytes{reinterpret_cast<const std::uint8_t*>(some.data()), some.size_bytes()};
        Execution listing = without_steps(execution);
        GPUTEXT_TRY(upload(reinterpret_cast<std::uint8_t*>(list.data()), {&bytes, 1}, listing));
        GPUTEXT_TRY(copy_listed_pieces(list.data(), some.size(), stream_));
    }
    return {};
}

Status UploadRing::upload(std::uint8_t* to, std::span<const Bytes> pieces, Execution& execution) {
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
    if (!status.ok())
        cudaStreamSynchronize(stream_);
    else
        uploaded_ += all;
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
