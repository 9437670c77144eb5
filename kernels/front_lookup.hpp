// kernels/front_lookup.hpp - the codes of many words in a dictionary of cpp/front_trie.hpp
//
// One thread a word. A persistent grid: each block keeps a sample of the separators and the symbols
// in shared memory, so that the first twelve steps of a search read nothing else.

#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "cpp/status.hpp"

namespace gputext::gpu {

struct DeviceWords;
struct FrontDictionary;

/// Longer words would keep one thread busy while others wait: they are left to the host.
inline constexpr std::uint32_t kLongestOnDevice = 4096;

/// Separators in shared memory: a power of two, or all.
inline constexpr std::uint32_t kSampledSeparators = 4096;

/// codes[i] becomes what Trie::lookup gives for words[i]. Of words above kLongestOnDevice it
/// becomes kNone, and `too_long`, on the device, is increased by their number.
Status look_up(const FrontDictionary& dictionary, const DeviceWords& words, std::uint32_t* codes,
               std::uint32_t* too_long, cudaStream_t stream,
               std::uint32_t sampled = kSampledSeparators);

}  // namespace gputext::gpu
