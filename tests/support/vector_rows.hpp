// tests/support/vector_rows.hpp - random rows as vectors of any type, some of them hard to compare

#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "cpp/base/vectors.hpp"
#include "tests/support/plain_knn.hpp"
#include "tests/support/random_strings.hpp"

namespace gputext::testing {

/// The value of a binary16, from its definition.
inline double value_of_half(std::uint16_t bits) {
    const int exponent = bits >> 10 & 31;
    const double fraction = (bits & 1023) / 1024.0;
    const double magnitude =
        exponent == 0 ? std::ldexp(fraction, -14) : std::ldexp(1 + fraction, exponent - 15);
    return bits & 0x8000 ? -magnitude : magnitude;
}

/// A binary16 near a number, at most 65504.
inline std::uint16_t fp16_near(double value) {
    std::uint16_t best = 0;
    const double magnitude = std::min(std::fabs(value), 65504.0);
    for (std::uint32_t step = 1u << 14; step > 0; step /= 2)
        if (best + step < 0x7c00 &&
            value_of_half(static_cast<std::uint16_t>(best + step)) <= magnitude)
            best = static_cast<std::uint16_t>(best + step);
    return static_cast<std::uint16_t>(best | (value < 0 ? 0x8000 : 0));
}

/// Rows rounded to a type, in the memory of an operator's input and as the doubles that they are.
class TypedRows {
public:
    TypedRows(const DoubleRows& rows, ElementType type, std::size_t dimensions, bool sparse = false)
        : rows_(rows.size()) {
        vectors_.type = type;
        vectors_.rows = rows.size();
        vectors_.dimensions = dimensions;
        if (sparse) begins_.push_back(0);
        for (std::size_t r = 0; r < rows.size(); ++r) {
            for (std::uint32_t i = 0; i < dimensions; ++i) {
                const double value = append(rows[r][i], sparse);
                rows_[r].push_back(value);
                if (sparse && value != 0) columns_.push_back(i);
            }
            if (sparse) begins_.push_back(columns_.size());
        }
        vectors_.elements = bytes_.data();
        vectors_.row_begins = begins_;
        vectors_.columns = columns_;
    }
    TypedRows(const TypedRows&) = delete;

    const Vectors& vectors() const { return vectors_; }
    const DoubleRows& rows() const { return rows_; }

private:
    template <class T>
    void append_bytes(T value) {
        const std::size_t at = bytes_.size();
        bytes_.resize(at + sizeof value);
        std::memcpy(bytes_.data() + at, &value, sizeof value);
    }

    double append(double value, bool sparse) {
        switch (vectors_.type) {
            case ElementType::float16: {
                const std::uint16_t half = fp16_near(value);
                append_bytes(half);
                return value_of_half(half);
            }
            case ElementType::float32: {
                const auto single = static_cast<float>(value);
                if (!sparse || single != 0) append_bytes(single);
                return single;
            }
            case ElementType::float64:
                append_bytes(value);
                return value;
            default: {
                const auto integer = static_cast<std::int32_t>(std::clamp(value, -2e9, 2e9));
                append_bytes(integer);
                return integer;
            }
        }
    }

    DoubleRows rows_;
    std::vector<std::byte> bytes_;
    std::vector<std::uint64_t> begins_;
    std::vector<std::uint32_t> columns_;
    Vectors vectors_;
};

/// What random rows look like.
enum class Shape {
    gaussian,
    grid,            // small integers: many ties
    copies,          // few different rows
    near_identical,  // a large norm and tiny differences
    scales,          // columns of 1e9 beside columns of 1
    sparse,          // mostly zeros, some rows of zeros
    clusters,
    outliers,  // some rows a million times as long
    tiny,      // numbers below the normal doubles
    huge,      // up to 1e300
    mixed      // rows of any magnitude from 1e-300 to 1e300
};
inline constexpr Shape kAllShapes[] = {Shape::gaussian,       Shape::grid,     Shape::copies,
                                       Shape::near_identical, Shape::scales,   Shape::sparse,
                                       Shape::clusters,       Shape::outliers, Shape::tiny,
                                       Shape::huge,           Shape::mixed};

class RandomRows {
public:
    RandomRows() : trace_(__FILE__, __LINE__, "GPUTEXT_TEST_SEED=" + std::to_string(seed())) {}

    std::size_t below(std::size_t bound) {
        return std::uniform_int_distribution<std::size_t>(0, bound - 1)(generator_);
    }
    double normal() { return std::normal_distribution<double>()(generator_); }

    /// Equal shapes and numbers of dimensions give rows of one neighborhood, as queries and
    /// items should be.
    DoubleRows rows(Shape shape, std::size_t count, std::size_t d) {
        DoubleRows rows(count, DoubleRow(d));
        if (center_.size() != d) {
            center_.resize(d);
            for (double& x : center_) x = 1000 * normal();
        }
        for (std::size_t r = 0; r < count; ++r) {
            if (shape == Shape::copies && r > 3 && below(4) != 0) {
                rows[r] = rows[below(r)];
                continue;
            }
            const double row_scale = scale(shape);
            const bool zeros = shape == Shape::sparse && below(8) == 0;
            const double cluster = static_cast<double>(below(5));
            for (std::size_t i = 0; i < d && !zeros; ++i)
                rows[r][i] = row_scale * element(shape, i, cluster);
        }
        return rows;
    }

private:
    double scale(Shape shape) {
        switch (shape) {
            case Shape::outliers:
                return below(20) == 0 ? 1e6 : 1;
            case Shape::tiny:
                return std::numeric_limits<double>::denorm_min() * 1000;
            case Shape::huge:
                return 1e300;
            case Shape::mixed:
                return std::pow(10.0, 600 * std::uniform_real_distribution<>()(generator_) - 300);
            default:
                return 1;
        }
    }

    double element(Shape shape, std::size_t i, double cluster) {
        switch (shape) {
            case Shape::grid:
            case Shape::copies:
                return static_cast<double>(below(5)) - 2;
            case Shape::near_identical:
                return center_[i] + 1e-3 * normal();
            case Shape::scales:
                return i % 3 == 0 ? 1e9 * std::fabs(normal()) : static_cast<double>(below(3));
            case Shape::sparse:
                return below(6) == 0 ? normal() : 0;
            case Shape::clusters:
                return 10 * cluster + 0.01 * normal();
            default:
                return normal();
        }
    }

    std::mt19937_64 generator_{seed()};
    DoubleRow center_;
    ::testing::ScopedTrace trace_;
};

}  // namespace gputext::testing
