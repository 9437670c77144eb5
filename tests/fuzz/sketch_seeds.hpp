// tests/fuzz/sketch_seeds.hpp - seeds of the fuzzer of models and sketches

#pragma once

#include <string>
#include <vector>

namespace gputext::testing {

/// Models of several shapes, a threshold, a document, an edit of it, and bytes of sketches, as
/// sketch_target.hpp takes them off the front.
inline std::vector<std::string> sketch_seeds() {
    const std::string document =
        "\x19\x03\x2cIt was a bright cold day in April, the clocks\x04\x01\x01"
        "A\x05";
    return {
        std::string("\0\0\x09\x03\x01\x02\x03", 7) + document,
        std::string("\x01\x01\x04\x02\x10\xff\x03\x0f\x01\x80", 10) + document + "sketches",
        std::string("\x02\x05\x1f\x01\x40\x04\x00\x01\x07\x00\x13\x02\x09\x63", 14) + document +
            std::string("\xff\x00\x7f\x80", 4),
    };
}

}  // namespace gputext::testing
