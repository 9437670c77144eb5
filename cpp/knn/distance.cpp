#include "cpp/knn/distance.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "cpp/base/lanes.hpp"
#include "cpp/base/radix_sort.hpp"
#include "cpp/base/stoppable.hpp"

namespace gputext {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

enum class Term { square, product, magnitude, product_and_square };

Term term_of(Metric metric) {
    switch (metric) {
        case Metric::euclidean:
            return Term::square;
        case Metric::manhattan:
            return Term::magnitude;
        case Metric::inner_product:
            return Term::product;
        default:
            return Term::product_and_square;
    }
}

template <std::size_t W>
[[gnu::always_inline]] inline void clear_sign(Vector<double, W>& values) {
    Vector<std::int64_t, W> bits;
    std::memcpy(&bits, &values, sizeof bits);
    bits &= INT64_MAX;
    std::memcpy(&values, &bits, sizeof bits);
}

template <Term term, std::size_t W>
[[gnu::always_inline]] inline void add_terms(const double* query,
                                             const Vector<double, W> (&row)[kLanes / W],
                                             Vector<double, W> (&terms)[kLanes / W],
                                             Vector<double, W> (&squares)[kLanes / W]) {
    for (std::size_t v = 0; v < kLanes / W; ++v) {
        Vector<double, W> a;
        std::memcpy(&a, query + v * W, sizeof a);
        const Vector<double, W>& b = row[v];
        if constexpr (term == Term::square) {
            const Vector<double, W> difference = a - b;
            terms[v] += difference * difference;
        } else if constexpr (term == Term::magnitude) {
            Vector<double, W> difference = a - b;
            clear_sign<W>(difference);
            terms[v] += difference;
        } else {
            terms[v] += a * b;
            if constexpr (term == Term::product_and_square) squares[v] += b * b;
        }
    }
}

/// `query` is padded with zeros to a multiple of sixteen.
template <Term term, std::size_t W, class T>
[[gnu::always_inline]] inline Distances::Sums dense_sums_here(const double* query,
                                                              const std::byte* bytes,
                                                              std::size_t dimensions,
                                                              bool readable_behind) {
    const T* row = reinterpret_cast<const T*>(bytes);
    Vector<double, W> terms[kLanes / W] = {}, squares[kLanes / W] = {}, loaded[kLanes / W];
    std::size_t i = 0;
    for (; i + kLanes <= dimensions; i += kLanes) {
        for (std::size_t v = 0; v < kLanes / W; ++v) load_doubles<W>(row + i + v * W, loaded[v]);
        add_terms<term, W>(query + i, loaded, terms, squares);
    }
    if (i < dimensions) {
        T rest[kLanes] = {};
        const T* from = row + i;
        if (!readable_behind) {
            std::copy(row + i, row + dimensions, rest);
            from = rest;
        }
        for (std::size_t v = 0; v < kLanes / W; ++v) load_doubles<W>(from + v * W, loaded[v]);
        clear_beyond<W>(dimensions - i, loaded);
        add_terms<term, W>(query + i, loaded, terms, squares);
    }
    return {sum_of_lanes<W>(terms),
            term == Term::product_and_square ? sum_of_lanes<W>(squares) : 0.0};
}

// The loop above, compiled for each instruction set.

template <Term term, class T>
[[gnu::optimize("O3")]] Distances::Sums dense_sums(const double* query, const std::byte* row,
                                                   std::size_t dimensions, bool readable_behind) {
    return dense_sums_here<term, 2, T>(query, row, dimensions, readable_behind);
}

#ifdef GPUTEXT_X86
template <Term term, class T>
[[gnu::optimize("O3")]] GPUTEXT_TARGET_AVX2 Distances::Sums dense_sums_avx2(const double* query,
                                                                            const std::byte* row,
                                                                            std::size_t dimensions,
                                                                            bool readable_behind) {
    return dense_sums_here<term, 4, T>(query, row, dimensions, readable_behind);
}

template <Term term, class T>
[[gnu::optimize("O3"),
  gnu::target("prefer-vector-width=512")]] GPUTEXT_TARGET_AVX512 Distances::Sums
dense_sums_avx512(const double* query, const std::byte* row, std::size_t dimensions,
                  bool readable_behind) {
    return dense_sums_here<term, 8, T>(query, row, dimensions, readable_behind);
}
#endif

template <Term term, class T>
Distances::DenseSums dense_sums_for(Simd simd) {
#ifdef GPUTEXT_X86
    if (simd >= Simd::avx512) return dense_sums_avx512<term, T>;
    if (simd == Simd::avx2) return dense_sums_avx2<term, T>;
#endif
    (void)simd;
    return dense_sums<term, T>;
}

template <Term term>
Distances::DenseSums dense_sums_for(ElementType type, Simd simd) {
    switch (type) {
        case ElementType::float16:
            return dense_sums_for<term, Half>(simd);
        case ElementType::float32:
            return dense_sums_for<term, float>(simd);
        case ElementType::float64:
            return dense_sums_for<term, double>(simd);
        default:
            return dense_sums_for<term, std::int32_t>(simd);
    }
}

Distances::DenseSums dense_sums_for(Metric metric, ElementType type, Simd simd) {
    switch (term_of(metric)) {
        case Term::square:
            return dense_sums_for<Term::square>(type, simd);
        case Term::magnitude:
            return dense_sums_for<Term::magnitude>(type, simd);
        case Term::product:
            return dense_sums_for<Term::product>(type, simd);
        default:
            return dense_sums_for<Term::product_and_square>(type, simd);
    }
}

/// The definition's sum, a term at a time.
class Sum {
public:
    void add(std::size_t i, double term) { partial_[i % kLanes] += term; }
    double operator()() const {
        auto sums = partial_;
        for (std::size_t half = kLanes / 2; half > 0; half /= 2)
            for (std::size_t j = 0; j < half; ++j) sums[j] += sums[j + half];
        return sums[0];
    }

private:
    std::array<double, kLanes> partial_ = {};
};

double square_of(std::span<const double> row) {
    Sum sum;
    for (std::size_t i = 0; i < row.size(); ++i) sum.add(i, row[i] * row[i]);
    return sum();
}

/// Scales a row as metric cosine does, and returns its square.
double scaled_square(std::span<double> row) {
    const double square = square_of(row);
    if (square >= 0x1p-300 && square <= 0x1p300) return square;
    double largest = 0;
    for (const double element : row) largest = std::max(largest, std::fabs(element));
    if (largest == 0) return 0;
    const int exponent = std::ilogb(largest);
    for (double& element : row) element = std::scalbn(element, -exponent);
    return square_of(row);
}

double similarity_of(double products, double query_square, double item_square) {
    if (query_square == 0 || item_square == 0) return kNone;
    return std::clamp(products / std::sqrt(query_square * item_square), -1.0, 1.0);
}

}  // namespace

