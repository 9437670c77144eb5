// cpp/daemon/trie_build_on_device.hpp - build_trie() of cpp/trie/trie.hpp on a device

#pragma once

#include <cstdint>
#include <vector>

#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "cpp/base/words.hpp"
#include "cpp/trie/trie.hpp"

namespace gputext {

struct TrieBuildOnDevice {
    using Function = Result<std::vector<std::uint8_t>>(TrieStructure structure, const Words& words,
                                                       std::uint64_t memory, Execution& execution);
    static Function on_host;
};

}  // namespace gputext
