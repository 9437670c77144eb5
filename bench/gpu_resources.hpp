// bench/gpu_resources.hpp - device, stream and buffers of a GPU benchmark

#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <thread>

#include "bench/gpu_bench.hpp"
#include "cpp/base/execution.hpp"
#include "kernels/base/cuda_status.hpp"
#include "kernels/base/upload_ring.hpp"

namespace gputext::bench {

inline Execution& every_core() {
    static Execution execution(std::max(1u, std::thread::hardware_concurrency()));
    return execution;
}

inline cudaStream_t stream() {
    static cudaStream_t made = [] {
        cudaStream_t created = nullptr;
        check(cuda_status(cudaStreamCreate(&created), "the benchmark"));
        // Memory that is freed stays with the process, as it would in a server.
        cudaMemPool_t pool;
        std::uint64_t keep = UINT64_MAX;
        check(cuda_status(cudaDeviceGetDefaultMemPool(&pool, 0), "the benchmark"));
        check(cuda_status(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep),
                          "the benchmark"));
        return created;
    }();
    return made;
}

inline gpu::UploadRing& ring() {
    static auto made = [] {
        auto ring = gpu::UploadRing::create(24);
        check(ring.status());
        return std::move(*ring);
    }();
    return *made;
}

inline void wait() {
    check(cuda_status(cudaStreamSynchronize(stream()), "the benchmark"));
}

}  // namespace gputext::bench
