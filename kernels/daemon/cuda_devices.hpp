// kernels/daemon/cuda_devices.hpp - NVIDIA GPUs of this host as devices of gputextd

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cpp/base/resident_ranges.hpp"
#include "cpp/daemon/device.hpp"

namespace gputext {

struct CudaDevices {
    std::vector<std::unique_ptr<Device>> devices;
    std::string why_none;  // a sentence for a user of the database when there are none
};

/// Every GPU that the kernels are built for. Takes the time that the driver takes to start, some
/// hundred milliseconds, but makes no context on any of them: a device does so when it prepares, or
/// at its first job. They keep copies of `ranges`, and take at most `limit` bytes of each device's
/// memory, unless that is 0. To be called once, before other threads look at the environment.
CudaDevices cuda_devices(
    const std::shared_ptr<ResidentRanges>& ranges = std::make_shared<ResidentRanges>(),
    std::uint64_t limit = 0);

}  // namespace gputext
