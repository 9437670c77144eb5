#include "cpp/hnsw/detail/nearness.hpp"

#include <cmath>
#include <cstring>
#include <limits>

#include "cpp/base/lanes.hpp"
#include "cpp/base/prefetch.hpp"

namespace gputext {
namespace {

enum class Term { square, magnitude };

template <Term term, std::size_t W>
[[gnu::always_inline]] inline void add_terms(const float* a, const float* b,
                                             Vector<float, W>& sum) {
    Vector<float, W> x, y;
    std::memcpy(&x, a, sizeof x);
    std::memcpy(&y, b, sizeof y);
    Vector<float, W> difference = x - y;
    if constexpr (term == Term::square) {
        sum += difference * difference;
    } else {
        Vector<std::int32_t, W> bits;
        std::memcpy(&bits, &difference, sizeof bits);
        bits &= INT32_MAX;
        std::memcpy(&difference, &bits, sizeof bits);
        sum += difference;
    }
}

/// In any order: the bound holds for all.
template <Term term, std::size_t W>
[[gnu::always_inline]] inline float sum_here(const float* a, const float* b,
                                             std::size_t dimensions) {
    constexpr std::size_t chains = 4;  // each addition waits for the one before
    Vector<float, W> sums[chains] = {};
    std::size_t i = 0;
    for (; i + chains * W <= dimensions; i += chains * W)
        for (std::size_t c = 0; c < chains; ++c)
            add_terms<term, W>(a + i + c * W, b + i + c * W, sums[c]);
    for (; i + W <= dimensions; i += W) add_terms<term, W>(a + i, b + i, sums[0]);
    const Vector<float, W> all = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    float sum = 0;
    for (std::size_t lane = 0; lane < W; ++lane) sum += all[lane];
    for (; i < dimensions; ++i) {
        const float difference = a[i] - b[i];
        sum += term == Term::square ? difference * difference : std::fabs(difference);
    }
    return sum;
}

template <Term term>
[[gnu::optimize("O3")]] float sum_portable(const float* a, const float* b, std::size_t d) {
    return sum_here<term, 4>(a, b, d);
}
#ifdef GPUTEXT_X86
template <Term term>
[[gnu::optimize("O3")]] GPUTEXT_TARGET_AVX2 float sum_avx2(const float* a, const float* b,
                                                           std::size_t d) {
    return sum_here<term, 8>(a, b, d);
}
template <Term term>
[[gnu::optimize("O3"), gnu::target("prefer-vector-width=512")]] GPUTEXT_TARGET_AVX512 float
sum_avx512(const float* a, const float* b, std::size_t d) {
    return sum_here<term, 16>(a, b, d);
}
#endif

template <Term term>
Nearness::Sum sum_for(Simd simd) {
#ifdef GPUTEXT_X86
    if (simd >= Simd::avx512) return sum_avx512<term>;
    if (simd == Simd::avx2) return sum_avx2<term>;
#endif
    (void)simd;
    return sum_portable<term>;
}

Nearness::Sum sum_of(Metric metric, ElementType type, Simd simd) {
    if (type != ElementType::float32 && type != ElementType::float16) return nullptr;
    if (metric == Metric::euclidean) return sum_for<Term::square>(simd);
    if (metric == Metric::manhattan) return sum_for<Term::magnitude>(simd);
    return nullptr;
}

}  // namespace

Nearness::Nearness(Metric metric, const Vectors& rows, Simd simd)
    : from_(metric, rows, rows, simd),
      rows_(rows),
      metric_(metric),
      sum_(sum_of(metric, rows.type, simd)) {
    const double d = static_cast<double>(rows.dimensions), u = 0x1p-24;
    error_ = (d + 8) * u / (1 - (d + 8) * u);
    underflow_ = 4 * d * 0x1p-126;
    if (!(error_ < 0.25)) sum_ = nullptr;
}

const float* Nearness::floats(std::uint32_t row, std::vector<float>& scratch) const {
    if (rows_.type == ElementType::float32)
        return reinterpret_cast<const float*>(rows_.row_bytes(row));
    constexpr std::size_t width = 8;
    const auto* const halves = reinterpret_cast<const Half*>(rows_.row_bytes(row));
    scratch.resize(rows_.dimensions);
    std::size_t i = 0;
    for (; i + width <= rows_.dimensions; i += width) {
        Vector<double, width> loaded;
        load_halves<width>(halves + i, loaded);
        for (std::size_t lane = 0; lane < width; ++lane)
            scratch[i + lane] = static_cast<float>(loaded[lane]);
    }
    for (; i < rows_.dimensions; ++i) {
        double value;
        copy_elements(rows_, rows_.begin(row) + i, 1, &value);
        scratch[i] = static_cast<float>(value);
    }
    return scratch.data();
}

void Nearness::set(std::uint32_t row) {
    row_ = row;
    exact_is_set_ = false;
    if (sum_ != nullptr) row_floats_ = floats(row, row_scratch_);
}

SideOfLimit Nearness::side_of(double distance, std::uint32_t other) {
    if (sum_ == nullptr) return SideOfLimit::unknown;
    const double sum =
        static_cast<double>(sum_(row_floats_, floats(other, other_scratch_), rows_.dimensions));
    const double limit = metric_ == Metric::euclidean ? distance * distance : distance;
    if (sum > limit * (1 + 2 * error_) + underflow_ && std::isfinite(sum))
        return SideOfLimit::above;
    return sum < limit * (1 - 2 * error_) - underflow_ ? SideOfLimit::below : SideOfLimit::unknown;
}

double Nearness::exact(std::uint32_t other) {
    if (!exact_is_set_) from_.set_query(row_);
    exact_is_set_ = true;
    return from_(other);
}

bool Nearness::at_most(double distance, std::uint32_t other) {
    const SideOfLimit side = side_of(distance, other);
    return side == SideOfLimit::unknown ? exact(other) <= distance : side == SideOfLimit::below;
}

double Nearness::within(double distance, std::uint32_t other) {
    const bool is_above = distance < std::numeric_limits<double>::infinity() &&
                          side_of(distance, other) == SideOfLimit::above;
    return is_above ? std::numeric_limits<double>::infinity() : exact(other);
}

void Nearness::prefetch(std::uint32_t row) const {
    gputext::prefetch(rows_.row_bytes(row), rows_.dimensions * element_size(rows_.type));
}

}  // namespace gputext
