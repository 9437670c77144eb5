// kernels/embeddings/trainer.hpp - cpp/embeddings/trainer.hpp on a device
//
// Gives the CPU's bits. Entries of an epoch are made on the device, and steps run many in a launch
// (kernels/embeddings/detail/training_steps.hpp), each launch of some 10 ms, between which the stop
// request is looked at.
//
// Memory: two rows and their sums for each word, 4 bytes an element each, of dimensions rounded up
// to what a warp reads at once; 4 bytes a token of a replica, and 4 a token of all where memory
// suffices, else they are copied anew for each epoch; some numbers for each word.

#pragma once

#include <cstdint>
#include <memory>

#include "cpp/base/execution.hpp"
#include "cpp/embeddings/trainer.hpp"
#include "kernels/base/device_work.hpp"
#include "kernels/base/upload_ring.hpp"

namespace gputext::gpu {

/// For those who measure.
struct WordTrainerTimes {
    double entries_ms = 0, steps_ms = 0;  // of the device
    std::uint64_t entries = 0, steps = 0, launches = 0;
};

/// Bytes of device memory for tokens of so many texts, without farthest words: the fewest, and with
/// which tokens are copied once.
struct WordTrainerBytes {
    std::uint64_t least, good;
};
WordTrainerBytes word_trainer_bytes(const TrainerParameters& parameters, std::uint64_t words,
                                    std::uint64_t tokens, std::uint64_t texts);

/// As gputext::cpu_word_trainer, on the current device, in `work.bytes` of its memory. The trainer
/// uses the stream and the ring as long as it lives; `times`, where given, gets what it does.
/// Errors: invalid_argument for a word that is not in the vocabulary, or for 2^31 words or more;
/// cancelled; out_of_memory, which says how much is needed; device_error, device_lost.
Result<std::unique_ptr<WordTrainer>> word_trainer(const TrainerParameters& parameters,
                                                  const WordSampling& sampling,
                                                  const TokenStream& tokens, const DeviceWork& work,
                                                  UploadRing& ring, Execution& execution,
                                                  WordTrainerTimes* times = nullptr);

}  // namespace gputext::gpu
