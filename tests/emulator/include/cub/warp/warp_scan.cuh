// tests/emulator/include/cub/warp/warp_scan.cuh - of CUB what kernels/base/warp.cuh calls

#pragma once

namespace cub {

template <class Number>
struct WarpScan {
    struct TempStorage {};
    explicit WarpScan(TempStorage&) {}

    void InclusiveSum(Number value, Number& sum) {
        const Number* const all = gputext::emulator::values_of_warp("scan", value);
        sum = 0;
        for (unsigned lane = 0; lane <= threadIdx.x % gputext::emulator::kLanes; ++lane)
            sum += all[lane];
    }
};

}  // namespace cub
