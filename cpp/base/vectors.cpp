#include "cpp/base/vectors.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "cpp/base/lanes.hpp"
#include "cpp/base/simd.hpp"
#include "cpp/base/stoppable.hpp"

namespace gputext {
namespace {

constexpr std::size_t kMostRows = UINT32_MAX - 1;

template <class T>
[[gnu::always_inline]] inline void copy_here(const T* from, std::size_t count, double* out) {
    constexpr std::size_t width = 8;
    std::size_t i = 0;
    for (; i + width <= count; i += width) {
        Vector<double, width> values;
        load_doubles<width>(from + i, values);
        std::memcpy(out + i, &values, sizeof values);
    }
    for (; i < count; ++i) {
        Vector<double, 1> value;
        load_doubles<1>(from + i, value);
        out[i] = value[0];
    }
}

/// An element's bits without the sign: among numbers of one type they order as magnitudes do, with
/// infinity and NaN above all.
[[gnu::always_inline]] inline std::uint16_t magnitude_bits(Half element) {
    return static_cast<std::uint16_t>(element.bits & 0x7fff);
}
[[gnu::always_inline]] inline std::uint32_t magnitude_bits(float element) {
    return std::bit_cast<std::uint32_t>(element) & 0x7fffffff;
}
[[gnu::always_inline]] inline std::uint64_t magnitude_bits(double element) {
    return std::bit_cast<std::uint64_t>(element) & 0x7fffffffffffffff;
}
[[gnu::always_inline]] inline std::uint32_t magnitude_bits(std::int32_t element) {
    const auto bits = static_cast<std::uint32_t>(element);
    return element < 0 ? 0u - bits : bits;
}

double magnitude_of(Half, std::uint16_t bits) {
    if (bits >= 0x7c00) return std::numeric_limits<double>::infinity();
    const Half half{bits};
    Vector<double, 1> value;
    load_doubles<1>(&half, value);
    return value[0];
}
double magnitude_of(float, std::uint32_t bits) {
    return std::bit_cast<float>(bits);
}
double magnitude_of(double, std::uint64_t bits) {
    return std::bit_cast<double>(bits);
}
double magnitude_of(std::int32_t, std::uint32_t bits) {
    return bits;
}

/// Infinity or NaN when there is such an element.
template <class T>
[[gnu::always_inline]] inline double largest_here(const T* from, std::size_t count) {
    decltype(magnitude_bits(T{})) most = 0;
    for (std::size_t i = 0; i < count; ++i) {
        const auto bits = magnitude_bits(from[i]);
        most = bits > most ? bits : most;
    }
    return magnitude_of(T{}, most);
}

// The loops above, compiled for each instruction set.

template <class T>
[[gnu::optimize("O3")]] void copy(const T* from, std::size_t count, double* out) {
    copy_here(from, count, out);
}
template <class T>
[[gnu::optimize("O3")]] double largest(const T* from, std::size_t count) {
    return largest_here(from, count);
}

#ifdef GPUTEXT_X86
template <class T>
[[gnu::optimize("O3")]] GPUTEXT_TARGET_AVX2 void copy_avx2(const T* from, std::size_t count,
                                                           double* out) {
    copy_here(from, count, out);
}
template <class T>
[[gnu::optimize("O3")]] GPUTEXT_TARGET_AVX2 double largest_avx2(const T* from, std::size_t count) {
    return largest_here(from, count);
}
#endif

/// Calls `of` with the matrix's elements as a pointer to their type.
template <class Function>
auto with_elements(const Vectors& vectors, Function&& of) {
    switch (vectors.type) {
        case ElementType::float16:
            return of(static_cast<const Half*>(vectors.elements));
        case ElementType::float32:
            return of(static_cast<const float*>(vectors.elements));
        case ElementType::float64:
            return of(static_cast<const double*>(vectors.elements));
        default:
            return of(static_cast<const std::int32_t*>(vectors.elements));
    }
}

bool columns_in_order(const Vectors& vectors, std::size_t row) {
    const auto columns = vectors.columns.subspan(vectors.begin(row), vectors.stored(row));
    const auto not_ascending = [](std::uint32_t a, std::uint32_t b) { return a >= b; };
    return std::adjacent_find(columns.begin(), columns.end(), not_ascending) == columns.end() &&
           (columns.empty() || columns.back() < vectors.dimensions);
}

Status bad_row(const char* row_name, std::size_t row, const char* what) {
    return {ErrorCode::invalid_argument, std::string(row_name) + " " + std::to_string(row) + what};
}

/// Checks what must hold before any row is read.
Status check_shape(const Vectors& vectors, const char* row_name) {
    if (vectors.rows > kMostRows)
        return {ErrorCode::invalid_argument, "too many rows, at most 4294967294 can be compared"};
    if (!vectors.sparse()) return {};
    if (vectors.type != ElementType::float32 && vectors.type != ElementType::int32)
        return {ErrorCode::invalid_argument,
                "sparse vectors have elements of type float32 or int32"};
    const auto begins = vectors.row_begins;
    if (begins.size() != vectors.rows + 1 || begins.back() > vectors.columns.size())
        return {ErrorCode::invalid_argument, "rows of sparse vectors out of bounds"};
    for (std::size_t row = 0; row < vectors.rows; ++row)
        if (begins[row] > begins[row + 1])
            return bad_row(row_name, row, " of sparse vectors has no begin");
    return {};
}

}  // namespace

std::size_t element_size(ElementType type) {
    switch (type) {
        case ElementType::float16:
            return 2;
        case ElementType::float64:
            return 8;
        default:
            return 4;
    }
}

std::size_t row_size(ElementType type, std::size_t dimensions) {
    return type == ElementType::bit ? (dimensions + 31) / 32 * sizeof(std::uint32_t)
                                    : dimensions * element_size(type);
}

void copy_elements(const Vectors& vectors, std::size_t begin, std::size_t count, double* out) {
    with_elements(vectors, [=](const auto* from) {
#ifdef GPUTEXT_X86
        if (best_simd() != Simd::portable) return copy_avx2(from + begin, count, out);
#endif
        copy(from + begin, count, out);
    });
}

double largest_element(const Vectors& vectors, std::size_t row) {
    const std::size_t begin = vectors.begin(row), count = vectors.stored(row);
    return with_elements(vectors, [=](const auto* from) {
#ifdef GPUTEXT_X86
        if (best_simd() != Simd::portable) return largest_avx2(from + begin, count);
#endif
        return largest(from + begin, count);
    });
}

bool zero_row(const Vectors& vectors, std::size_t row) {
    return largest_element(vectors, row) == 0;
}

Status check_comparable(const Vectors& queries, const Vectors& items) {
    if (queries.dimensions != items.dimensions)
        return {ErrorCode::invalid_argument, "queries have " + std::to_string(queries.dimensions) +
                                                 " dimensions, and items " +
                                                 std::to_string(items.dimensions)};
    if (queries.sparse() != items.sparse())
        return {ErrorCode::invalid_argument, "sparse vectors cannot be compared with dense ones"};
    for (const Vectors* vectors : {&queries, &items})
        if (vectors->sparse() && vectors->type != ElementType::float32)
            return {ErrorCode::invalid_argument, "sparse vectors have elements of type float32"};
    return {};
}

/// Whether the rows are those that something is known of, or some of them.
bool KnownElements::are_among_those(const Vectors& vectors) const {
    if (vectors_.type != vectors.type || vectors_.dimensions != vectors.dimensions ||
        vectors.sparse() || vectors.rows > vectors_.rows)
        return false;
    if (vectors.elements == vectors_.elements) return true;
    const std::uint64_t row = row_size(vectors.type, vectors.dimensions);
    const auto begin = reinterpret_cast<std::uintptr_t>(vectors_.elements);
    const auto at = reinterpret_cast<std::uintptr_t>(vectors.elements);
    return row > 0 && at > begin && (at - begin) % row == 0 &&
           (at - begin) / row <= vectors_.rows - vectors.rows;
}

std::optional<double> KnownElements::largest(const Vectors& vectors) const {
    const std::lock_guard lock(mutex_);
    return are_among_those(vectors) ? largest_ : std::nullopt;
}

void KnownElements::set_largest(const Vectors& vectors, double largest) {
    if (vectors.sparse()) return;
    const std::lock_guard lock(mutex_);
    vectors_ = vectors;
    largest_ = bound_ = largest;
}

std::optional<double> KnownElements::bound(const Vectors& vectors) const {
    const std::lock_guard lock(mutex_);
    return are_among_those(vectors) ? bound_ : std::nullopt;
}

void KnownElements::set_bound(const Vectors& vectors, double bound) {
    const std::lock_guard lock(mutex_);
    vectors_ = vectors;
    largest_.reset();
    bound_ = bound;
}

Status await_elements(const Vectors& vectors, Stop stop) {
    const Filling* const filling = vectors.known == nullptr ? nullptr : vectors.known->filling();
    return filling == nullptr ? Status() : filling->wait(stop);
}

Result<double> magnitude_bound(const Vectors& vectors, const char* row_name, Execution& execution) {
    if (vectors.known != nullptr)
        if (const auto bound = vectors.known->bound(vectors)) return *bound;
    return largest_magnitude(vectors, row_name, execution);
}

Result<double> largest_magnitude(const Vectors& vectors, const char* row_name,
                                 Execution& execution) {
    GPUTEXT_TRY(check_shape(vectors, row_name));
    if (vectors.rows == 0) return 0.0;
    if (vectors.known != nullptr)
        if (const auto known = vectors.known->largest(vectors)) return *known;
    GPUTEXT_TRY(await_elements(vectors, execution.stop()));
    const std::size_t step =
        std::max<std::size_t>(1, (kLookEvery / 8) / (vectors.average_stored() + 1));
    const std::size_t tasks = (vectors.rows + step - 1) / step;
    std::vector<double> largest(execution.threads(), 0.0);
    std::atomic<std::size_t> first_bad{vectors.rows};
    execution.begin_phase("checking vectors", tasks);
    Status status = execution.parallel_for(tasks, [&](std::size_t task, unsigned worker) {
        const std::size_t end = std::min(vectors.rows, (task + 1) * step);
        for (std::size_t row = task * step; row < end; ++row) {
            const double magnitude = largest_element(vectors, row);
            if (std::isfinite(magnitude) && (!vectors.sparse() || columns_in_order(vectors, row))) {
                largest[worker] = std::max(largest[worker], magnitude);
                continue;
            }
            std::size_t known = first_bad;
            while (row < known && !first_bad.compare_exchange_weak(known, row)) {
            }
            break;
        }
        return Status();
    });
    if (!status.ok()) return status;
    const std::size_t row = first_bad;
    if (row == vectors.rows) {
        const double found = *std::max_element(largest.begin(), largest.end());
        if (vectors.known != nullptr) vectors.known->set_largest(vectors, found);
        return found;
    }
    if (!std::isfinite(largest_element(vectors, row)))
        return bad_row(row_name, row, " has an element that is not a finite number");
    return bad_row(row_name, row, " has columns out of order or beyond its dimensions");
}

}  // namespace gputext