Distances::Distances(Metric metric, const Vectors& queries, const Vectors& items, Simd simd)
    : metric_(metric),
      queries_(queries),
      items_(items),
      wide_(queries.type == ElementType::float64 || items.type == ElementType::float64),
      query_((queries.dimensions + kLanes - 1) / kLanes * kLanes) {
    if (!items.sparse()) dense_sums_ = dense_sums_for(metric, items.type, simd);
}

void Distances::set_query(std::size_t row) {
    const std::size_t count = queries_.stored(row);
    if (!queries_.sparse()) {
        copy_elements(queries_, queries_.begin(row), count, query_.data());
        if (metric_ == Metric::cosine)
            query_square_ = scaled_square(std::span(query_).first(count));
        query_row_ = row;
        return;
    }
    const auto columns_of = [this](std::size_t of) {
        return queries_.columns.subspan(queries_.begin(of), queries_.stored(of));
    };
    for (const std::uint32_t column : columns_of(query_row_)) query_[column] = 0;
    query_row_ = row;
    const auto columns = columns_of(row);
    const auto* elements = reinterpret_cast<const float*>(queries_.row_bytes(row));
    Sum square;
    query_sum_ = 0;
    for (std::size_t i = 0; i < count; ++i) {
        const double element = elements[i];
        query_[columns[i]] = element;
        square.add(columns[i], element * element);
        query_sum_ += std::fabs(element);
    }
    query_square_ = square();
}

