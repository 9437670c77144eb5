// tests/fuzz/code_fuzz.cpp - libFuzzer target: the lexer of source code

#include "tests/fuzz/code_target.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    gputext::testing::read_code({reinterpret_cast<const char*>(data), size});
    return 0;
}
