// tests/emulator/warps.hpp - runs kernels on the processor: a warp after the other, and its lanes
// in turn

#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>

/// CUDA's variables, of the lane that runs.
extern uint3 threadIdx, blockIdx;
extern dim3 gridDim;

namespace gputext::emulator {

inline constexpr unsigned kLanes = 32;
inline constexpr std::size_t kMostBytes = 32;

/// Hands a value of at most kMostBytes to the lanes of the warp, waits until each of them has done
/// so, and returns their values, one behind the other, until the lane's next call. Ends the program
/// if they are not all at the same instruction.
const void* meet(const char* instruction, const void* value, std::size_t bytes);

template <class T>
const T* values_of_warp(const char* instruction, const T& value) {
    static_assert(sizeof(T) <= kMostBytes);
    return static_cast<const T*>(meet(instruction, &value, sizeof(T)));
}

/// Calls the kernel for each thread of the blocks. A lane runs until it meets the others of its
/// warp, and then the next one does, in the order of lanes and in the opposite order by turns, so
/// that few kernels that lack a __syncwarp() compute the same as with it. Warps do not run beside
/// each other: there is no __syncthreads(), and a block's shared memory is a static variable.
void run(dim3 blocks, unsigned threads, const std::function<void()>& kernel);

/// What kernel<<<blocks, threads, shared_bytes, stream>>> is, to be called with the arguments.
template <class... Parameters>
auto launch(void (*kernel)(Parameters...), dim3 blocks, unsigned threads, std::size_t,
            cudaStream_t) {
    return [=](Parameters... arguments) { run(blocks, threads, [&] { kernel(arguments...); }); };
}

}  // namespace gputext::emulator
