// kernels/embeddings/word_movers.hpp - cpp/embeddings/word_movers.hpp on a device
//
// Gives the CPU's bits. A warp computes a pair, with its costs in shared memory, where each text
// has at most 160 different words that the other one lacks, or fewer on a device with less shared
// memory than an H200. Other pairs are computed on the host.

#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "cpp/embeddings/word_movers.hpp"
#include "kernels/base/device_work.hpp"
#include "kernels/base/upload_ring.hpp"

namespace gputext::gpu {

/// A launch is for pairs whose texts have at most so many words left, by the first class that they
/// fit.
inline constexpr unsigned kMovedWords[] = {32, 64, 96, 160};

/// What is on the device of a model and of pairs: costs are for movers_distance().
struct DevicePairs {
    const float* vectors = nullptr;
    std::uint32_t dimensions = 0;
    float unit = 1;                         // 2 to the scale
    const std::uint64_t* begins = nullptr;  // as in TextPairs
    const WordMass* masses = nullptr;       // masses[begin - first_mass]
    std::uint64_t first_mass = 0;
    std::uint64_t* costs = nullptr;  // of each pair
};

/// Computes the costs of `pairs`, a list of numbers of class `words` of kMovedWords. `counter` is a
/// number on the device that nothing else uses meanwhile.
Status run_word_movers(MoversMethod method, const DevicePairs& all, unsigned words,
                       std::span<const std::uint32_t> pairs_on_device, std::uint32_t* counter,
                       cudaStream_t stream);

/// As gputext::word_movers_distances, on the current device, in `work.bytes` of its memory, where
/// the model has to fit, 4 bytes an element, beside the masses of some pairs. `distances`: one for
/// each pair. Time grows as cpp/embeddings/word_movers.hpp says. The ring serves nothing else
/// meanwhile. Errors: the operator's; out_of_memory; device_error.
Status word_movers_distances(const MoversParameters& parameters, const WordVectors& vectors,
                             const TextPairs& pairs, const DeviceWork& work, UploadRing& ring,
                             Execution& execution, std::span<double> distances);

}  // namespace gputext::gpu
