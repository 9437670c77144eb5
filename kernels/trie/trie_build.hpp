// kernels/trie/trie_build.hpp - build_trie() of cpp/trie/trie.hpp on a device
//
// Gives the CPU's image, byte for byte: words are sorted (kernels/trie/detail/word_sort.hpp) and
// packed on the device; the host chooses symbols and sums up the checksum. What does not fit the
// memory, or has a word above kLongestPacked, is built by the host's threads.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/words.hpp"
#include "cpp/trie/trie.hpp"
#include "kernels/base/device_work.hpp"
#include "kernels/base/upload_ring.hpp"

namespace gputext::gpu {

/// One thread reads a word.
inline constexpr std::uint32_t kLongestPacked = 1 << 16;

/// Device memory for a dictionary of these words. With less the host builds it.
std::size_t build_bytes(const Words& words);

/// As gputext::build_trie, in `work.bytes` of device memory. The ring serves nothing else
/// meanwhile. O(bytes) time but for what words share. Errors: the operator's; out_of_memory,
/// device_error, device_lost.
Result<std::vector<std::uint8_t>> build_trie(TrieStructure structure, const Words& words,
                                             const DeviceWork& work, UploadRing& ring,
                                             Execution& execution);

}  // namespace gputext::gpu
