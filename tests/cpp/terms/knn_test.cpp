#include "cpp/terms/knn.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <numeric>

#include "bench/term_corpus.hpp"
#include "cpp/terms/bm25.hpp"
#include "cpp/terms/tfidf.hpp"
#include "tests/support/on_each_simd.hpp"
#include "tests/support/plain_terms.hpp"
#include "tests/support/stops_soon.hpp"
#include "tests/support/text_rows.hpp"

namespace gputext {
namespace {

using testing::kAllTextShapes;
using testing::kEachSimd;
using testing::kSanitized;
using testing::name_of_simd;
using testing::of_counts;
using testing::OnEachSimd;
using testing::plain_bm25;
using testing::plain_factors;
using testing::plain_term_neighbors;
using testing::PlainNeighbors;
using testing::PlainText;
using testing::PlainTexts;
using testing::PlainWeights;
using testing::RandomTexts;
using testing::TextRows;
using testing::TextShape;

using Row = std::pair<std::uint32_t, std::uint64_t>;

std::vector<Row> row_of(const Neighbors& neighbors, std::size_t query) {
    std::vector<Row> row;
    for (auto i = neighbors.begins[query]; i < neighbors.begins[query + 1]; ++i)
        row.emplace_back(neighbors.items[i],
                         std::bit_cast<std::uint64_t>(neighbors.distances[i]));
    return row;
}

std::vector<Row> row_of(const PlainNeighbors& neighbors) {
    std::vector<Row> row;
    for (const auto& [item, distance] : neighbors)
        row.emplace_back(item, std::bit_cast<std::uint64_t>(distance));
    return row;
}

void expect_equal(const Neighbors& found, const Neighbors& wanted) {
    ASSERT_EQ(found.begins, wanted.begins);
    ASSERT_EQ(found.items, wanted.items);
    for (std::size_t i = 0; i < found.distances.size(); ++i)
        ASSERT_EQ(std::bit_cast<std::uint64_t>(found.distances[i]),
                  std::bit_cast<std::uint64_t>(wanted.distances[i]));
}

ElementType type_of(TextShape shape) {
    return of_counts(shape) ? ElementType::int32 : ElementType::float32;
}

class TermKnnOnEach : public OnEachSimd {
protected:
    Neighbors run(TermKnnParameters parameters, const std::vector<double>& factors,
                   const Vectors& queries, const Vectors& items, const RowKeys& keys = {},
                   unsigned threads = 3) {
        parameters.simd = GetParam();
        Execution execution(threads);
        auto answer = term_knn(parameters, factors, queries, items, keys, execution);
        EXPECT_TRUE(answer.ok()) << answer.status().message();
        return answer.ok() ? std::move(*answer) : Neighbors{};
    }

