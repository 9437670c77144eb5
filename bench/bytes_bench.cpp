// bench/bytes_bench.cpp - how many rows codes of 8 bits leave to be compared exactly, on the CPU
//
// Arguments: those of bench/byte_queries.hpp. The k nearest rows by Euclidean distance: the codes
// of all rows give bounds (bench/byte_codes.hpp), and rows whose lower bound is not above the k-th
// smallest upper one are ranked by their distances. All distances are computed, too: the answer has
// to be that of all rows, and each distance within its bounds. gpu_bytes_bench.cu does the same on
// a GPU.

#include <algorithm>
#include <cstdio>
#include <utility>
#include <vector>

#include "bench/byte_queries.hpp"
#include "cpp/knn/distance.hpp"

using namespace gputext;

namespace {

using Ranked = std::pair<double, std::uint32_t>;

struct Products {
    std::int32_t high = 0, low = 0;
};

Products multiply(const bench::QueryBytes& query, const std::int8_t* codes,
                  std::uint32_t dimensions) {
    Products products;
    for (std::uint32_t i = 0; i < dimensions; ++i) {
        products.high += query.high[i] * codes[i];
        products.low += query.low[i] * codes[i];
    }
    return products;
}

std::vector<Ranked> nearest(std::vector<Ranked> rows, std::size_t k) {
    std::partial_sort(rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(k), rows.end());
    rows.resize(k);
    return rows;
}

}  // namespace

int main(int count, char** arguments) {
    bench::ByteInputs inputs(count, arguments);
    const std::uint32_t dimensions = inputs.made.dimensions;
    if (inputs.items.empty()) {
        inputs.items.resize(inputs.rows * dimensions);
        const std::vector<float> matrix = inputs.hidden_matrix();
        for (std::size_t row = 0; row < inputs.rows; ++row)
            inputs.make(row, matrix, inputs.items.data() + row * dimensions);
    }

    std::vector<std::int8_t> codes(inputs.items.size());
    std::vector<bench::CodedRow> rows(inputs.rows);
    double errors = 0;
    for (std::size_t row = 0; row < inputs.rows; ++row) {
        const float* const numbers = inputs.items.data() + row * dimensions;
        float largest = 0;
        double square = 0;
        for (std::uint32_t i = 0; i < dimensions; ++i) {
            largest = std::max(largest, std::fabs(numbers[i]));
            square += static_cast<double>(numbers[i]) * static_cast<double>(numbers[i]);
        }
        const float scale = bench::code_scale(largest, bench::kMostOfByte);
        bench::CodeSums sums;
        for (std::uint32_t i = 0; i < dimensions; ++i) {
            const int code = bench::code_of(numbers[i], scale, bench::kMostOfByte);
            sums.add(numbers[i], code, scale);
            codes[row * dimensions + i] = static_cast<std::int8_t>(code);
        }
        rows[row] = bench::coded_row(scale, sums, dimensions);
        if (square > 0) errors += static_cast<double>(rows[row].error) / std::sqrt(square);
    }

    const Vectors items{ElementType::float32, inputs.rows, dimensions, inputs.items.data(), {}, {}};
    const Vectors asked{
        ElementType::float32, inputs.queries, dimensions, inputs.asked.data(), {}, {}};
    Distances distances(Metric::euclidean, asked, items, best_simd());
    constexpr std::size_t kinds = 2;
    const std::size_t ks[kinds] = {10, 100};
    std::size_t ranked[kinds] = {}, most[kinds] = {}, differ[kinds] = {}, outside = 0;
    std::vector<bench::Bounds> bounds(inputs.rows);
    std::vector<Ranked> all(inputs.rows);
    for (std::size_t query = 0; query < inputs.queries; ++query) {
        const bench::QueryBytes bytes(inputs.asked.data() + query * dimensions, dimensions);
        distances.set_query(query);
        for (std::size_t row = 0; row < inputs.rows; ++row) {
            const Products products = multiply(bytes, codes.data() + row * dimensions, dimensions);
            const bench::CodeDistance distance(bytes.coded, rows[row], products.high, products.low);
            bounds[row] = distance.bounds();
            all[row] = {distances(row), static_cast<std::uint32_t>(row)};
            outside += all[row].first < static_cast<double>(bounds[row].lower) ||
                       all[row].first > static_cast<double>(bounds[row].upper) ||
                       !distance.may_be_within(bench::float_above(all[row].first));
        }
        for (std::size_t kind = 0; kind < kinds; ++kind) {
            const std::size_t k = std::min(ks[kind], inputs.rows);
            std::vector<float> uppers(inputs.rows);
            for (std::size_t row = 0; row < inputs.rows; ++row) uppers[row] = bounds[row].upper;
            const auto kth = uppers.begin() + static_cast<std::ptrdiff_t>(k - 1);
            std::nth_element(uppers.begin(), kth, uppers.end());
            std::vector<Ranked> kept;
            for (std::size_t row = 0; row < inputs.rows; ++row)
                if (bounds[row].lower <= *kth) kept.push_back(all[row]);
            ranked[kind] += kept.size();
            most[kind] = std::max(most[kind], kept.size());
            differ[kind] += nearest(std::move(kept), k) != nearest(all, k);
        }
    }

    std::printf(
        "%s, %zu rows, %zu queries, d = %u: |x - c| is %.5f of |x| on average; %zu of %zu "
        "distances are outside their bounds\n",
        arguments[1], inputs.rows, inputs.queries, dimensions,
        errors / static_cast<double>(inputs.rows), outside, inputs.rows * inputs.queries);
    for (std::size_t kind = 0; kind < kinds; ++kind)
        std::printf(
            "    k = %zu: rows ranked by their distances: %.1f on average, %zu at most, %.4f %% of "
            "all; %zu answers differ\n",
            ks[kind], static_cast<double>(ranked[kind]) / static_cast<double>(inputs.queries),
            most[kind],
            100.0 * static_cast<double>(ranked[kind]) /
                static_cast<double>(inputs.queries * inputs.rows),
            differ[kind]);
    return outside == 0 && differ[0] == 0 && differ[1] == 0 ? 0 : 1;
}
