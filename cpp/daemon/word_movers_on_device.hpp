// cpp/daemon/word_movers_on_device.hpp - word_movers_distances() of cpp/embeddings/word_movers.hpp
// on a device

#pragma once

#include <cstdint>
#include <span>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "cpp/embeddings/word_movers.hpp"

namespace gputext {

/// One distance for each of the pairs, which check_text_pairs() has accepted.
struct WordMoversOnDevice {
    using Function = Status(const MoversParameters& parameters, const WordVectors& vectors,
                            const TextPairs& pairs, std::uint64_t memory, Execution& execution,
                            std::span<double> distances);
    static Function on_host;
};

}  // namespace gputext
