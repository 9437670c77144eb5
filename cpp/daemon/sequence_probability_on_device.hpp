// cpp/daemon/sequence_probability_on_device.hpp - sequence_probabilities() of
// cpp/embeddings/sequence_probability.hpp on a device

#pragma once

#include <cstdint>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "cpp/embeddings/sequence_probability.hpp"

namespace gputext {

/// For sequences that check_sequences() has accepted.
struct SequenceProbabilityOnDevice {
    using Function = Result<SequenceProbabilities>(const NextWordModel& model,
                                                   const TokenSequences& sequences,
                                                   std::uint64_t memory, Execution& execution);
    static Function on_host;
};

}  // namespace gputext
