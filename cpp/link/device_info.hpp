// cpp/link/device_info.hpp - what users are told of a device

#pragma once

#include <cstdint>
#include <string>

namespace gputext {

struct DeviceInfo {
    std::string name;
    std::uint64_t memory = 0;  // bytes
    std::string driver;

    static void fields(auto& archive, auto& self) { archive(self.name, self.memory, self.driver); }
};

}  // namespace gputext
