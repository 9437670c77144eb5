// cpp/daemon/fake_device.hpp - device that computes on the CPU, for tests of everything around the
// kernels

#pragma once

#include "cpp/daemon/device.hpp"

namespace gputext {

/// Has no functions of its own, so that all operators run on the host's threads, within the memory
/// that they are given.
class FakeDevice : public Device {
public:
    explicit FakeDevice(unsigned number) : number_(number) {}

    DeviceInfo info() const override;
    std::uint64_t free_memory() override;

private:
    unsigned number_;
};

}  // namespace gputext
