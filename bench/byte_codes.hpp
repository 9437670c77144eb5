// bench/byte_codes.hpp - rows in 8 bits a number, and proven bounds of Euclidean distances by them
//
// A row x is coded as c = s C, and a query q as p = t P: C are whole numbers from -127 to 127, P
// from -32,512 to 32,512, s and t are floats, one of each row and query. With e >= |x - c| and f >=
// |q - p|, which are stored,
//
//   |p - c| - e - f <= |q - x| <= |p - c| + e + f         the triangle inequality, which is that of
//   Cauchy and Schwarz |p - c|^2 = t^2 |P|^2 - 2 t s P C + s^2 |C|^2         P C, |P|^2 and |C|^2
//   are sums of whole numbers, and exact
//
// Any s and C give bounds that hold, as e is computed from them. Roundings, in double:
//
//   e     s C_i is exact (24 and 7 bits, for a query 24 and 16), x_i - s C_i is rounded once, and
//   the root of the sum of d squares has a
//         relative error below (d + 4) 2^-53. No square underflows: the differences are multiples
//         of 2^-149
//   |p-c| s^2 and t s are exact, and each term is rounded at most twice, two sums once each: less
//   than 2^-49 (|p|^2 + |c|^2) in all |q-x| cpp/knn/distance.hpp defines the distance that counts;
//   it differs from |q - x| by less than (d / 16 + 20) 2^-52 of it, as in
//         cpp/knn/detail/filter_space.hpp. E is that and 2^-50 for the roundings of the bounds' own
//         sums
//
// So a row whose lower bound is above the k-th smallest upper bound, of all rows or of some, is not
// among the k nearest: k rows are nearer, to the bit. Ties are never left out. Bounds that are
// stored as floats are rounded outwards.

#pragma once

#include <cmath>
#include <cstdint>

#include "cpp/base/counter_random.hpp"
#include "cpp/base/host_device.hpp"

namespace gputext::bench {

inline constexpr int kMostOfByte = 127;
inline constexpr int kMostOfWord = 32512;  // 127 * 256
/// Sums of products of bytes stay below 2^31.
inline constexpr std::uint32_t kMostDimensions = 65536;

GPUTEXT_HOST_DEVICE inline float float_above(double number) {
    const auto nearest = static_cast<float>(number);
    return static_cast<double>(nearest) < number ? nextafterf(nearest, INFINITY) : nearest;
}
GPUTEXT_HOST_DEVICE inline float float_below(double number) {
    const auto nearest = static_cast<float>(number);
    return static_cast<double>(nearest) > number ? nextafterf(nearest, -INFINITY) : nearest;
}

/// The scale of a row whose largest magnitude is given, for whole numbers up to `most`.
GPUTEXT_HOST_DEVICE inline float code_scale(float largest, int most) {
    return largest / static_cast<float>(most);
}

GPUTEXT_HOST_DEVICE inline int code_of(float number, float scale, int most) {
    if (!(scale > 0)) return 0;
    const double code = rint(static_cast<double>(number) / static_cast<double>(scale));
    return code > most ? most : code < -most ? -most : static_cast<int>(code);
}

/// Sums over the numbers of a row and their codes; of several parts of a row, they may be added.
struct CodeSums {
    double residual = 0;  // |x - c|^2
    double code = 0;      // |C|^2, exact

