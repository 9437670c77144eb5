// tests/fuzz/sketch_fuzz.cpp - libFuzzer target: models and sketches that an index holds

#include "tests/fuzz/sketch_target.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    gputext::testing::read_sketches({data, size});
    return 0;
}
