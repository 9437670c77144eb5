// kernels/documents/detail/pair_verifier.hpp - exact distances of candidate pairs, one a thread

#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "kernels/documents/detail/letter_product.hpp"
#include "kernels/documents/detail/pair_sink.hpp"
#include "kernels/documents/detail/signature_parts.hpp"

namespace gputext::gpu {

/// Adds those of the candidates, less those with row >= column, whose distance is at most
/// most_edits[sum of lengths], as numbers of strings, to the sink, which grows by no more than
/// `count`. Parts have at most `longest` letters.
/// Looks at the execution between launches; waits for the stream.
Status verify_pairs(const PartsView& parts, const std::uint16_t* most_edits,
                    const Candidate* candidates, std::size_t count, std::size_t longest,
                    Execution& execution, PairSink& sink, cudaStream_t stream);

}  // namespace gputext::gpu
