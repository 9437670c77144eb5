// kernels/daemon/kernels_of.hpp - how the kernels of an operator come to a device
//
// The class Kernels<Submit> of an operator's message, in a file of its own, provides the device
// with the functions that the kernels are called by (cpp/daemon/device.hpp):
//
//     template <>
//     class Kernels<SubmitKnn> {
//     public:
//         static void provide(CudaDevice& device) { device.provide<KnnOnDevice>(...); }
//     };
//
//     template void provide_kernels<SubmitKnn>(CudaDevice& device);
//
// Each operator of cpp/link/operators.hpp has such a file. Without kernels, provide() does nothing.

#pragma once

#include "kernels/daemon/cuda_device.hpp"

namespace gputext {

template <class Submit>
class Kernels;

template <class Submit>
void provide_kernels(CudaDevice& device) {
    Kernels<Submit>::provide(device);
}

}  // namespace gputext
