// cpp/daemon/word_lookup_on_device.hpp - lookup_words() of cpp/trie/trie.hpp on a device

#pragma once

#include <cstdint>
#include <span>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "cpp/base/words.hpp"

namespace gputext {

/// codes[i] becomes the code of words[i]. A broken dictionary is an error as in open_trie(). A
/// device may keep a dictionary that words were looked up in, as long as nothing else needs the
/// memory.
struct WordLookupOnDevice {
    using Function = Status(std::span<const std::uint8_t> dictionary, const Words& words,
                            std::uint64_t memory, Execution& execution,
                            std::span<std::uint32_t> codes);
    static Function on_host;
};

}  // namespace gputext
