// kernels/trie/word_lookup.hpp - lookup_words() of cpp/trie/trie.hpp on a device
//
// Gives the CPU's codes. The dictionary stays on the device (kernels/trie/resident_trie.hpp); words
// go there in two chunks by turns, so that one is copied while the other is looked up. Words above
// kLongestOnDevice are looked up by the host.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "cpp/base/execution.hpp"
#include "cpp/base/words.hpp"
#include "kernels/base/device_work.hpp"
#include "kernels/base/upload_ring.hpp"
#include "kernels/trie/resident_trie.hpp"

namespace gputext::gpu {

/// Device memory beside the dictionary: the least that it works with, and what makes it fastest.
struct LookupBytes {
    std::size_t least, good;
};
LookupBytes lookup_bytes(const Words& words);

/// codes[i] becomes the code of words[i], or Trie::kNone. In `work.bytes` of device memory beside
/// what `tries` holds already, of which some may have to go. The ring serves nothing else
/// meanwhile. Errors: invalid_argument for an image that is none; cancelled; out_of_memory, which
/// says how much is needed; device_error, device_lost.
Status lookup_words(std::span<const std::uint8_t> image, const Words& words, ResidentTries& tries,
                    const DeviceWork& work, UploadRing& ring, Execution& execution,
                    std::span<std::uint32_t> codes);

}  // namespace gputext::gpu
