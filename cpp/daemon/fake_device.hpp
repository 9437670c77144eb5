// cpp/daemon/fake_device.hpp - device that computes on the CPU, for tests of everything around the
// kernels

#pragma once

#include <cstdint>
#include <string>

#include "cpp/daemon/device.hpp"

namespace gputext {

/// Has no functions of its own, so that all operators run on the host's threads, within the memory
/// that they are given.
class FakeDevice : public Device {
public:
    explicit FakeDevice(unsigned number) : number_(number) {}

    DeviceInfo info() const override {
        return {"fake device " + std::to_string(number_), kMemory, "none"};
    }
    std::uint64_t free_memory() override { return kMemory; }

private:
    static constexpr std::uint64_t kMemory = std::uint64_t{1} << 30;

    unsigned number_;
};

}  // namespace gputext
