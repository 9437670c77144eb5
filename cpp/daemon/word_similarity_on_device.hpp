// cpp/daemon/word_similarity_on_device.hpp - word_similarities() of
// cpp/thesaurus/word_similarity.hpp on a device

#pragma once

#include <cstdint>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "cpp/thesaurus/cooccurrences.hpp"
#include "cpp/thesaurus/word_similarity.hpp"

namespace gputext {

/// Counts (cpp/thesaurus/cooccurrences.hpp) and compares in one call, so that a device need not
/// return the counts in between.
struct WordSimilarityOnDevice {
    using Function = Result<Thesaurus>(const SimilarityParameters& parameters,
                                       const WeightParameters& weights,
                                       const CooccurrenceShape& shape, const TokenStream& tokens,
                                       std::uint64_t memory, Execution& execution);
    static Function on_host;
};

/// From counts.
struct CountedSimilarityOnDevice {
    using Function = Result<Thesaurus>(const SimilarityParameters& parameters,
                                       const WeightParameters& weights, const Cooccurrences& counts,
                                       std::uint64_t memory, Execution& execution);
    static Function on_host;
};

}  // namespace gputext
