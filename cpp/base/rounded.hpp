// cpp/base/rounded.hpp - operations of IEEE 754 that are rounded once each, to nearest, ties to
// even
//
// Formulas that must give the same bits on every processor and device are written with them: a
// compiler for devices would otherwise fuse a product with the sum that it is part of. fused() is
// fused, and compiled for an instruction set that has it where it is inlined into such a function.

#pragma once

#include "cpp/base/host_device.hpp"

namespace gputext::rounded {

#ifdef __CUDA_ARCH__
#define GPUTEXT_ROUNDED(on_device, on_host) return on_device
#else
#define GPUTEXT_ROUNDED(on_device, on_host) return on_host
#endif

[[gnu::always_inline]] GPUTEXT_HOST_DEVICE inline float sum(float a, float b) {
    GPUTEXT_ROUNDED(__fadd_rn(a, b), a + b);
}
[[gnu::always_inline]] GPUTEXT_HOST_DEVICE inline double sum(double a, double b) {
    GPUTEXT_ROUNDED(__dadd_rn(a, b), a + b);
}
[[gnu::always_inline]] GPUTEXT_HOST_DEVICE inline float product(float a, float b) {
    GPUTEXT_ROUNDED(__fmul_rn(a, b), a * b);
}
[[gnu::always_inline]] GPUTEXT_HOST_DEVICE inline double product(double a, double b) {
    GPUTEXT_ROUNDED(__dmul_rn(a, b), a * b);
}
[[gnu::always_inline]] GPUTEXT_HOST_DEVICE inline double quotient(double a, double b) {
    GPUTEXT_ROUNDED(__ddiv_rn(a, b), a / b);
}
[[gnu::always_inline]] GPUTEXT_HOST_DEVICE inline float reciprocal(float a) {
    GPUTEXT_ROUNDED(__frcp_rn(a), 1.0f / a);
}
/// a * b + c
[[gnu::always_inline]] GPUTEXT_HOST_DEVICE inline float fused(float a, float b, float c) {
    GPUTEXT_ROUNDED(__fmaf_rn(a, b, c), __builtin_fmaf(a, b, c));
}

#undef GPUTEXT_ROUNDED

}  // namespace gputext::rounded
