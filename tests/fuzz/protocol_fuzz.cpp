// tests/fuzz/protocol_fuzz.cpp - libFuzzer on everything that reads what came over the link

#include "tests/fuzz/protocol_target.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    gputext::testing::read_anything({data, size});
    return 0;
}
