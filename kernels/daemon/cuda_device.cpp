#include "kernels/daemon/cuda_device.hpp"

#include <algorithm>
#include <utility>

#include "kernels/base/cuda_status.hpp"
#include "kernels/base/device_buffer.hpp"

namespace gputext {
namespace {

/// Divisor of the free memory: allocations are rounded up, and the driver takes a little now and
/// then.
constexpr std::uint64_t kFreePartReserved = 32;

/// Divisor of the free memory: a job that was given all of it finds so much more or less later.
constexpr std::uint64_t kFreePartUnsure = 16;

}  // namespace

CudaDevice::CudaDevice(int number, DeviceInfo info, std::size_t ring_buffers,
                       const std::shared_ptr<ResidentRanges>& ranges, std::uint64_t limit)
    : number_(number),
      info_(std::move(info)),
      ring_buffers_(ring_buffers),
      ranges_(ranges),
      limit_(limit),
      copies_(std::make_unique<gpu::ResidentCopies>(ranges, static_cast<std::uint32_t>(number),
                                                    limit)) {
    provide_kernels(*this);
}

CudaDevice::~CudaDevice() {
    if (stream_ == nullptr) return;
    cudaSetDevice(number_);
    clear_caches();
    copies_->clear();
    ring_.reset();
    cudaStreamDestroy(stream_);
}

void CudaDevice::prepare() {
    // What fails here fails again at the first job, which says so.
    for (const auto& first_job : first_jobs_)
        if (!first_job().ok()) return;
}

std::uint64_t CudaDevice::free_memory() {
    std::size_t available = 0;
    std::size_t total = 0;
    std::uint64_t reserved = 0;
    std::uint64_t used = 0;
    if (!open().ok() || cudaMemGetInfo(&available, &total) != cudaSuccess ||
        cudaMemPoolGetAttribute(pool_, cudaMemPoolAttrReservedMemCurrent, &reserved) !=
            cudaSuccess ||
        cudaMemPoolGetAttribute(pool_, cudaMemPoolAttrUsedMemCurrent, &used) != cudaSuccess)
        return 0;
    const std::uint64_t free = available + (reserved - used);
    const std::uint64_t usable = free - free / kFreePartReserved;
    if (limit_ == 0) return usable;
    return std::min(usable, limit_ - std::min(limit_, copies_->bytes()));
}

std::uint64_t CudaDevice::uploaded() const {
    return (ring_ == nullptr ? 0 : ring_->uploaded()) + uploaded_to_buffers();
}

void CudaDevice::release_memory() {
    if (stream_ == nullptr) return;
    clear_caches();
    copies_->drop_gone();
    cudaStreamSynchronize(stream_);
    if (ring_ != nullptr) cudaStreamSynchronize(ring_->stream());
    cudaMemPoolTrimTo(pool_, 0);
}

void CudaDevice::warm_up(std::function<Status()> first_job) {
    first_jobs_.push_back(std::move(first_job));
}

void CudaDevice::add_cache(Cache cache) {
    caches_.push_back(std::move(cache));
}

std::uint64_t CudaDevice::cached_bytes() const {
    std::uint64_t bytes = 0;
    for (const Cache& cache : caches_) bytes += cache.bytes();
    return bytes;
}

void CudaDevice::clear_caches() {
    for (const Cache& cache : caches_) cache.clear();
}

/// Whether a job that may take so much memory could have had it but for the copies.
bool CudaDevice::copies_in_the_way(std::uint64_t memory) {
    const std::uint64_t free = free_memory();
    return copies_->bytes() > 0 && memory >= free - free / kFreePartUnsure;
}

/// How many bytes the job can have more now.
std::uint64_t CudaDevice::clear_for_job(std::uint64_t memory) {
    const bool with_copies = copies_in_the_way(memory);
    std::uint64_t cleared = cached_bytes();
    clear_caches();
    if (!with_copies) return cleared;
    cleared += copies_->bytes();
    copies_->clear();
    return cleared;
}

Status CudaDevice::begin_job(std::uint64_t memory, gpu::ResidentCopies::New copies) {
    GPUTEXT_TRY(open());
    cudaGetLastError();  // an earlier failure is not this job's
    return copies_->begin_job(memory, copies);
}

/// Waits for what the job has begun. What it found counts, unless the device is lost.
Status CudaDevice::end_job(const Status& found) {
    const Status computed = cuda_status(cudaStreamSynchronize(stream_), "ending a job");
    const Status copied = cuda_status(cudaStreamSynchronize(ring_->stream()), "ending a job");
    const Status& finished = computed.ok() ? copied : computed;
    return finished.code() == ErrorCode::device_lost || found.ok() ? finished : found;
}

Status CudaDevice::open() {
    if (ring_ != nullptr) return {};
    GPUTEXT_TRY(cuda_status(cudaSetDevice(number_), "starting the device"));
    if (stream_ == nullptr)
        GPUTEXT_TRY(cuda_status(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking),
                                "creating a stream"));
    GPUTEXT_TRY(cuda_status(cudaDeviceGetDefaultMemPool(&pool_, number_), "starting the device"));
    std::uint64_t all = UINT64_MAX;
    GPUTEXT_TRY(cuda_status(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &all),
                            "starting the device"));
    auto ring = gpu::UploadRing::create(ring_buffers_);
    if (!ring.ok()) return ring.status();
    ring_ = std::move(*ring);
    ring_->use(copies_.get());
    return {};
}

}  // namespace gputext
