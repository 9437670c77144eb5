// cpp/embeddings/detail/training_entries.hpp - words that an epoch trains on

#pragma once

#include <cstdint>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "cpp/embeddings/trainer.hpp"

namespace gputext {

/// The tokens of a replica, from `first` to `end` - 1.
struct ReplicaRange {
    std::size_t first = 0, end = 0;
};
ReplicaRange replica_range(const TrainerParameters& parameters, std::size_t tokens,
                           std::uint32_t replica);

/// The entries of cpp/embeddings/trainer.hpp of an epoch of a replica, breaks included. O(tokens)
/// on the execution's threads. Errors: cancelled, out_of_memory.
Status training_entries(const TrainerParameters& parameters, const WordSampling& sampling,
                        const TokenStream& tokens, std::uint32_t replica, std::uint32_t epoch,
                        Execution& execution, std::vector<std::uint32_t>& entries);

}  // namespace gputext
