#include "kernels/daemon/cuda_device.hpp"

#include <utility>

#include "cpp/link/operators.hpp"
#include "kernels/base/cuda_status.hpp"

namespace gputext {
namespace {

/// Divisor of the free memory: allocations are rounded up, and the driver takes a little now and
/// then.
constexpr std::uint64_t kFreePartKept = 32;

template <class... Messages>
void provide_each(TypeList<Messages...>, CudaDevice& device) {
    (provide_kernels<Messages>(device), ...);
}

}  // namespace

CudaDevice::CudaDevice(int number, DeviceInfo info, std::size_t ring_buffers)
    : number_(number), info_(std::move(info)), ring_buffers_(ring_buffers) {
    provide_each(Submits(), *this);
}

CudaDevice::~CudaDevice() {
    if (stream_ == nullptr) return;
    cudaSetDevice(number_);
    clear_kept();
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
    return free - free / kFreePartKept;
}

void CudaDevice::release_memory() {
    if (stream_ == nullptr) return;
    clear_kept();
    cudaStreamSynchronize(stream_);
    cudaMemPoolTrimTo(pool_, 0);
}

void CudaDevice::warm_up(std::function<Status()> first_job) {
    first_jobs_.push_back(std::move(first_job));
}

void CudaDevice::keep(KeptMemory memory) {
    kept_.push_back(std::move(memory));
}

std::uint64_t CudaDevice::kept_bytes() const {
    std::uint64_t bytes = 0;
    for (const KeptMemory& memory : kept_) bytes += memory.bytes();
    return bytes;
}

void CudaDevice::clear_kept() {
    for (const KeptMemory& memory : kept_) memory.clear();
}

Status CudaDevice::begin_job() {
    GPUTEXT_TRY(open());
    cudaGetLastError();  // an earlier failure is not this job's
    return {};
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
    return {};
}

}  // namespace gputext
