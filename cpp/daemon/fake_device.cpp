#include "cpp/daemon/fake_device.hpp"

#include <algorithm>
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

Status FakeDevice::near_duplicates(const NearDuplicateParameters& parameters,
                                   const Documents& documents, GivenSignatures signatures,
                                   std::uint64_t memory, Execution& execution,
                                   NearDuplicates& answer) {
    NearDuplicateParameters within = parameters;
    within.memory_limit = std::min<std::uint64_t>(parameters.memory_limit, memory);
    Result<NearDuplicates> found =
        gputext::near_duplicates(within, documents, signatures, execution);
    if (!found.ok()) return found.status();
    answer = std::move(*found);
    return {};
}

}  // namespace gputext
