#include "cpp/knn/outlier_factor.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "cpp/knn/cosine_similarity.hpp"
#include "tests/support/plain_knn.hpp"
#include "tests/support/random_strings.hpp"
#include "tests/support/vector_rows.hpp"

namespace gputext {
namespace {

using testing::DoubleRows;
using testing::plain_neighbors;
using testing::plain_similarity;
using testing::PlainNeighbors;
using testing::RandomRows;
using testing::Shape;
using testing::TypedRows;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// The definition, row by row.
std::vector<double> plain_factors(const OutlierParameters& parameters, const DoubleRows& rows) {
    const bool breunig = parameters.ties == TieRule::breunig;
    const KnnParameters knn{
        .k = parameters.k, .metric = parameters.metric, .include_ties = breunig};
    const std::size_t n = rows.size();
    std::vector<PlainNeighbors> near(n);
    for (std::size_t i = 0; i < n; ++i) {
        std::vector<bool> own(n);
        own[i] = true;
        near[i] = plain_neighbors(knn, rows[i], rows, own);
    }
    std::vector<double> density(n), factors(n);
    for (std::size_t i = 0; i < n; ++i) {
        double sum = 0;
        for (const auto& [j, distance] : near[i]) sum += std::max(near[j].back().second, distance);
        const auto count = static_cast<double>(near[i].size());
        density[i] = breunig ? (sum > 0 ? count / sum : kInfinity) : 1 / (sum / count + 1e-10);
    }
    for (std::size_t i = 0; i < n; ++i) {
        double sum = 0;
        for (const auto& [j, distance] : near[i]) sum += density[j] / density[i];
        factors[i] = sum / static_cast<double>(near[i].size());
        if (breunig && density[i] == kInfinity) factors[i] = 1;
        if (near[i].empty()) factors[i] = std::nan("");
    }
    return factors;
}

std::vector<double> run(const OutlierParameters& parameters, const TypedRows& rows) {
    Execution execution(3);
    const auto factors = local_outlier_factors(parameters, rows.vectors(), execution);
    EXPECT_TRUE(factors.ok()) << factors.status().message();
    return *factors;
}

void expect_near(const std::vector<double>& found, const std::vector<double>& wanted,
                 double error = 1e-9) {
    ASSERT_EQ(found.size(), wanted.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
        if (std::isnan(wanted[i])) {
            ASSERT_TRUE(std::isnan(found[i])) << i;
        } else if (std::isinf(wanted[i])) {
            ASSERT_EQ(found[i], wanted[i]) << i;
        } else {
            ASSERT_NEAR(found[i] / wanted[i], 1, error) << i;
        }
    }
}

TEST(OutlierFactors, AreThoseOfTheDefinition) {
    RandomRows random;
    for (const Shape shape : {Shape::gaussian, Shape::grid, Shape::copies, Shape::clusters,
                              Shape::sparse, Shape::outliers})
        for (const std::size_t d : {1, 2, 5})
            for (const std::size_t n : {2, 3, 7, testing::kSanitized ? 60 : 150}) {
                const TypedRows rows(random.rows(shape, n, d), ElementType::float64, d);
                for (const Metric metric : {Metric::euclidean, Metric::manhattan, Metric::cosine})
                    for (const TieRule ties : {TieRule::sklearn, TieRule::breunig})
                        for (const std::size_t k : {1, 4, 20}) {
                            const OutlierParameters parameters{k, metric, ties};
                            SCOPED_TRACE(std::to_string(static_cast<int>(shape)) + " d" +
                                         std::to_string(d) + " n" + std::to_string(n) + " k" +
                                         std::to_string(k));
                            expect_near(run(parameters, rows),
                                        plain_factors(parameters, rows.rows()));
                            if (HasFatalFailure()) return;
                        }
            }
}

/// Thirty points of no pattern, and one far from all.
DoubleRows thirty_points() {
    DoubleRows rows;
    for (int i = 1; i <= 30; ++i)
        rows.push_back({i * i * 37 % 101 + 0.25 * (i % 7), i * 53 % 89 - 0.5 * (i % 5),
                        i * i * i * 11 % 97 * 0.125});
    rows[29] = {400, -300, 50};
    return rows;
}

/// Factors of rows 0, 7, 13, 29 by scikit-learn 1.9.1.
TEST(OutlierFactors, AreThoseOfScikitLearn) {
    const TypedRows rows(thirty_points(), ElementType::float64, 3);
    const struct {
        std::size_t k;
        Metric metric;
        std::vector<double> factors;
    } cases[] = {{3,
                  Metric::euclidean,
                  {1.004612406897052, 0.9438787002283341, 1.1088292275581355, 22.280445691026433}},
                 {3,
                  Metric::manhattan,
                  {1.062019910436318, 0.9403450899727943, 1.0626855447869867, 22.802003899835352}},
                 {3,
                  Metric::cosine,
                  {1.222864943430909, 0.8847813461573127, 1.0690920844668177, 21.250846236904607}},
                 {10,
                  Metric::euclidean,
                  {0.947400917192517, 0.9713465551005556, 1.008451111658459, 11.835198551390386}},
                 {10,
                  Metric::manhattan,
                  {0.9482664175988875, 0.9633610521302785, 1.004578466812509, 13.023619223811295}},
                 {10,
                  Metric::cosine,
                  {0.9520975555686796, 0.9648834129506966, 1.227839448149775, 7.952529792686657}}};
    for (const auto& [k, metric, wanted] : cases) {
        const auto found = run({k, metric}, rows);
        expect_near({found[0], found[7], found[13], found[29]}, wanted, 1e-6);
    }
}

/// As above, with rows 10 to 15 equal and rows 20 and 21; rows 0, 7, 10, 15, 20, 29.
TEST(OutlierFactors, OfCopiesAreThoseOfScikitLearn) {
    DoubleRows rows = thirty_points();
    for (int i = 11; i < 16; ++i) rows[i] = rows[10];
    rows[21] = rows[20];
    const TypedRows typed(rows, ElementType::float64, 3);
    for (const auto& [k, wanted] : std::vector<std::pair<std::size_t, std::vector<double>>>{
             {3,
              {112500000001.0, 1.2102729194235364, 1.0, 1.0, 0.9678513708210662,
               16.219303117468847}},
             {10,
              {1.0210275810070706, 0.9990701619803032, 0.992841065309506, 0.992841065309506,
               1.0133216790904873, 12.496953842535849}}}) {
        const auto found = run({k}, typed);
        expect_near({found[0], found[7], found[10], found[15], found[20], found[29]}, wanted, 1e-6);
    }
}

TEST(OutlierFactors, OfRowsWithoutFiniteDensity) {
    // Four copies and two rows apart, k = 2: the copies' densities are infinite.
    const TypedRows rows({{0}, {0}, {0}, {0}, {1}, {3}}, ElementType::float64, 1);
    EXPECT_EQ(run({2, Metric::euclidean, TieRule::breunig}, rows),
              (std::vector<double>{1, 1, 1, 1, kInfinity, kInfinity}));
    const auto sklearn = run({2, Metric::euclidean, TieRule::sklearn}, rows);
    EXPECT_DOUBLE_EQ(sklearn[0], 1);
    EXPECT_NEAR(sklearn[4], 1e10, 10);
}

TEST(OutlierFactors, OfRowsWithoutNeighborsAreNone) {
    EXPECT_TRUE(std::isnan(run({5}, TypedRows({{1, 2}}, ElementType::float32, 2))[0]));
    EXPECT_TRUE(run({5}, TypedRows({}, ElementType::float32, 2)).empty());
    const TypedRows zeros({{0, 0}, {0, 0}, {1, 0}, {1, 1}, {2, 3}}, ElementType::float32, 2);
    const auto factors = run({2, Metric::cosine}, zeros);
    EXPECT_TRUE(std::isnan(factors[0]) && std::isnan(factors[1]));
    EXPECT_TRUE(std::isfinite(factors[2]));
}

/// As several devices answer.
TEST(OutlierFactors, AreThoseOfAnswersForConsecutiveRows) {
    RandomRows random;
    const TypedRows copies(random.rows(Shape::copies, 300, 2), ElementType::float32, 2);
    const TypedRows distinct(random.rows(Shape::gaussian, 300, 2), ElementType::float32, 2);
    Execution execution(2);
    for (const auto& [rows, ties] : {std::pair(&copies, TieRule::sklearn),
                                     {&copies, TieRule::breunig},
                                     {&distinct, TieRule::sklearn},
                                     {&distinct, TieRule::breunig}}) {
        const OutlierParameters parameters{.k = 5, .ties = ties};
        OutlierSearch search;
        ASSERT_TRUE(search.set(parameters, rows->vectors(), execution).ok());
        const std::size_t all = search.rows().rows;
        std::vector<Neighbors> answers;
        for (const auto& [begin, end] : {std::pair<std::size_t, std::size_t>{0, all / 3},
                                         {all / 3, all / 2},
                                         {all / 2, all}}) {
            const RowRange queries(search.rows(), begin, end);
            const RowKeys keys{search.keys().queries.subspan(begin, end - begin),
                               search.keys().items};
            auto found =
                knn(search.parameters(), queries.vectors(), search.rows(), keys, execution);
            ASSERT_TRUE(found.ok()) << found.status().message();
            answers.push_back(std::move(*found));
        }
        const auto factors = search.factors(answers, execution);
        const auto wanted = local_outlier_factors(parameters, rows->vectors(), execution);
        ASSERT_TRUE(factors.ok() && wanted.ok());
        EXPECT_EQ(*factors, *wanted);
    }
}

/// The neighbors' memory is known before they are searched, and is no more than that.
TEST(OutlierFactors, KeepToTheAnswerLimit) {
    RandomRows random;
    constexpr std::size_t n = 400;
    const TypedRows rows(random.rows(Shape::gaussian, n, 3), ElementType::float64, 3);
    OutlierParameters parameters{.k = n - 1};
    Execution execution(2);
    const auto wanted = local_outlier_factors(parameters, rows.vectors(), execution);
    ASSERT_TRUE(wanted.ok());
    parameters.answer_limit = 48 * n * (n - 1);
    const auto within = local_outlier_factors(parameters, rows.vectors(), execution);
    ASSERT_TRUE(within.ok()) << within.status().message();
    EXPECT_EQ(*within, *wanted);
    parameters.answer_limit = 28 * (n - 1) * (n - 2) - 1;
    const Status status = OutlierSearch().set(parameters, rows.vectors(), execution);
    EXPECT_EQ(status.code(), ErrorCode::memory_limit) << "before the search";
    EXPECT_EQ(status.message(),
              "the neighbors would take at least 4343 kB, more than the memory limit of 4343 kB");
}

TEST(OutlierFactors, RefuseWhatHasNoDistance) {
    const TypedRows rows({{1}, {2}}, ElementType::float32, 1);
    Execution execution(1);
    for (const OutlierParameters& parameters :
         {OutlierParameters{0}, OutlierParameters{1, Metric::inner_product}})
        EXPECT_EQ(local_outlier_factors(parameters, rows.vectors(), execution).status().code(),
                  ErrorCode::invalid_argument);
}

TEST(CosineSimilarities, AreThoseOfTheDefinition) {
    RandomRows random;
    Execution execution(3);
    for (const Shape shape : testing::kAllShapes)
        for (const std::size_t d : {1, 7, 200})
            for (const bool sparse : {false, true}) {
                const auto type = sparse ? ElementType::float32 : ElementType::float64;
                const bool extreme =
                    shape == Shape::tiny || shape == Shape::huge || shape == Shape::mixed;
                if (sparse && extreme) continue;
                const TypedRows items(random.rows(shape, 300, d), type, d, sparse);
                const TypedRows query(random.rows(shape, 1, d), type, d, sparse);
                for (const Simd simd : {Simd::portable, best_simd()}) {
                    const auto found =
                        cosine_similarities(query.vectors(), items.vectors(), simd, execution);
                    ASSERT_TRUE(found.ok()) << found.status().message();
                    for (std::size_t i = 0; i < 300; ++i) {
                        const auto wanted = plain_similarity(query.rows()[0], items.rows()[i]);
                        if (wanted) {
                            ASSERT_EQ((*found)[i], *wanted);
                        } else {
                            ASSERT_TRUE(std::isnan((*found)[i]));
                        }
                    }
                }
            }
}

TEST(CosineSimilarities, OfTwoVectors) {
    const TypedRows a({{3, 4}}, ElementType::float32, 2), b({{4, 3}}, ElementType::float64, 2);
    const TypedRows zero({{0, 0}}, ElementType::float32, 2);
    EXPECT_EQ(cosine_similarity(a.vectors(), b.vectors()), 0.96);
    EXPECT_EQ(cosine_similarity(a.vectors(), a.vectors()), 1);
    EXPECT_EQ(cosine_similarity(a.vectors(), zero.vectors()), std::nullopt);
}

TEST(CosineSimilarities, RefuseWhatCannotBeCompared) {
    Execution execution(1);
    const TypedRows one({{1, 2}}, ElementType::float32, 2);
    const TypedRows two({{1, 2}, {3, std::nan("")}}, ElementType::float32, 2);
    const TypedRows three({{1, 2, 3}}, ElementType::float32, 3);
    const auto message = [&](const TypedRows& query, const TypedRows& items) {
        return cosine_similarities(query.vectors(), items.vectors(), best_simd(), execution)
            .status()
            .message();
    };
    EXPECT_EQ(message(two, one), "there must be one query vector");
    EXPECT_EQ(message(one, two), "item 1 has an element that is not a finite number");
    EXPECT_EQ(message(one, three), "queries have 2 dimensions, and items 3");
}

}  // namespace
}  // namespace gputext
