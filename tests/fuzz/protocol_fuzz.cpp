// tests/fuzz/protocol_fuzz.cpp - libFuzzer target: everything that reads bytes from the link

#include "tests/fuzz/protocol_target.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    gputext::testing::read_anything({data, size});
    return 0;
}
