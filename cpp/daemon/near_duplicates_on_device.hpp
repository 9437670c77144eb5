// cpp/daemon/near_duplicates_on_device.hpp - near_duplicates() of cpp/documents/near_duplicates.hpp
// on a device

#pragma once

#include <cstdint>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "cpp/documents/documents.hpp"
#include "cpp/documents/near_duplicates.hpp"

namespace gputext {

struct NearDuplicatesOnDevice {
    using Function = Result<NearDuplicates>(const NearDuplicateParameters& parameters,
                                            const Documents& documents, GivenSignatures signatures,
                                            std::uint64_t memory, Execution& execution);
    static Function on_host;
};

}  // namespace gputext
