// cpp/base/host_device.hpp - marks functions that a compiler for devices compiles for both sides
//
// Whoever has such a compiler gives it GPUTEXT_DEVICE_SIDE, the name of a header that defines what
// stands here, rounded.hpp's functions, and upper_product(), for both sides.

#pragma once

#ifdef GPUTEXT_DEVICE_SIDE
#include GPUTEXT_DEVICE_SIDE
#else

#include <cstdint>

#define GPUTEXT_HOST_DEVICE

namespace gputext {

/// The upper half of a product.
constexpr std::uint32_t upper_product(std::uint32_t a, std::uint32_t b) {
    return static_cast<std::uint32_t>(std::uint64_t{a} * b >> 32);
}

}  // namespace gputext

#endif
