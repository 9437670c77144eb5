// kernels/embeddings/sequence_probability.hpp - cpp/embeddings/sequence_probability.hpp on a device
//
// Gives the CPU's bits. Dots of a group of contexts with all words are a product of two matrices
// whose sums are taken in the lanes' order; then each context's powers are summed; at last each
// token is looked up, for which its dot is computed once more.

#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cpp/embeddings/sequence_probability.hpp"
#include "kernels/base/device_buffer.hpp"
#include "kernels/base/device_work.hpp"
#include "kernels/base/upload_ring.hpp"

namespace gputext::gpu {

/// Dimensions beyond which the shared memory of some devices does not hold a tile.
inline constexpr std::size_t kMostNextWordDimensions = 992;

/// A model on the device, and what divides the powers of a context.
class ResidentNextWords {
public:
    /// Device memory of a model, beside that of a group of contexts.
    static std::uint64_t bytes(std::size_t words, std::size_t dimensions);
    /// Bytes for each context of a group.
    static std::uint64_t group_bytes(std::size_t words) { return words * sizeof(float); }

    /// Copies the model. Error: those of the ring, out_of_memory, device_error.
    Status load(const NextWordModel& model, UploadRing& ring, cudaStream_t stream,
                Execution& execution);
    /// Sums the powers of these contexts, in at most so many more bytes of device memory.
    Status sum(std::span<const std::uint32_t> contexts, std::uint64_t memory, cudaStream_t stream,
               Execution& execution);

    /// After sum(): the sums of these contexts, or some of them.
    Status copy_sums(std::span<const std::uint32_t> contexts, UploadRing& ring, cudaStream_t stream,
                     Execution& execution, std::vector<ContextSum>& sums) const;
    /// In the place of sum(): sums that are known, by word.
    Status set_sums(std::span<const ContextSum> sums, cudaStream_t stream);

    /// Tokens of sequences on the device, as in TokenSequences but that begins count from
    /// `first_token`.
    struct Tokens {
        const std::uint64_t* begins = nullptr;
        std::uint32_t sequences = 0;
        const std::uint32_t* tokens = nullptr;
        std::uint64_t first_token = 0;
        std::uint64_t count = 0;
        double* scratch = nullptr;  // of each token
        float* token_probabilities = nullptr;
        double* probabilities = nullptr;  // of each sequence
    };
    /// The probabilities, after sum() of all their contexts, or set_sums().
    Status look_up(const Tokens& tokens, cudaStream_t stream) const;

private:
    std::size_t words_ = 0, dimensions_ = 0;
    std::uint32_t chunks_ = 0;  // of 32 dimensions
    DeviceBuffer<float> vectors_, outputs_;
    DeviceBuffer<float> ordered_outputs_;   // each row by lanes: see the product
    DeviceBuffer<std::int32_t> largest_;    // of each word as a context, ordered as its float
    DeviceBuffer<std::uint64_t> sums_;      // the same
    DeviceBuffer<std::uint32_t> contexts_;  // of a group
    DeviceBuffer<float> ordered_contexts_, dots_;
};

/// As gputext::context_sums, on the current device, in `work.bytes` of its memory, where the model
/// has to fit twice. O(contexts * words * dimensions). The ring serves nothing else meanwhile.
/// Errors: the operator's; out_of_memory; device_error.
Result<std::vector<ContextSum>> context_sums(const NextWordModel& model,
                                             std::span<const std::uint32_t> contexts,
                                             const DeviceWork& work, UploadRing& ring,
                                             Execution& execution);

/// As gputext::sequence_probabilities, likewise, where the longest sequence has to fit, too.
/// Without sums it finds them itself.
Result<SequenceProbabilities> sequence_probabilities(const NextWordModel& model,
                                                     const TokenSequences& sequences,
                                                     std::span<const ContextSum> sums,
                                                     const DeviceWork& work, UploadRing& ring,
                                                     Execution& execution);

}  // namespace gputext::gpu
