#include "cpp/daemon/fake_device.hpp"

#include <string>

namespace gputext {
namespace {

constexpr std::uint64_t kMemory = std::uint64_t{1} << 30;

}  // namespace

DeviceInfo FakeDevice::info() const {
    return {"fake device " + std::to_string(number_), kMemory, "none"};
}

std::uint64_t FakeDevice::free_memory() {
    return kMemory;
}

}  // namespace gputext
