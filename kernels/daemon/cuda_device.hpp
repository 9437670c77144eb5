// kernels/daemon/cuda_device.hpp - one NVIDIA GPU as a device of gputextd

#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <type_traits>
#include <vector>

#include "cpp/base/resident_ranges.hpp"
#include "cpp/base/status.hpp"
#include "cpp/daemon/device.hpp"
#include "kernels/base/device_work.hpp"
#include "kernels/base/resident_copies.hpp"
#include "kernels/base/upload_ring.hpp"

namespace gputext {

/// Device memory that an operator keeps between jobs, as long as nothing else needs it.
struct Cache {
    std::function<std::uint64_t()> bytes;
    std::function<void()> clear;
};

/// What the device needs, such as its stream, is made at the first use, since that makes the CUDA
/// context, which takes memory on the GPU.
///
/// What lies in resident ranges is copied to the device once, and stays there when there are no
/// jobs, too: kernels/base/resident_copies.hpp. Jobs plan with the memory that the copies leave.
class CudaDevice : public Device {
public:
    /// With the kernels of all operators. `number` is CUDA's; `ring_buffers` as in UploadRing.
    /// `limit` of the device's memory that jobs and copies of ranges may take, or 0. Calls nothing
    /// of CUDA.
    CudaDevice(int number, DeviceInfo info, std::size_t ring_buffers,
               const std::shared_ptr<ResidentRanges>& ranges = std::make_shared<ResidentRanges>(),
               std::uint64_t limit = 0);
    ~CudaDevice() override;

    DeviceInfo info() const override { return info_; }
    void prepare() override;
    std::uint64_t free_memory() override;
    std::uint64_t uploaded() const override;
    /// The pinned memory stays: it is little, and slow to get. Copies of ranges stay as long as the
    /// ranges.
    void release_memory() override;

    // For provide_kernels().

    /// Makes prepare() run the job, on next to nothing, for the driver to load what it loads late.
    void warm_up(std::function<Status()> first_job);
    /// The device clears this memory when a job needs it, in release_memory(), and at the end.
    void add_cache(Cache cache);

    /// Calls `work`, which takes a DeviceWork and returns a Status or a Result, on this device, and
    /// returns the same. If the memory does not suffice, clears the caches and calls `work` once
    /// more; copies of ranges are cleared only where they may be what the memory is short of, which
    /// they are not where the job is allowed little. Nothing that `work` began still runs when
    /// run() returns: what it broke is an error of this job. Errors besides those of `work`:
    /// device_error, device_lost.
    template <class Work>
    auto run(std::uint64_t memory, const Work& work);

    /// For use in the `work` of run(), and only there.
    gpu::UploadRing& ring() { return *ring_; }
    const ResidentRanges& ranges() const { return *ranges_; }

private:
    template <class Work>
    auto run_once(std::uint64_t memory, gpu::ResidentCopies::New copies, const Work& work)
        -> std::invoke_result_t<const Work&, const gpu::DeviceWork&>;

    Status open();
    Status begin_job(std::uint64_t memory, gpu::ResidentCopies::New copies);
    Status end_job(const Status& found);
    std::uint64_t cached_bytes() const;
    bool copies_in_the_way(std::uint64_t memory);
    void clear_caches();
    std::uint64_t clear_for_job(std::uint64_t memory);

    static const Status& status_of(const Status& status) { return status; }
    template <class T>
    static const Status& status_of(const Result<T>& result) {
        return result.status();
    }

    int number_;
    DeviceInfo info_;
    std::size_t ring_buffers_;
    std::shared_ptr<ResidentRanges> ranges_;
    cudaStream_t stream_ = nullptr;
    cudaMemPool_t pool_ = nullptr;
    std::uint64_t limit_;
    std::unique_ptr<gpu::UploadRing> ring_;
    std::unique_ptr<gpu::ResidentCopies> copies_;  // in memory of the ring's stream
    std::vector<std::function<Status()>> first_jobs_;
    std::vector<Cache> caches_;
};

template <class Work>
auto CudaDevice::run(std::uint64_t memory, const Work& work) {
    using New = gpu::ResidentCopies::New;
    auto found = run_once(memory, New::made, work);
    if (status_of(found).code() != ErrorCode::out_of_memory) return found;
    const std::uint64_t cleared = clear_for_job(memory);
    return cleared == 0 ? std::move(found) : run_once(memory + cleared, New::refused, work);
}

template <class Work>
auto CudaDevice::run_once(std::uint64_t memory, gpu::ResidentCopies::New copies, const Work& work)
    -> std::invoke_result_t<const Work&, const gpu::DeviceWork&> {
    GPUTEXT_TRY(begin_job(memory, copies));
    auto found = work(gpu::DeviceWork{stream_, memory});
    GPUTEXT_TRY(end_job(status_of(found)));
    return found;
}

/// Provides the device with the functions of all operators: kernels/daemon/operators.cpp.
void provide_kernels(CudaDevice& device);

}  // namespace gputext