Distances::Sums Distances::dense_sums(std::size_t item) const {
    // Up to fifteen elements behind a row are read and ignored, unless the matrix ends there.
    const bool readable_behind = (items_.rows - 1 - item) * items_.dimensions >= kLanes;
    return dense_sums_(query_.data(), items_.row_bytes(item), items_.dimensions, readable_behind);
}

/// Sums products and the item's square over the item's stored columns; all other terms are zero.
Distances::Sums Distances::sparse_sums(std::size_t item) const {
    const std::size_t begin = items_.begin(item), count = items_.stored(item);
    const auto* elements = static_cast<const float*>(items_.elements) + begin;
    const std::uint32_t* columns = items_.columns.data() + begin;
    Sum products, squares;
    for (std::size_t i = 0; i < count; ++i) {
        const double element = elements[i];
        products.add(columns[i], query_[columns[i]] * element);
        squares.add(columns[i], element * element);
    }
    return {products(), squares()};
}

/// The sum of euclidean's or manhattan's terms over the columns of either row.
double Distances::sparse_merged(std::size_t item) const {
    const auto columns_of = [](const Vectors& vectors, std::size_t row) {
        return vectors.columns.subspan(vectors.begin(row), vectors.stored(row));
    };
    const auto a = columns_of(queries_, query_row_), b = columns_of(items_, item);
    const auto* elements = reinterpret_cast<const float*>(items_.row_bytes(item));
    Sum sum;
    const auto add = [&](std::uint32_t column, double other) {
        const double difference = query_[column] - other;
        sum.add(column,
                metric_ == Metric::euclidean ? difference * difference : std::fabs(difference));
    };
    std::size_t i = 0, j = 0;
    while (i < a.size() || j < b.size()) {
        if (j == b.size() || (i < a.size() && a[i] < b[j])) {
            add(a[i++], 0);
        } else {
            i += i < a.size() && a[i] == b[j];
            add(b[j], elements[j]);
            ++j;
        }
    }
    return sum();
}

double Distances::cosine_of(const Sums& sums, std::size_t item) const {
    if (!wide_ || (sums.square >= 0x1p-300 && sums.square <= 0x1p300))
        return similarity_of(sums.terms, query_square_, sums.square);
    std::vector<double> row(items_.dimensions);
    copy_elements(items_, items_.begin(item), row.size(), row.data());
    const double square = scaled_square(row);
    Sum products;
    for (std::size_t i = 0; i < row.size(); ++i) products.add(i, query_[i] * row[i]);
    return similarity_of(products(), query_square_, square);
}

/// The distance where the definition takes powers of two to help.
double Distances::second_look(double sum, std::size_t item) const {
    std::vector<double> row(items_.dimensions);
    copy_elements(items_, items_.begin(item), row.size(), row.data());
    Sum again;
    if (metric_ == Metric::inner_product) {
        for (std::size_t i = 0; i < row.size(); ++i)
            again.add(i, (query_[i] * 0x1p-600) * (row[i] * 0x1p-600));
        return 0 - again() * 0x1p600 * 0x1p600;
    }
    const bool large = sum > 1;
    for (std::size_t i = 0; i < row.size(); ++i) {
        const double difference =
            large ? query_[i] * 0x1p-600 - row[i] * 0x1p-600 : (query_[i] - row[i]) * 0x1p600;
        again.add(i, difference * difference);
    }
    return std::sqrt(again()) * (large ? 0x1p600 : 0x1p-600);
}

