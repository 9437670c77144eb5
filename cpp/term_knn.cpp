#include "cpp/term_knn.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "cpp/nearest_lists.hpp"

namespace gputext {
namespace {

/// A sum as cpp/distance.hpp defines it.
class ColumnSum {
public:
    void add(std::uint32_t column, double term) { sums_[column % 16] += term; }
    double total() const {
        std::array<double, 16> s = sums_;
        for (int width = 8; width > 0; width /= 2)
            for (int j = 0; j < width; ++j) s[j] += s[j + width];
        return s[0];
    }

private:
    std::array<double, 16> sums_{};
};

/// The weights that are not 0 of a matrix' rows.
class WeightedRows {
public:
    WeightedRows(const Vectors& vectors, std::span<const double> factors) {
        begins_.push_back(0);
        for (std::size_t row = 0; row < vectors.rows; ++row) {
            const std::size_t begin = vectors.begin(row);
            ColumnSum square;
            for (std::size_t i = begin; i < begin + vectors.stored(row); ++i) {
                double element;
                copy_elements(vectors, i, 1, &element);
                const std::uint32_t column = vectors.columns[i];
                const double weight = element * factors[column];
                if (weight == 0) continue;
                columns_.push_back(column);
                weights_.push_back(weight);
                square.add(column, weight * weight);
            }
            begins_.push_back(columns_.size());
            squares_.push_back(square.total());
        }
    }

    /// NaN for rows that share no term.
    static double distance(const WeightedRows& a, std::size_t row_a, const WeightedRows& b,
                           std::size_t row_b) {
        ColumnSum products;
        bool shared = false;
        std::size_t i = a.begins_[row_a], j = b.begins_[row_b];
        while (i < a.begins_[row_a + 1] && j < b.begins_[row_b + 1]) {
            if (a.columns_[i] < b.columns_[j]) {
                ++i;
            } else if (b.columns_[j] < a.columns_[i]) {
                ++j;
            } else {
                products.add(a.columns_[i], a.weights_[i] * b.weights_[j]);
                shared = true;
                ++i, ++j;
            }
        }
        if (!shared) return std::nan("");
        const double cosine = products.total() / std::sqrt(a.squares_[row_a] * b.squares_[row_b]);
        return 1 - std::clamp(cosine, -1.0, 1.0);
    }

private:
    std::vector<std::size_t> begins_;
    std::vector<std::uint32_t> columns_;
    std::vector<double> weights_, squares_;
};

}  // namespace

Status check_term_search(const TermKnnParameters& parameters, std::span<const double> factors,
                         const Vectors& queries, const Vectors& items, const RowKeys& keys) {
    KnnParameters plain;
    plain.k = parameters.k;
    plain.radius = parameters.radius;
    if (Status status = check_options(plain, queries, items, keys); !status.ok()) return status;
    const auto invalid = [](std::string message) {
        return Status(ErrorCode::invalid_argument, std::move(message));
    };
    for (const Vectors* rows : {&queries, &items}) {
        if (rows->rows == 0) continue;
        if (!rows->sparse()) return invalid("texts must be sparse vectors");
        if (rows->type != ElementType::float32 && rows->type != ElementType::int32)
            return invalid("the elements of texts must be float or int");
        if (rows->dimensions != factors.size())
            return invalid("there must be a factor for each term");
    }
    return {};
}

Result<Neighbours> term_neighbours(const TermKnnParameters& parameters,
                                   std::span<const double> factors, const Vectors& queries,
                                   const Vectors& items, const RowKeys& keys,
                                   Execution& execution) {
    if (Status status = check_term_search(parameters, factors, queries, items, keys); !status.ok())
        return status;
    if (auto largest = largest_magnitude(queries, "query", execution); !largest.ok())
        return largest.status();
    if (auto largest = largest_magnitude(items, "item", execution); !largest.ok())
        return largest.status();
    Neighbours answer;
    answer.begins.assign(queries.rows + 1, 0);
    if (queries.rows == 0 || items.rows == 0) return answer;
    const WeightedRows query_rows(queries, factors), item_rows(items, factors);
    NearestLists nearest(queries.rows, parameters.k, parameters.radius, false);
    execution.begin_phase("finding neighbours", queries.rows);
    Status status = execution.parallel_for(queries.rows, [&](std::size_t query, unsigned) {
        std::vector<Candidate> candidates;
        for (std::uint32_t item = 0; item < items.rows; ++item) {
            if (!keys.differ(query, item)) continue;
            const double distance = WeightedRows::distance(query_rows, query, item_rows, item);
            if (distance <= parameters.radius) candidates.push_back({distance, item, item});
        }
        return nearest.add(query, candidates, execution.stop());
    });
    for (std::size_t query = 0; query < queries.rows && status.ok(); ++query) {
        std::vector<Candidate> list;
        status = nearest.take(query, list, execution.stop());
        for (const Candidate& candidate : list) {
            answer.items.push_back(candidate.item);
            answer.distances.push_back(candidate.distance);
        }
        answer.begins[query + 1] = answer.items.size();
    }
    if (!status.ok()) return status;
    return answer;
}

}  // namespace gputext
