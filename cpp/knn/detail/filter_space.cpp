#include "cpp/knn/detail/filter_space.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "cpp/base/lanes.hpp"

namespace gputext {
namespace {

/// Sizes of y = (x - c) s and of its error when rounded to T.
struct Sums {
    double norm;      // of y^2 or |y|
    double residual;  // of (y - T(y))^2 or |y - T(y)|
    double low;       // of the low numbers' squares
};

template <std::size_t W>
[[gnu::always_inline]] inline void add_size(bool squares, const Vector<double, W>& value,
                                            Vector<double, W>& sum) {
    if (squares) {
        sum += value * value;
    } else {
        Vector<std::int64_t, W> bits;
        std::memcpy(&bits, &value, sizeof bits);
        bits &= INT64_MAX;
        Vector<double, W> magnitude;
        std::memcpy(&magnitude, &bits, sizeof bits);
        sum += magnitude;
    }
}

/// Rounds W doubles to Bfloat16, whose bits are the upper ones of floats, and back.
template <std::size_t W>
[[gnu::always_inline]] inline void round_to_bfloat16(const Vector<double, W>& values,
                                                     Vector<std::uint32_t, W>& bits,
                                                     Vector<double, W>& rounded) {
    // Rounded to float first: what that adds to the error, the residual sees.
    Vector<float, W> floats = __builtin_convertvector(values, Vector<float, W>);
    std::memcpy(&bits, &floats, sizeof bits);
    bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000;
    std::memcpy(&floats, &bits, sizeof bits);
    rounded = __builtin_convertvector(floats, Vector<double, W>);
}

/// Writes the nearest T to W doubles, and gives them back as doubles, and the low numbers of pairs.
template <class T, std::size_t W>
[[gnu::always_inline]] inline void round_to(const Vector<double, W>& values, T* out,
                                            Vector<double, W>& rounded, Vector<double, W>& low) {
    if constexpr (is_bfloat16<T>) {
        Vector<std::uint32_t, W> bits, low_bits;
        round_to_bfloat16<W>(values, bits, rounded);
        bits >>= 16;
        if constexpr (std::is_same_v<T, Bfloat16Pair>) {
            const Vector<double, W> rest = values - rounded;
            round_to_bfloat16<W>(rest, low_bits, low);
            rounded += low;
            bits |= low_bits;
            std::memcpy(out, &bits, sizeof bits);
        } else {
            const auto halves = __builtin_convertvector(bits, Vector<std::uint16_t, W>);
            std::memcpy(out, &halves, sizeof halves);
        }
    } else {
        const auto elements = __builtin_convertvector(values, Vector<T, W>);
        std::memcpy(out, &elements, sizeof elements);
        rounded = __builtin_convertvector(elements, Vector<double, W>);
    }
}

template <class T, std::size_t W>
[[gnu::always_inline]] inline Sums convert_here(bool squares, const double* row,
                                                const double* center, double scale,
                                                std::size_t padded, T* out) {
    Vector<double, W> norms[kLanes / W] = {}, residuals[kLanes / W] = {}, lows[kLanes / W] = {};
    for (std::size_t i = 0; i < padded; i += kLanes) {
        for (std::size_t v = 0; v < kLanes / W; ++v) {
            Vector<double, W> x, c;
            std::memcpy(&x, row + i + v * W, sizeof x);
            std::memcpy(&c, center + i + v * W, sizeof c);
            const Vector<double, W> y = (x - c) * scale;
            Vector<double, W> rounded, low = {};
            round_to<T, W>(y, out + i + v * W, rounded, low);
            add_size<W>(squares, y, norms[v]);
            const Vector<double, W> residual = y - rounded;
            add_size<W>(squares, residual, residuals[v]);
            if constexpr (std::is_same_v<T, Bfloat16Pair>) lows[v] += low * low;
        }
    }
    return {sum_of_lanes<W>(norms), sum_of_lanes<W>(residuals),
            std::is_same_v<T, Bfloat16Pair> ? sum_of_lanes<W>(lows) : 0.0};
}

// The loop above, compiled for each instruction set.

template <class T>
[[gnu::optimize("O3")]] Sums convert_portable(bool squares, const double* row, const double* center,
                                              double scale, std::size_t padded, T* out) {
    return convert_here<T, 2>(squares, row, center, scale, padded, out);
}

#ifdef GPUTEXT_X86
template <class T>
[[gnu::optimize("O3")]] GPUTEXT_TARGET_AVX2 Sums convert_avx2(bool squares, const double* row,
                                                              const double* center, double scale,
                                                              std::size_t padded, T* out) {
    return convert_here<T, 4>(squares, row, center, scale, padded, out);
}

template <class T>
[[gnu::optimize("O3"), gnu::target("prefer-vector-width=512")]] GPUTEXT_TARGET_AVX512 Sums
convert_avx512(bool squares, const double* row, const double* center, double scale,
               std::size_t padded, T* out) {
    return convert_here<T, 8>(squares, row, center, scale, padded, out);
}
#endif

template <class T>
Sums convert_row(Simd simd, bool squares, const double* row, const double* center, double scale,
                 std::size_t padded, T* out) {
#ifdef GPUTEXT_X86
    if (simd >= Simd::avx512) return convert_avx512(squares, row, center, scale, padded, out);
    if (simd == Simd::avx2) return convert_avx2(squares, row, center, scale, padded, out);
#endif
    (void)simd;
    return convert_portable(squares, row, center, scale, padded, out);
}

template <class T>
constexpr double unit_roundoff() {
    if (is_bfloat16<T>) return 0x1p-8 + 0x1p-20;  // through float; of a pair the high number's
    return std::is_same_v<T, float> ? 0x1p-24 : 0x1p-53;
}

/// Far above what underflow may lose in sums of elements near 1, far below any other error. AMX
/// takes factors, products and sums below the normal floats for zero, each of which loses at most
/// 2^-124.
template <class T>
constexpr double tiny() {
    if (is_bfloat16<T>) return 0x1p-118;
    return std::is_same_v<T, float> ? 0x1p-126 : 0x1p-200;
}

/// G of the header.
template <class T>
double sum_error(std::size_t dimensions) {
    const auto roundings =
        static_cast<double>(products_of<T> * dimensions + 4) * unit_roundoff<ScoreOf<T>>();
    return roundings / (1 - roundings);
}

/// E of the header; also far more than what convert() errs in doubles.
double double_error(std::size_t dimensions) {
    return (static_cast<double>(dimensions) / kLanes + 20) * 0x1p-52;
}

/// The power of two that brings a magnitude into [1, 2), or as near as a power below infinity does:
/// that is far enough from where squares underflow for a number below the normal ones, too.
double scale_to_one(double magnitude) {
    return magnitude == 0 ? 1 : std::scalbn(1.0, std::min(-std::ilogb(magnitude), 1023));
}

/// For each column about the median of the items. Any numbers would do: these are robust against
/// single huge elements, as a mean is not.
void set_center(const Vectors& items, std::vector<double>& center) {
    constexpr std::size_t most_samples = 127;
    const std::size_t samples = std::min(items.rows, most_samples), d = items.dimensions;
    if (samples == 0) return;
    std::vector<double> rows(samples * d), column(samples);
    for (std::size_t i = 0; i < samples; ++i)
        copy_elements(items, items.begin(i * items.rows / samples), d, &rows[i * d]);
    for (std::size_t j = 0; j < d; ++j) {
        for (std::size_t i = 0; i < samples; ++i) column[i] = rows[i * d + j];
        const auto middle = column.begin() + static_cast<std::ptrdiff_t>(samples / 2);
        std::nth_element(column.begin(), middle, column.end());
        center[j] = *middle;
    }
}

}  // namespace

bool FilterSpace::holds(double largest_query, double largest_item, std::size_t dimensions) {
    const auto in_range = [](double largest) {
        return largest == 0 || (largest >= 0x1p-400 && largest <= 0x1p400);
    };
    return in_range(largest_query) && in_range(largest_item) && dimensions > 0 &&
           dimensions <= std::size_t{1} << 17;
}

FilterSpace::FilterSpace(Metric metric, const Vectors& items, double largest_query,
                         double largest_item, Simd simd)
    : metric_(metric),
      dimensions_(items.dimensions),
      simd_(simd),
      center_((items.dimensions + kLanes - 1) / kLanes * kLanes) {
    switch (metric) {
        case Metric::inner_product:
            query_scale_ = scale_to_one(largest_query);
            item_scale_ = scale_to_one(largest_item);
            break;
        case Metric::cosine:
            break;
        default:
            query_scale_ = item_scale_ = scale_to_one(std::max(largest_query, largest_item));
            set_center(items, center_);
    }
}

template <class T>
FilterRow FilterSpace::convert(Side side, double* row, T* out) const {
    const std::size_t size = padded();
    const bool squares = metric_ != Metric::manhattan;
    double scale = side == Side::query ? query_scale_ : item_scale_;
    if (metric_ == Metric::cosine) {
        double largest = 0;
        for (std::size_t i = 0; i < dimensions_; ++i)
            largest = std::max(largest, std::fabs(row[i]));
        if (largest == 0) return {};
        // Its square might over- or underflow.
        const double to_one = scale_to_one(largest);
        if (!(largest >= 0x1p-150 && largest <= 0x1p150))
            for (std::size_t i = 0; i < dimensions_; ++i) row[i] *= to_one;
        const Sums sums = convert_row(simd_, squares, row, center_.data(), 1.0, size, out);
        scale = 1 / std::sqrt(sums.norm);
    }
    const Sums sums = convert_row(simd_, squares, row, center_.data(), scale, size, out);

    const double error = double_error(dimensions_);
    const double norm = squares ? std::sqrt(sums.norm) : sums.norm;
    const double residual = squares ? std::sqrt(sums.residual) : sums.residual;
    FilterRow bounds;
    bounds.norm = norm * (1 + error + 2 * unit_roundoff<T>());
    bounds.least_norm = norm * (1 - error);
    bounds.residual = residual * (1 + error) + error * bounds.norm;
    bounds.low = std::sqrt(sums.low) * (1 + error);
    if (metric_ == Metric::euclidean && side == Side::item) bounds.offset = sums.norm / 2;
    return bounds;
}

template <class T>
FilterSpace::Bound FilterSpace::bound(const FilterRow& query, const FilterRow& items) const {
    constexpr double margin = 1 + 0x1p-20;  // for this function's own roundings
    const double g = sum_error<T>(dimensions_), e = double_error(dimensions_);
    const double underflow = static_cast<double>(dimensions_ + 4) * tiny<T>();
    if (metric_ == Metric::manhattan)
        return {2 * g + 2 * e, (query.residual + items.residual + underflow) * margin};
    const double offset = metric_ == Metric::euclidean ? items.norm * items.norm / 2 : 0;
    const double sum = query.norm + items.norm;
    const double products =
        query.norm * items.norm + query.norm * items.low + query.low * items.norm;
    const double absolute = g * (offset + products) + query.residual * items.norm +
                            query.norm * items.residual + query.low * items.low + e * sum * sum +
                            underflow;
    return {0, absolute * margin};
}

double FilterSpace::most_of(const FilterRow& query, double distance) const {
    constexpr double up = 1 + 0x1p-48, down = 1 - 0x1p-48;
    double most = 0;
    switch (metric_) {
        case Metric::euclidean: {
            const double scaled = distance * query_scale_;
            most = (scaled * scaled * up - query.least_norm * query.least_norm * down) / 2;
            break;
        }
        case Metric::cosine:
            most = distance - 1;
            break;
        default:
            most = distance * query_scale_;
            if (metric_ == Metric::inner_product) most *= item_scale_;
    }
    return most + std::fabs(most) * 0x1p-48 + tiny<double>();
}

double FilterSpace::least_distance(const FilterRow& query, double least) const {
    const double norm = query.least_norm * query.least_norm;
    const double roundings = (std::fabs(least) + norm) * 0x1p-46 + tiny<double>();
    if (metric_ == Metric::cosine) return std::max(0.0, least + 1 - 0x1p-46);
    const double square = std::max(0.0, 2 * least + norm - roundings);
    return std::sqrt(square) * (1 - 0x1p-46) / query_scale_;
}

double FilterSpace::least_of(const FilterRow& query, const FilterRow& items) const {
    const double gap =
        std::max({0.0, items.least_norm - query.norm, query.least_norm - items.norm});
    switch (metric_) {
        case Metric::euclidean:
            return (gap * gap - query.norm * query.norm) / 2;
        case Metric::manhattan:
            return gap;
        default:
            return -query.norm * items.norm;
    }
}

template FilterRow FilterSpace::convert(Side, double*, Bfloat16*) const;
template FilterRow FilterSpace::convert(Side, double*, Bfloat16Pair*) const;
template FilterRow FilterSpace::convert(Side, double*, float*) const;
template FilterRow FilterSpace::convert(Side, double*, double*) const;
template FilterSpace::Bound FilterSpace::bound<Bfloat16>(const FilterRow&, const FilterRow&) const;
template FilterSpace::Bound FilterSpace::bound<Bfloat16Pair>(const FilterRow&,
                                                             const FilterRow&) const;
template FilterSpace::Bound FilterSpace::bound<float>(const FilterRow&, const FilterRow&) const;
template FilterSpace::Bound FilterSpace::bound<double>(const FilterRow&, const FilterRow&) const;

}  // namespace gputext