    void expect_plain_answer(const TermKnnParameters& parameters, const TermParameters& terms,
                             const TextRows& queries, const TextRows& items,
                             const RowKeys& keys = {}, unsigned threads = 3) {
        const std::size_t dimensions = items.vectors().dimensions;
        const auto wanted_factors = plain_factors(terms, items.texts(), dimensions);
        Execution execution(threads);
        const auto frequencies = document_frequencies(items.vectors(), execution);
        ASSERT_TRUE(frequencies.ok());
        const auto factors = term_factors(terms, *frequencies, items.texts().size());
        ASSERT_EQ(factors, wanted_factors);
        WeighedItems weighed;
        ASSERT_TRUE(weighed.set(terms, factors, items.vectors(), execution).ok());
        const std::vector<double> used(weighed.factors().begin(), weighed.factors().end());
        const Neighbors found =
            run(parameters, used, queries.vectors(), weighed.items(), keys, threads);
        const bool bm25 = terms.weighting == TermWeighting::bm25;
        const PlainWeights query_rows(queries.texts(), used);
        const PlainWeights item_rows(
            bm25 ? plain_bm25(terms, items.texts(), factors) : items.texts(), used);
        ASSERT_EQ(found.begins.size(), queries.texts().size() + 1);
        for (std::size_t q = 0; q < queries.texts().size(); ++q)
            ASSERT_EQ(row_of(found, q),
                      row_of(plain_term_neighbors(parameters, query_rows, q, item_rows, keys)))
                << "query " << q;
    }
};

INSTANTIATE_TEST_SUITE_P(Simd, TermKnnOnEach, kEachSimd, name_of_simd);

/// As many queries as GPUTEXT_TEST_QUERIES says, of all shapes, weightings and small sizes.
TEST_P(TermKnnOnEach, EqualsAPlainSearchOnManyQueries) {
    const char* wanted = std::getenv("GPUTEXT_TEST_QUERIES");
    const std::uint64_t most = wanted != nullptr ? std::strtoull(wanted, nullptr, 10)
                               : kSanitized      ? 5000
                                                 : 100000;
    RandomTexts random;
    for (std::uint64_t compared = 0; compared < most;) {
        const TextShape shape = kAllTextShapes[random.below(std::size(kAllTextShapes))];
        const std::size_t terms = 1 + random.below(random.below(2) == 0 ? 20 : 300);
        const std::size_t n = 1 + random.below(random.below(8) == 0 ? 300 : 40);
        const std::size_t q = random.below(4) == 0 ? 1 + random.below(8) : 8 + random.below(100);
        TermKnnParameters parameters;
        parameters.k = random.below(8) == 0 ? KnnParameters::all_items
                                            : 1 + random.below(random.below(2) == 0 ? 10 : n + 5);
        if (random.below(4) == 0)
            parameters.radius =
                random.below(3) == 0 ? 0 : 0.01 * static_cast<double>(random.below(220));
        if (random.below(4) == 0) parameters.memory_limit = random.below(20000);
        TermParameters weighting;
        if (!of_counts(shape) || random.below(4) == 0) weighting.weighting = TermWeighting::given;
        if (random.below(3) == 0) {
            parameters.metric = Metric::inner_product;
            parameters.radius *= -3;
            if (parameters.radius < -7) parameters.radius = -parameters.radius;
            if (of_counts(shape)) weighting.weighting = TermWeighting::bm25;
            if (random.below(4) == 0) weighting.k1 = 0.5 * static_cast<double>(random.below(5));
            if (random.below(4) == 0) weighting.b = 0.5 * static_cast<double>(random.below(3));
            if (random.below(4) == 0) weighting.average_length = 7;
        }
        if (random.below(4) == 0)
            weighting.min_document_frequency = static_cast<std::uint32_t>(random.below(4));
        SCOPED_TRACE("shape " + std::to_string(static_cast<int>(shape)) + ", " + std::to_string(n) +
                     " items, " + std::to_string(q) + " queries, " + std::to_string(terms) +
                     " terms, k " + std::to_string(parameters.k) + ", radius " +
                     std::to_string(parameters.radius) + ", memory " +
                     std::to_string(parameters.memory_limit));
        PlainTexts item_texts = random.texts(shape, n, terms);
        PlainTexts query_texts = random.texts(shape, q, terms);
        for (PlainText& text : query_texts)
            if (random.below(4) == 0) text = item_texts[random.below(n)];
        const TextRows items(item_texts, type_of(shape), terms);
        const TextRows queries(query_texts, type_of(shape), terms);
        std::vector<std::uint32_t> query_keys(q), item_keys(n);
        for (auto& key : query_keys) key = static_cast<std::uint32_t>(random.below(n));
        for (auto& key : item_keys) key = static_cast<std::uint32_t>(random.below(n));
        const RowKeys keys = random.below(4) == 0 ? RowKeys{query_keys, item_keys} : RowKeys{};
        ASSERT_NO_FATAL_FAILURE(expect_plain_answer(parameters, weighting, queries, items, keys,
                                                    1 + static_cast<unsigned>(random.below(2))));
        compared += q;
    }
}

/// Rows that no float score tells apart, of which the k-th best is any.
TEST_P(TermKnnOnEach, NearTiesAreOrderedInDoublePrecision) {
    RandomTexts random;
    PlainTexts texts;
    for (std::size_t i = 0; i < 900; ++i) {
        PlainText text;
        for (std::uint32_t term = 0; term < 5; ++term)
            text[term] = static_cast<float>(1 + 6e-8 * static_cast<double>(random.below(9)));
        texts.push_back(text);
    }
    const TextRows items(texts, ElementType::float32, 5);
    texts.resize(30);
    const TextRows queries(texts, ElementType::float32, 5);
    for (const Metric metric : {Metric::cosine, Metric::inner_product})
        for (const std::size_t k : {1, 2, 50, 899, 900})
            expect_plain_answer({.k = k, .metric = metric}, {TermWeighting::given, 1}, queries,
                                items);
}

/// Scores that are exactly 0 belong to items that share a term, and to items that share none.
TEST_P(TermKnnOnEach, ACosineOfZeroIsANeighborOnlyWithASharedTerm) {
    PlainTexts texts;
    for (int i = 0; i < 400; ++i) {
        if (i % 4 == 0) texts.push_back({{0, 1}, {1, 1}});
        if (i % 4 == 1) texts.push_back({{0, 1}, {1, -1}});
        if (i % 4 == 2) texts.push_back({{2, 1}});
        if (i % 4 == 3) texts.push_back({});
    }
    const TextRows items(texts, ElementType::float32, 3);
    texts.resize(20);
    const TextRows queries(texts, ElementType::float32, 3);
    for (const std::size_t k : {1, 101, 150, 400})
        for (const double radius : {0.5, 1.0, std::numeric_limits<double>::infinity()}) {
            expect_plain_answer({.k = k, .radius = radius}, {TermWeighting::given, 1}, queries,
                                items);
            expect_plain_answer(
                {.k = k, .radius = radius - 1, .metric = Metric::inner_product},
                {TermWeighting::given, 1}, queries, items);
        }
}

/// One long row makes the measure of the filter coarse for all others.
TEST_P(TermKnnOnEach, InnerProductsBesideOneLongRow) {
    RandomTexts random;
    PlainTexts texts = random.texts(TextShape::zipf, kSanitized ? 300 : 2000, 200);
    for (std::uint32_t term = 0; term < 200; ++term) texts[17][term] = 1000;
    const TextRows items(texts, ElementType::float32, 200);
    texts.resize(40);
    const TextRows queries(texts, ElementType::float32, 200);
    for (const std::size_t k : {1, 20})
        for (const double radius : {-30.0, std::numeric_limits<double>::infinity()})
            expect_plain_answer({.k = k, .radius = radius, .metric = Metric::inner_product},
                                {TermWeighting::given, 1}, queries, items);
}

/// More items than a tile has, and all kinds of terms; too many for the oracle, which sees some.
TEST_P(TermKnnOnEach, NeitherMemoryNorThreadsChangeTheAnswer) {
    const bench::TermShape shape{kSanitized ? 3000u : 30000u, 5000, kSanitized ? 50000u : 600000u};
    const bench::TermCorpus corpus(shape, 2);
    const Vectors items = corpus.vectors();
    const bench::TermRows questions = bench::TermRows::spread(items, 200);
    std::vector<std::uint32_t> numbers(items.rows);
    std::iota(numbers.begin(), numbers.end(), 0u);
    const RowKeys keys{questions.rows(), numbers};
    Execution execution(2);
    const auto factors = term_factors({}, *document_frequencies(items, execution), items.rows);
    const auto text_of = [](const Vectors& rows, std::size_t row) {
        PlainText text;
        for (std::size_t i = rows.begin(row); i < rows.begin(row) + rows.stored(row); ++i)
            text[rows.columns[i]] = static_cast<const std::int32_t*>(rows.elements)[i];
        return text;
    };
    PlainTexts item_texts, query_texts;
    for (std::size_t i = 0; i < items.rows; ++i) item_texts.push_back(text_of(items, i));
    for (std::size_t q = 0; q < 200; ++q) query_texts.push_back(text_of(questions.vectors(), q));
    const PlainWeights item_rows(item_texts, factors), query_rows(query_texts, factors);
    for (const std::size_t k : {13, 500}) {
        TermKnnParameters parameters{.k = k};
        const auto answer = run(parameters, factors, questions.vectors(), items, keys);
        EXPECT_LT(answer.rescored, 200 * (k + 10));
        for (const std::size_t memory : {std::size_t{1} << 18, std::size_t{1} << 21})
            for (const unsigned threads : {1u, 5u}) {
                parameters.memory_limit = memory;
                ASSERT_NO_FATAL_FAILURE(expect_equal(
                    run(parameters, factors, questions.vectors(), items, keys, threads), answer));
            }
        for (std::size_t q = 0; q < 200; q += 40)
            ASSERT_EQ(row_of(answer, q),
                      row_of(plain_term_neighbors(parameters, query_rows, q, item_rows, keys)));
    }
}

TEST(TermKnn, ManyCopiesCostLittle) {
    const std::size_t n = kSanitized ? 2000 : 50000;
    PlainTexts texts;
    for (std::size_t i = 0; i < n; ++i)
        texts.push_back({{static_cast<std::uint32_t>(i % 3), 1}, {3, 2}});
    const TextRows items(texts, ElementType::int32, 5);
    texts.resize(500);
    const TextRows queries(texts, ElementType::int32, 5);
    Execution execution(2);
    const std::vector<double> factors{1, 1, 1, 1, 1};
    const auto answer =
        term_knn({.k = 4}, factors, queries.vectors(), items.vectors(), {}, execution);
    ASSERT_TRUE(answer.ok());
    EXPECT_LE((*answer).rescored, 3u * 500);
    for (std::size_t q = 0; q < 500; ++q)
        for (std::size_t i = 0; i < 4; ++i) ASSERT_EQ((*answer).items[4 * q + i], q % 3 + 3 * i);
}

TEST(TermKnn, KeepsToItsAnswerLimit) {
    constexpr std::size_t n = 500;
    PlainTexts texts;  // each shares a term with each
    for (std::size_t i = 0; i < n; ++i)
        texts.push_back({{static_cast<std::uint32_t>(i), 1 + i % 5}, {n, 2}});
    const TextRows items(texts, ElementType::int32, n + 1);
    const std::vector<double> factors(n + 1, 1);
    for (const std::size_t queries : {std::size_t{3}, n}) {
        texts.resize(queries);
        const TextRows asked(texts, ElementType::int32, n + 1);
        Execution execution(2);
        const auto search = [&](std::size_t limit) {
            TermKnnParameters parameters{.k = KnnParameters::all_items};
            parameters.answer_limit = limit;
            return term_knn(parameters, factors, asked.vectors(), items.vectors(), {}, execution);
        };
        const std::size_t bytes = queries * n * kBytesOfNeighbor;
        const auto within = search(2 * bytes);
        ASSERT_TRUE(within.ok()) << within.status().message();
        EXPECT_EQ(within->items.size(), queries * n);
        for (const std::size_t limit : {bytes - 1, std::size_t{100}})
            EXPECT_EQ(search(limit).status().code(), ErrorCode::memory_limit);
        for (std::size_t i = queries; i < n; ++i)
            texts.push_back({{static_cast<std::uint32_t>(i), 1 + i % 5}, {n, 2}});
    }
}

TEST(TermKnn, EmptyTablesHaveNoNeighbors) {
    const TextRows none({}, ElementType::int32, 0), some({{{0, 1.0}}}, ElementType::int32, 2),
        empty({{}, {}}, ElementType::int32, 2);
    Execution execution(2);
    const std::vector<double> factors{1, 1};
    const auto answer = [&](const TextRows& queries, const TextRows& items) {
        return term_knn({}, factors, queries.vectors(), items.vectors(), {}, execution);
    };
    EXPECT_EQ(answer(none, none)->begins, (std::vector<std::uint64_t>{0}));
    EXPECT_EQ(answer(none, some)->begins, (std::vector<std::uint64_t>{0}));
    EXPECT_EQ(answer(some, none)->begins, (std::vector<std::uint64_t>{0, 0}));
    EXPECT_EQ(answer(empty, some)->begins, (std::vector<std::uint64_t>{0, 0, 0}));
    EXPECT_EQ(answer(some, empty)->begins, (std::vector<std::uint64_t>{0, 0}));
    EXPECT_EQ(answer(some, some)->items, (std::vector<std::uint32_t>{0}));
}

TEST(TermKnn, RefusesWhatCannotBeCompared) {
    Execution execution(2);
    const TextRows some({{{0, 1.0}}}, ElementType::float32, 2);
    const auto message = [&](const TermKnnParameters& parameters, std::size_t factors,
                             const Vectors& queries, const RowKeys& keys = {}) {
        const std::vector<double> ones(factors, 1.0);
        const auto answer = term_knn(parameters, ones, queries, some.vectors(), keys, execution);
        EXPECT_EQ(answer.status().code(), ErrorCode::invalid_argument);
        return answer.status().message();
    };
    const float pair[] = {1, 2}, bad[] = {std::nanf("")};
    const std::uint64_t begins[] = {0, 1};
    const std::uint32_t columns[] = {0};
    EXPECT_EQ(message({.k = 0}, 2, some.vectors()), "k must be at least 1");
    EXPECT_EQ(message({.radius = std::nan("")}, 2, some.vectors()), "the radius must be a number");
    EXPECT_EQ(message({.metric = Metric::euclidean}, 2, some.vectors()),
              "the metric of texts must be cosine or inner_product");
    EXPECT_EQ(message({}, 2, {ElementType::float32, 1, 2, pair, {}, {}}),
              "texts must be sparse vectors");
    EXPECT_EQ(message({}, 2, {ElementType::float16, 1, 2, pair, begins, columns}),
              "the elements of texts must be float or int");
    EXPECT_EQ(message({}, 3, some.vectors()), "there must be a factor for each term");
    EXPECT_EQ(message({}, 2, {ElementType::float32, 1, 2, bad, begins, columns}),
              "query 0 has an element that is not a finite number");
    const std::vector<std::uint32_t> keys{1, 2};
    EXPECT_EQ(message({}, 2, some.vectors(), {keys, keys}),
              "there must be a key for each query and each item");
}

TEST(TermKnn, StopsSoonAtAnyTime) {
    const double factor = kSanitized ? 0.002 : 0.1;
    const bench::TermCorpus corpus(bench::kMedline.scaled(factor), 2);
    const Vectors items = corpus.vectors();
    Execution counting(2);
    const auto factors = term_factors({}, *document_frequencies(items, counting), items.rows);
    const bench::TermRows questions = bench::TermRows::spread(items, kSanitized ? 300 : 3000);
    const bench::TermRows question = bench::TermRows::spread(items, 1);
    struct Case {
        std::size_t k;
        Vectors queries;
    };
    for (const auto& [k, queries] : {Case{10, questions.vectors()}, Case{10, question.vectors()},
                                     Case{KnnParameters::all_items, questions.vectors()}})
        for (const int time : {0, 5, 20, 60, 150}) {
            SCOPED_TRACE("k " + std::to_string(k) + ", after " + std::to_string(time) +
                         " ms");
            testing::expect_stops_soon(
                [&, k = k, &queries = queries](Execution& execution) {
                    return term_knn({.k = k}, factors, queries, items, {}, execution).status();
                },
                testing::after(time));
        }
}

TEST(DocumentFrequencies, CountRowsWhoseElementIsNotZero) {
    RandomTexts random;
    for (const unsigned threads : {1u, 4u})
        for (const ElementType type : {ElementType::int32, ElementType::float32}) {
            PlainTexts texts = random.texts(TextShape::zeros, 3000, 50);
            if (type == ElementType::float32) texts[0][3] = -0.0;
            const TextRows rows(texts, type, 50);
            std::vector<std::uint32_t> wanted(50);
            for (const PlainText& text : texts)
                for (const auto& [term, element] : text) wanted[term] += element != 0;
            Execution execution(threads);
            EXPECT_EQ(*document_frequencies(rows.vectors(), execution), wanted);
        }
}

TEST(TermFactors, AreLogarithmsOfTheItemsPerDocumentFrequency) {
    const std::vector<std::uint32_t> frequencies{0, 1, 2, 10};
    EXPECT_EQ(term_factors({}, frequencies, 10),
              (std::vector<double>{0, std::log(10.0), std::log(5.0), 0}));
    EXPECT_EQ(term_factors({TermWeighting::tf_idf, 2}, frequencies, 10),
              (std::vector<double>{0, 0, std::log(5.0), 0}));
    EXPECT_EQ(term_factors({TermWeighting::given, 2}, frequencies, 10),
              (std::vector<double>{0, 0, 1, 1}));
    EXPECT_EQ(term_factors({TermWeighting::bm25, 2}, frequencies, 10),
              (std::vector<double>{0, 0, std::log(1 + 8.5 / 2.5), std::log(1 + 0.5 / 10.5)}));
}

}  // namespace
}  // namespace gputext
