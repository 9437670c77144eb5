// cpp/daemon/word2vec_on_device.hpp - the trainer of cpp/embeddings/trainer.hpp on a device

#pragma once

#include <cstdint>
#include <memory>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "cpp/embeddings/trainer.hpp"

namespace gputext {

/// The trainer takes at most `memory` bytes of the device's. All of its functions are called by the
/// device's thread, which destroys it before the device. `tokens` and `sampling` live as long as
/// the trainer.
struct Word2VecOnDevice {
    using Function = Result<std::unique_ptr<WordTrainer>>(const TrainerParameters& parameters,
                                                          const WordSampling& sampling,
                                                          const TokenStream& tokens,
                                                          std::uint64_t memory,
                                                          Execution& execution);
    static Function on_host;
};

}  // namespace gputext
