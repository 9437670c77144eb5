// cpp/embeddings/detail/training_rows.hpp - arithmetic of a step of cpp/embeddings/trainer.hpp on
// rows of numbers
//
// Rows have `size` elements, a multiple of kRowUnit, those behind the dimensions 0. Each function
// gives the same bits by every instruction set.

#pragma once

#include <cstddef>
#include <cstdint>

#include "cpp/base/simd.hpp"

namespace gputext {

inline constexpr std::size_t kRowUnit = 32;

struct RowFunctions {
    /// out = the sum over i of weights[i] * rows[i], by fma from 0.
    void (*weighted_sum)(const float* const* rows, const float* weights, std::size_t count,
                         std::size_t size, float* out);
    /// steps += the same sum as integers, TrainerParameters::kFractionBits behind the point.
    void (*add_weighted)(const float* const* rows, const float* weights, std::size_t count,
                         std::size_t size, std::int32_t* steps);
    /// row = fma(steps as numbers, quotient, row).
    void (*take_steps)(const std::int32_t* steps, float quotient, std::size_t size, float* row);
};

RowFunctions row_functions(Simd simd);

}  // namespace gputext
