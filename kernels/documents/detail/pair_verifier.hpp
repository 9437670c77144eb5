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
/// `count`. Parts have at most `longest` letters. `checksum` gets the sum over all candidates of
/// distance_mark, or is null. Looks at the execution between launches; waits for the stream.
Status verify_pairs(const PartsView& parts, const std::uint16_t* most_edits,
                    const Candidate* candidates, std::size_t count, std::size_t longest,
                    Execution& execution, PairSink& sink, unsigned long long* checksum,
                    cudaStream_t stream);

/// What a distance adds to a checksum, modulo 2^64.
__host__ __device__ constexpr std::uint64_t distance_mark(std::uint32_t a, std::uint32_t b,
                                                          std::uint32_t distance) {
    return std::uint64_t{(a ^ b) | 1} * distance;
}

}  // namespace gputext::gpu
