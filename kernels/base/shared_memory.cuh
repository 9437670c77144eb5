// kernels/base/shared_memory.cuh - addresses in shared memory, and copies to it that threads do not
// wait for
//
// Before compute capability 8.0 a copy is done when the function that begins it returns.

#pragma once

#include <cstdint>

namespace gputext::gpu {

/// The address within shared memory, for instructions that take no generic one.
__device__ inline std::uint32_t shared_address(const void* at) {
    return static_cast<std::uint32_t>(__cvta_generic_to_shared(at));
}

/// Begins to copy 16 bytes to shared memory, or zeros unless `valid`.
__device__ inline void copy_vector(void* to, const void* from, bool valid) {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared_address(to)),
                 "l"(from), "r"(valid ? 16 : 0));
#else
    *static_cast<uint4*>(to) = valid ? *static_cast<const uint4*>(from) : uint4{0, 0, 0, 0};
#endif
}
/// The same of what other warps of the multiprocessor copy, too: by way of the cache that they have.
__device__ inline void copy_shared_vector(void* to, const void* from) {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"(shared_address(to)), "l"(from));
#else
    *static_cast<uint4*>(to) = *static_cast<const uint4*>(from);
#endif
}
__device__ inline void end_of_copies() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;");
#endif
}
/// Until all but the last `Ahead` groups of copies are there.
template <int Ahead>
__device__ inline void wait_for_copies() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(Ahead));
#endif
}

}  // namespace gputext::gpu
