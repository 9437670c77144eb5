// cpp/base/lanes.hpp - sixteen doubles as the vectors of an instruction set
//
// In the compilers' own vector types, so that one source serves every instruction set: functions
// here are inlined into one function a set, which has the target attribute. Vectors are passed by
// reference only, as their calling convention depends on the set.

#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace gputext {

inline constexpr std::size_t kLanes = 16;

/// W elements of T.
template <class T, std::size_t W>
struct VectorOf {
    typedef T type __attribute__((vector_size(W * sizeof(T))));
};
template <class T, std::size_t W>
using Vector = typename VectorOf<T, W>::type;

/// binary16 in the type that has its size.
struct Half {
    std::uint16_t bits;
};

/// The binary16 nearest to a number, ties to even; infinity beyond the largest one.
inline Half half_near(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t sign = bits >> 16 & 0x8000;
    std::uint32_t magnitude = bits & 0x7fffffff;
    if (magnitude < 0x38800000) {
        // Below the normal ones: the last place of numbers from 0.5 on is binary16's smallest one.
        const float rounded = std::bit_cast<float>(magnitude) + 0.5f;
        return {static_cast<std::uint16_t>(
            sign | (std::bit_cast<std::uint32_t>(rounded) - std::bit_cast<std::uint32_t>(0.5f)))};
    }
    if (magnitude >= 0x47800000) return {static_cast<std::uint16_t>(sign | 0x7c00)};
    magnitude += 0xfff + (magnitude >> 13 & 1);
    return {static_cast<std::uint16_t>(sign | (magnitude - 0x38000000) >> 13)};
}

/// W binary16 numbers as doubles. Exponent and fraction are put into binary32's places, whose
/// exponents are 112 more; a number below binary16's normal ones is below binary32's here, and
/// exact.
template <std::size_t W>
[[gnu::always_inline]] inline void load_halves(const Half* from, Vector<double, W>& to) {
    Vector<std::uint16_t, W> loaded;
    std::memcpy(&loaded, from, sizeof loaded);
    const auto bits = __builtin_convertvector(loaded, Vector<std::uint32_t, W>);
    const Vector<std::uint32_t, W> magnitude = (bits & 0x7fff) << 13;
    const Vector<std::uint32_t, W> sign = (bits & 0x8000) << 16;
    Vector<float, W> value;
    Vector<std::uint32_t, W> value_bits;
    std::memcpy(&value, &magnitude, sizeof value);
    value *= 0x1p112f;
    std::memcpy(&value_bits, &value, sizeof value);
    value_bits |= sign;
    std::memcpy(&value, &value_bits, sizeof value);
    to = __builtin_convertvector(value, Vector<double, W>);
}

/// W elements from memory, as doubles; exact for numbers.
template <std::size_t W, class T>
[[gnu::always_inline]] inline void load_doubles(const T* from, Vector<double, W>& to) {
    if constexpr (std::is_same_v<T, Half>) {
        load_halves<W>(from, to);
    } else {
        Vector<T, W> loaded;
        std::memcpy(&loaded, from, sizeof loaded);
        to = __builtin_convertvector(loaded, Vector<double, W>);
    }
}

/// Sets lanes `count` and above of sixteen to zero.
template <std::size_t W>
[[gnu::always_inline]] inline void clear_beyond(std::size_t count,
                                                Vector<double, W> (&lanes)[kLanes / W]) {
    alignas(64) static constexpr std::int64_t mask[2 * kLanes] = {-1, -1, -1, -1, -1, -1, -1, -1,
                                                                  -1, -1, -1, -1, -1, -1, -1, -1};
    for (std::size_t v = 0; v < kLanes / W; ++v) {
        Vector<std::int64_t, W> keep, bits;
        std::memcpy(&keep, mask + kLanes - count + v * W, sizeof keep);
        std::memcpy(&bits, &lanes[v], sizeof bits);
        bits &= keep;
        std::memcpy(&lanes[v], &bits, sizeof bits);
    }
}

/// The sum of sixteen lanes: j and j + 8, then j and j + 4, j + 2, j + 1.
template <std::size_t W>
[[gnu::always_inline]] inline double sum_of_lanes(const Vector<double, W> (&lanes)[kLanes / W]) {
    if constexpr (W > 2) {
        Vector<double, W / 2> halves[2 * kLanes / W];
        std::memcpy(halves, lanes, sizeof halves);
        return sum_of_lanes<W / 2>(halves);
    } else {
        Vector<double, 2> v[8];
        std::memcpy(v, lanes, sizeof v);
        for (std::size_t half = 4; half > 0; half /= 2)
            for (std::size_t j = 0; j < half; ++j) v[j] += v[j + half];
        return v[0][0] + v[0][1];
    }
}

}  // namespace gputext
