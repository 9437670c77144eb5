// cpp/daemon/fake_device.hpp - device that computes on the CPU, for tests of everything around the
// kernels

#pragma once

#include "cpp/daemon/device.hpp"

namespace gputext {

/// Runs the implementations of cpp/ on the host's threads, within the memory that it is given.
class FakeDevice : public Device {
public:
    explicit FakeDevice(unsigned number) : number_(number) {}

    DeviceInfo info() const override;
    std::uint64_t free_memory() override;
    Status near_duplicates(const NearDuplicateParameters& parameters, const Documents& documents,
                           GivenSignatures signatures, std::uint64_t memory, Execution& execution,
                           NearDuplicates& answer) override;

private:
    unsigned number_;
};

}  // namespace gputext
