// tests/fuzz/trie_fuzz.cpp - libFuzzer target: the reader of dictionary images

#include "tests/fuzz/trie_target.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    gputext::testing::read_trie({data, size});
    return 0;
}
