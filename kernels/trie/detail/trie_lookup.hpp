// kernels/trie/detail/trie_lookup.hpp - looks many words up in a dictionary on a device
//
// One thread a word, in a persistent grid, of which each block keeps in shared memory what every
// lookup reads. Of a dictionary of cpp/trie/detail/front_coded.hpp: a sample of the separators, for
// the first twelve steps of a search, and the symbols. Of one of cpp/trie/detail/xbw.hpp: what
// values a block's number stands for.

#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "cpp/base/status.hpp"

namespace gputext::gpu {

struct BucketLine;
struct DeviceWords;
struct FrontCodedDictionary;
struct XbwDictionary;

/// Longer words would keep one thread busy while others wait: they are left to the host.
inline constexpr std::uint32_t kLongestOnDevice = 4096;

/// Separators in shared memory: a power of two, or all.
inline constexpr std::uint32_t kSampledSeparators = 4096;

/// Makes the lines of all buckets, which the dictionary lacks.
Status make_lines(const FrontCodedDictionary& dictionary, BucketLine* lines, cudaStream_t stream);

/// codes[i] becomes what Trie::lookup gives for words[i]. Of words above kLongestOnDevice it
/// becomes kNone, and `too_long`, on the device, is increased by their number.
Status look_up(const FrontCodedDictionary& dictionary, const DeviceWords& words,
               std::uint32_t* codes, std::uint32_t* too_long, cudaStream_t stream,
               std::uint32_t sampled = kSampledSeparators);
Status look_up(const XbwDictionary& dictionary, const DeviceWords& words, std::uint32_t* codes,
               std::uint32_t* too_long, cudaStream_t stream);

}  // namespace gputext::gpu
