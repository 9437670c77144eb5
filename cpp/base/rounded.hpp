// cpp/base/rounded.hpp - operations of IEEE 754 that are rounded once each, to nearest, ties to
// even
//
// Formulas that must give the same bits on every processor and device are written with them: a
// compiler for devices would otherwise fuse a product with the sum that it is part of. fused() is
// fused, and compiled for an instruction set that has it where it is inlined into such a function.

#pragma once

#include "cpp/base/host_device.hpp"

#ifndef GPUTEXT_DEVICE_SIDE

namespace gputext::rounded {

[[gnu::always_inline]] inline float sum(float a, float b) {
    return a + b;
}
[[gnu::always_inline]] inline double sum(double a, double b) {
    return a + b;
}
[[gnu::always_inline]] inline float product(float a, float b) {
    return a * b;
}
[[gnu::always_inline]] inline double product(double a, double b) {
    return a * b;
}
[[gnu::always_inline]] inline double quotient(double a, double b) {
    return a / b;
}
[[gnu::always_inline]] inline float reciprocal(float a) {
    return 1.0f / a;
}
/// a * b + c
[[gnu::always_inline]] inline float fused(float a, float b, float c) {
    return __builtin_fmaf(a, b, c);
}

}  // namespace gputext::rounded

#endif