    GPUTEXT_HOST_DEVICE void add(float number, int code_of_number, float scale) {
        const double lack = static_cast<double>(number) -
                            static_cast<double>(scale) * static_cast<double>(code_of_number);
        residual += lack * lack;
        code += static_cast<double>(code_of_number) * static_cast<double>(code_of_number);
    }
    /// Not below |x - c|.
    GPUTEXT_HOST_DEVICE double error(std::uint32_t dimensions) const {
        return sqrt(residual) * (1 + (dimensions + 16) * 0x1p-52);
    }
};

/// What is stored of a row beside its codes.
struct CodedRow {
    float scale;           // s
    float error;           // e
    std::uint32_t square;  // |C|^2
};

struct CodedQuery {
    double scale;   // t
    double error;   // f
    double square;  // |p|^2
    double slack;   // E
};

GPUTEXT_HOST_DEVICE inline CodedRow coded_row(float scale, const CodeSums& sums,
                                              std::uint32_t dimensions) {
    return {scale, float_above(sums.error(dimensions)), static_cast<std::uint32_t>(sums.code)};
}

/// The high and the low byte of a query's whole number: word = 256 high + low.
GPUTEXT_HOST_DEVICE inline int high_byte(int word) {
    return (word + 128) >> 8;
}
GPUTEXT_HOST_DEVICE inline int low_byte(int word) {
    return word - 256 * high_byte(word);
}

struct Bounds {
    float lower, upper;
};

/// What a product says about the distance of a query and a row.
class CodeDistance {
public:
    /// `high` and `low` are the products of the query's bytes with the row's codes.
    GPUTEXT_HOST_DEVICE CodeDistance(const CodedQuery& query, const CodedRow& row,
                                     std::int32_t high, std::int32_t low)
        : slack_(query.slack), errors_(static_cast<double>(row.error) + query.error) {
        const auto product = static_cast<double>(256 * static_cast<std::int64_t>(high) + low);
        const auto scale = static_cast<double>(row.scale);
        const double square = scale * scale * static_cast<double>(row.square);
        square_ = query.square - 2 * (query.scale * scale) * product + square;
        rounding_ = (query.square + square) * 0x1p-48;
    }

    /// Whether the distance may be at most `limit`, which is not negative. Cheaper than bounds().
    GPUTEXT_HOST_DEVICE bool may_be_within(float limit) const {
        const double reach = static_cast<double>(limit) + errors_;
        return square_ - rounding_ <= reach * reach * (1 + 8 * slack_);
    }

    GPUTEXT_HOST_DEVICE Bounds bounds() const {
        const double least = sqrt(fmax(square_ - rounding_, 0.0));
        const double most = sqrt(fmax(square_ + rounding_, 0.0));
        const double lower = least - errors_ - slack_ * (least + errors_);
        return {float_below(fmax(lower, 0.0)), float_above((most + errors_) * (1 + slack_))};
    }

private:
    double slack_, errors_, square_, rounding_;
};

/// Rows that are made, the same wherever they are made but for the last bits of logarithms and
/// cosines: normal ones, or those of 1,000 clusters that bench/made_vectors describes.
struct MadeRows {
    static constexpr std::uint32_t kClusters = 1000, kHidden = 64;

    bool clustered;
    std::uint32_t dimensions;

    /// Normally distributed, one for each use and place.
    GPUTEXT_HOST_DEVICE static float normal(std::uint64_t use, std::uint64_t place) {
        const std::uint64_t bits = random_bits(random_key(20261127, use, 0), place);
        const auto radius = static_cast<float>((bits >> 40) + 1) * 0x1p-24f;
        const auto angle = static_cast<float>(bits & 0xffffff) * 0x1p-24f;
        return sqrtf(-2 * logf(radius)) * cosf(6.2831853f * angle);
    }
    GPUTEXT_HOST_DEVICE float matrix(std::uint32_t hidden, std::uint32_t column) const {
        return normal(1, std::uint64_t{hidden} * dimensions + column) /
               sqrtf(static_cast<float>(dimensions));
    }
    GPUTEXT_HOST_DEVICE float hidden(std::uint64_t row, std::uint32_t i) const {
        const std::uint64_t cluster = random_bits(random_key(20261127, 2, 0), row) % kClusters;
        return (normal(3, cluster * kHidden + i) + 0.7f * normal(4, row * kHidden + i)) /
               sqrtf(static_cast<float>(i + 1));
    }
    /// A row's number without what its hidden numbers and the matrix add.
    GPUTEXT_HOST_DEVICE float alone(std::uint64_t row, std::uint32_t column) const {
        const float number = normal(5, row * dimensions + column);
        return clustered ? 0.3f * number / sqrtf(static_cast<float>(dimensions)) : number;
    }
};

}  // namespace gputext::bench