double Distances::of_sums(const Sums& sums, std::size_t item) const {
    switch (metric_) {
        case Metric::euclidean:
            if (wide_ && !(sums.terms >= 0x1p-900 && sums.terms <= 0x1p1000))
                return second_look(sums.terms, item);
            return std::sqrt(sums.terms);
        case Metric::manhattan:
            return sums.terms;
        case Metric::inner_product:
            if (wide_ && !std::isfinite(sums.terms)) return second_look(sums.terms, item);
            return 0 - sums.terms;
        default:
            return 1 - cosine_of(sums, item);
    }
}

double Distances::operator()(std::size_t item) const {
    if (!items_.sparse()) return of_sums(dense_sums(item), item);
    if (metric_ == Metric::euclidean || metric_ == Metric::manhattan)
        return of_sums({sparse_merged(item), 0}, item);
    return of_sums(sparse_sums(item), item);
}

double Distances::unless_beyond(double limit, std::size_t item) const {
    if (!items_.sparse() || !(limit < kInfinity)) return (*this)(item);
    // Sums of nonnegative terms err by less than 2^-52 of themselves a term, at any order.
    const double terms =
        static_cast<double>(items_.stored(item) + queries_.stored(query_row_) + 32);
    const double error = terms * 0x1p-50;
    if (metric_ == Metric::euclidean) {
        const Sums sums = sparse_sums(item);
        const double squares = query_square_ + sums.square;
        if (squares - 2 * sums.terms - error * squares > limit * limit * (1 + error))
            return kInfinity;
    } else if (metric_ == Metric::manhattan) {
        const std::size_t begin = items_.begin(item), count = items_.stored(item);
        const auto* elements = static_cast<const float*>(items_.elements) + begin;
        double sum = query_sum_, size = query_sum_;
        for (std::size_t i = 0; i < count; ++i) {
            const double element = elements[i], other = query_[items_.columns[begin + i]];
            sum += std::fabs(other - element) - std::fabs(other);
            size += std::fabs(element);
        }
        if (sum - error * size > limit * (1 + error)) return kInfinity;
    }
    return (*this)(item);
}

double Distances::similarity(std::size_t item) const {
    return cosine_of(items_.sparse() ? sparse_sums(item) : dense_sums(item), item);
}

double distance(Metric metric, const Vectors& a, const Vectors& b) {
    Distances distances(metric, a, b, best_simd());
    distances.set_query(0);
    return distances(0);
}

Status FewerColumns::set(const Vectors& queries, const Vectors& items, Stop stop) {
    queries_ = queries;
    items_ = items;
    if (!items.sparse() || items.dimensions <= few_dimensions) return {};
    std::vector<std::uint64_t> used(queries.columns.begin(), queries.columns.end());
    used.insert(used.end(), items.columns.begin(), items.columns.end());
    if (!radix_sort(used, stop)) return Status::cancelled();
    used.erase(std::unique(used.begin(), used.end()), used.end());

    std::unordered_map<std::uint64_t, std::uint32_t> new_number;
    new_number.reserve(used.size());
    std::uint64_t next = 0;  // the least number that is free
    for (std::size_t i = 0; i < used.size(); ++i) {
        if (i % (kLookEvery / 64) == 0 && stop()) return Status::cancelled();
        next += (used[i] - next) % kLanes;
        new_number.emplace(used[i], static_cast<std::uint32_t>(next++));
    }
    const auto renumber = [&](const Vectors& from, std::vector<std::uint32_t>& columns,
                              Vectors& to) {
        columns.resize(from.columns.size());
        for (std::size_t i = 0; i < columns.size(); ++i) {
            if (i % (kLookEvery / 64) == 0 && stop()) return false;
            columns[i] = new_number.find(from.columns[i])->second;
        }
        to = from;
        to.columns = columns;
        to.dimensions = next;
        return true;
    };
    if (!renumber(queries, query_columns_, queries_) || !renumber(items, item_columns_, items_))
        return Status::cancelled();
    return {};
}

}  // namespace gputext
