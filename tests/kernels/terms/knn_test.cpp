#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <memory>
#include <random>

#include "cpp/base/memory_budget.hpp"
#include "cpp/terms/knn.hpp"
#include "cpp/terms/tfidf.hpp"
#include "kernels/terms/detail/index.hpp"
#include "kernels/terms/detail/search.hpp"
#include "kernels/terms/knn.hpp"
#include "tests/support/device_fixture.hpp"
#include "tests/support/neighbor_rows.hpp"
#include "tests/support/random_strings.hpp"

namespace gputext {
namespace {

using testing::differing;

/// What random texts look like.
enum class Shape {
    zipf,       // few terms are in most texts
    uniform,    // any term as often
    copies,     // few different texts
    signs,      // weights of both signs
    lonely,     // few terms, most of which no other text has
    scales,     // weights from 1e-6 to 1e6
    everywhere  // a term in every text, and texts without terms
};
constexpr Shape kAllShapes[] = {Shape::zipf,   Shape::uniform, Shape::copies,    Shape::signs,
                                Shape::lonely, Shape::scales,  Shape::everywhere};

/// Texts as sparse vectors.
class Texts {
public:
    Texts(ElementType type, std::size_t terms) {
        vectors_.type = type;
        vectors_.dimensions = terms;
    }
    Texts(Texts&&) = default;

    /// Adds a row of (term, weight), in any order; the last weight of a term counts.
    void add(std::vector<std::pair<std::uint32_t, double>> row) {
        std::stable_sort(row.begin(), row.end(),
                         [](const auto& a, const auto& b) { return a.first < b.first; });
        for (std::size_t i = 0; i < row.size(); ++i) {
            if (i + 1 < row.size() && row[i + 1].first == row[i].first) continue;
            columns_.push_back(row[i].first);
            if (vectors_.type == ElementType::float32)
                elements_.push_back(
                    std::bit_cast<std::uint32_t>(static_cast<float>(row[i].second)));
            else
                elements_.push_back(static_cast<std::uint32_t>(
                    static_cast<std::int32_t>(std::ceil(row[i].second))));
        }
        begins_.push_back(columns_.size());
    }
    void repeat(std::size_t row) {
        for (std::uint64_t i = begins_[row]; i < begins_[row + 1]; ++i) {
            columns_.push_back(std::uint32_t{columns_[i]});
            elements_.push_back(std::uint32_t{elements_[i]});
        }
        begins_.push_back(columns_.size());
    }

    std::size_t size() const { return begins_.size() - 1; }
    Vectors vectors() const {
        Vectors vectors = vectors_;
        vectors.rows = size();
        vectors.elements = elements_.data();
        vectors.row_begins = begins_;
        vectors.columns = columns_;
        return vectors;
    }

private:
    Vectors vectors_;
    std::vector<std::uint64_t> begins_{0};
    std::vector<std::uint32_t> columns_, elements_;
};

class RandomTexts {
public:
    RandomTexts()
        : trace_(__FILE__, __LINE__, "GPUTEXT_TEST_SEED=" + std::to_string(testing::seed())) {}

    std::size_t below(std::size_t bound) {
        return std::uniform_int_distribution<std::size_t>(0, bound - 1)(generator_);
    }
    double share() { return std::uniform_real_distribution<>()(generator_); }

    Texts texts(Shape shape, ElementType type, std::size_t count, std::size_t terms,
                std::size_t length) {
        Texts texts(type, terms);
        for (std::size_t row = 0; row < count; ++row) {
            if (shape == Shape::copies && row > 20 && below(8) != 0) {
                texts.repeat(below(row));
                continue;
            }
            std::vector<std::pair<std::uint32_t, double>> text;
            const bool empty = shape == Shape::everywhere && below(10) == 0;
            const std::size_t size = empty ? 0 : 1 + below(2 * length);
            for (std::size_t i = 0; i < size; ++i)
                text.emplace_back(term(shape, terms), weight(shape));
            if (shape == Shape::everywhere && !empty) text.emplace_back(0, 1);
            texts.add(std::move(text));
        }
        return texts;
    }

private:
    std::uint32_t term(Shape shape, std::size_t terms) {
        if (shape == Shape::uniform) return static_cast<std::uint32_t>(below(terms));
        const double power = shape == Shape::lonely ? 0.3 : 3;
        return static_cast<std::uint32_t>(std::min(
            static_cast<double>(terms - 1), std::pow(share(), power) * static_cast<double>(terms)));
    }
    double weight(Shape shape) {
        if (shape == Shape::signs) return static_cast<double>(below(9)) - 4;
        if (shape == Shape::scales) return std::pow(10.0, 12 * share() - 6);
        return 1 + static_cast<double>(below(4));
    }

    std::mt19937_64 generator_{testing::seed()};
    ::testing::ScopedTrace trace_;
};

/// The CPU's operator, which its own test holds against a plain search, gives what is expected.
class TermKnnOnDevice : public testing::RingTest {
protected:
    static std::vector<double> factors_of(const Texts& items, TermWeighting weighting) {
        Execution execution(1);
        const auto frequencies = document_frequencies(items.vectors(), execution);
        EXPECT_TRUE(frequencies.ok());
        return term_factors({weighting, 1}, *frequencies, items.size());
    }

    Result<Neighbors> run(const TermKnnParameters& parameters, const std::vector<double>& factors,
                           const Texts& queries, const Texts& items, const RowKeys& keys = {}) {
        Execution execution(4);
        counts = {};
        return gpu::term_knn(parameters, factors, queries.vectors(), items.vectors(), keys, work,
                             ring(), execution, &counts);
    }

    void expect_same(const TermKnnParameters& parameters, TermWeighting weighting,
                     const Texts& queries, const Texts& items, const RowKeys& keys = {}) {
        const std::vector<double> factors = factors_of(items, weighting);
        const auto found = run(parameters, factors, queries, items, keys);
        ASSERT_TRUE(found.ok()) << found.status().message();
        Execution execution(16);
        const auto wanted =
            term_knn(parameters, factors, queries.vectors(), items.vectors(), keys, execution);
        ASSERT_TRUE(wanted.ok()) << wanted.status().message();
        ASSERT_EQ(differing(*found, *wanted), 0u);
    }

    gpu::TermKnnCounts counts;

private:
};

constexpr TermWeighting kWeightings[] = {TermWeighting::tf_idf, TermWeighting::given};

TEST_F(TermKnnOnDevice, EqualsTheCpusOnAllShapes) {
    RandomTexts random;
    const auto n = static_cast<std::size_t>(testing::rounds(30000));
    for (const Shape shape : kAllShapes)
        for (const ElementType type : {ElementType::float32, ElementType::int32}) {
            const Texts items = random.texts(shape, type, n, 5000, 15);
            const Texts queries = random.texts(shape, type, 40, 5000, 15);
            for (const TermWeighting weighting : kWeightings)
                for (const std::size_t k : {1, 10, 100}) {
                    SCOPED_TRACE("shape " + std::to_string(static_cast<int>(shape)) + ", type " +
                                 std::to_string(static_cast<int>(type)) + ", weighting " +
                                 std::to_string(static_cast<int>(weighting)) + ", k " +
                                 std::to_string(k));
                    ASSERT_NO_FATAL_FAILURE(expect_same({.k = k}, weighting, queries, items));
                    ASSERT_NO_FATAL_FAILURE(expect_same(
                        {.k = k, .metric = Metric::inner_product}, weighting, queries, items));
                }
        }
}

/// Queries of counts beside items of weights, and one item that is much longer than the others.
TEST_F(TermKnnOnDevice, InnerProductsByCountsAreExact) {
    RandomTexts random;
    const auto n = static_cast<std::size_t>(testing::rounds(100000));
    for (const bool long_item : {false, true}) {
        Texts items = random.texts(Shape::zipf, ElementType::float32, n, 4000, 20);
        if (long_item) {
            std::vector<std::pair<std::uint32_t, double>> row;
            for (std::uint32_t term = 0; term < 4000; ++term) row.emplace_back(term, 50);
            items.add(std::move(row));
        }
        for (const std::size_t count : {1, 300}) {
            const Texts queries = random.texts(Shape::zipf, ElementType::int32, count, 4000, 8);
            for (const std::size_t k : {1, 10, 100, 2000})
                for (const double radius : {-20.0, HUGE_VAL}) {
                    SCOPED_TRACE("long item " + std::to_string(long_item) + ", k " +
                                 std::to_string(k) + ", radius " + std::to_string(radius));
                    ASSERT_NO_FATAL_FAILURE(
                        expect_same({.k = k, .radius = radius, .metric = Metric::inner_product},
                                    TermWeighting::tf_idf, queries, items));
                }
        }
    }
}

TEST_F(TermKnnOnDevice, SizesOfAllKinds) {
    RandomTexts random;
    for (const std::size_t count : {1, 2, 65})
        for (const std::size_t n : {1, 2, 65, 8191, 8192, 8193, 20000})
            for (const std::size_t terms : {1, 30, 100000}) {
                if (small() && n > 100) continue;
                const Texts items = random.texts(Shape::zipf, ElementType::int32, n, terms, 6);
                const Texts queries =
                    random.texts(Shape::zipf, ElementType::int32, count, terms, 6);
                ASSERT_NO_FATAL_FAILURE(
                    expect_same({.k = 20}, TermWeighting::given, queries, items));
            }
}

TEST_F(TermKnnOnDevice, LongTexts) {
    RandomTexts random;
    const auto n = static_cast<std::size_t>(testing::rounds(9000));
    for (const Shape shape : {Shape::zipf, Shape::uniform, Shape::signs}) {
        const Texts items = random.texts(shape, ElementType::float32, n, 20000, 200);
        const Texts queries = random.texts(shape, ElementType::float32, 20, 20000, 2500);
        for (const TermWeighting weighting : kWeightings)
            ASSERT_NO_FATAL_FAILURE(expect_same({.k = 30}, weighting, queries, items));
    }
}

/// Of few queries the scores are kept; the postings of long ones are divided among blocks.
TEST_F(TermKnnOnDevice, FewQueries) {
    RandomTexts random;
    const std::size_t n = small() ? 20000 : 60000;
    const std::size_t most_k = small() ? 20 : 60;
    std::vector<std::uint32_t> keys(n);
    for (std::size_t i = 0; i < n; ++i) keys[i] = static_cast<std::uint32_t>(i % 10);
    for (const Shape shape : kAllShapes) {
        const Texts items = random.texts(shape, ElementType::int32, n, 8000, 15);
        for (const std::size_t length : {4, 30, 700, 3000})
            for (const std::size_t count : {1, 8}) {
                if (small() && length < 700) continue;
                const Texts queries = random.texts(shape, ElementType::int32, count, 8000, length);
                const RowKeys some_keys{std::span(keys).first(count), keys};
                for (const std::size_t k : {std::size_t{1}, most_k}) {
                    SCOPED_TRACE("shape " + std::to_string(static_cast<int>(shape)) + ", length " +
                                 std::to_string(length) + ", queries " + std::to_string(count) +
                                 ", k " + std::to_string(k));
                    ASSERT_NO_FATAL_FAILURE(
                        expect_same({.k = k}, TermWeighting::tf_idf, queries, items));
                    ASSERT_NO_FATAL_FAILURE(expect_same(
                        {.k = k, .radius = 0.8}, TermWeighting::given, queries, items, some_keys));
                    ASSERT_NO_FATAL_FAILURE(
                        expect_same({.k = k, .radius = -9, .metric = Metric::inner_product},
                                    TermWeighting::tf_idf, queries, items, some_keys));
                }
            }
    }
}

TEST_F(TermKnnOnDevice, ManyNeighbors) {
    RandomTexts random;
    const auto n = static_cast<std::size_t>(testing::rounds(20000));
    for (const Shape shape : {Shape::zipf, Shape::copies, Shape::lonely}) {
        const Texts items = random.texts(shape, ElementType::int32, n, 3000, 10);
        const Texts queries = random.texts(shape, ElementType::int32, 10, 3000, 10);
        for (const std::size_t k : {std::size_t{500}, std::size_t{1024}, std::size_t{1025},
                                    std::size_t{6000}, n, n + 5, KnnParameters::all_items})
            for (const Metric metric : {Metric::cosine, Metric::inner_product})
                ASSERT_NO_FATAL_FAILURE(expect_same({.k = k, .metric = metric},
                                                    TermWeighting::tf_idf, queries, items));
    }
}

TEST_F(TermKnnOnDevice, ARadiusFindsAllWithinIt) {
    RandomTexts random;
    const auto n = static_cast<std::size_t>(testing::rounds(20000));
    for (const Shape shape : {Shape::zipf, Shape::copies, Shape::signs}) {
        const Texts items = random.texts(shape, ElementType::float32, n, 3000, 10);
        const Texts queries = random.texts(shape, ElementType::float32, 20, 3000, 10);
        for (const double radius : {-1.0, 0.0, 0.3, 0.7, 0.95, 1.0, 1.2, 2.5})
            for (const std::size_t k : {std::size_t{7}, KnnParameters::all_items}) {
                ASSERT_NO_FATAL_FAILURE(
                    expect_same({.k = k, .radius = radius}, TermWeighting::tf_idf, queries, items));
                ASSERT_NO_FATAL_FAILURE(expect_same(
                    {.k = k, .radius = 10 - 20 * radius, .metric = Metric::inner_product},
                    TermWeighting::tf_idf, queries, items));
            }
    }
}

TEST_F(TermKnnOnDevice, RowsOfEqualKeysAreNoNeighbors) {
    RandomTexts random;
    const auto n = static_cast<std::size_t>(testing::rounds(10000));
    for (const Shape shape : {Shape::zipf, Shape::copies}) {
        const Texts texts = random.texts(shape, ElementType::int32, n, 1000, 10);
        std::vector<std::uint32_t> unique(n), groups(n);
        for (std::size_t i = 0; i < n; ++i) {
            unique[i] = static_cast<std::uint32_t>(i);
            groups[i] = static_cast<std::uint32_t>(i % 10);
        }
        const Texts queries = [&] {
            Texts some(ElementType::int32, 1000);
            const Vectors all = texts.vectors();
            for (std::size_t row = 0; row < 100; ++row) {
                std::vector<std::pair<std::uint32_t, double>> text;
                for (std::size_t i = all.begin(row); i < all.begin(row) + all.stored(row); ++i)
                    text.emplace_back(all.columns[i],
                                      static_cast<const std::int32_t*>(all.elements)[i]);
                some.add(std::move(text));
            }
            return some;
        }();
        for (const auto& keys : {unique, groups})
            ASSERT_NO_FATAL_FAILURE(expect_same({.k = 10}, TermWeighting::tf_idf, queries, texts,
                                                {std::span(keys).first(100), keys}));
    }
}

TEST_F(TermKnnOnDevice, LittleMemoryGivesTheSameAnswer) {
    RandomTexts random;
    const auto n = static_cast<std::size_t>(testing::rounds(40000));
    const Texts items = random.texts(Shape::zipf, ElementType::int32, n, 3000, 12);
    const Texts queries = random.texts(Shape::zipf, ElementType::int32, 100, 3000, 12);
    for (const auto& [k, metric] : {std::pair{std::size_t{10}, Metric::cosine},
                                    std::pair{std::size_t{10}, Metric::inner_product},
                                    std::pair{std::size_t{3000}, Metric::cosine}}) {
        const TermKnnParameters parameters{.k = k, .metric = metric};
        const auto bytes = gpu::term_knn_bytes(parameters, queries.vectors(), items.vectors());
        for (const std::size_t memory :
             {bytes.least, bytes.least + (bytes.good - bytes.least) / 10,
              bytes.least + (bytes.good - bytes.least) / 2, bytes.good}) {
            work.bytes = memory;
            ASSERT_NO_FATAL_FAILURE(expect_same(parameters, TermWeighting::tf_idf, queries, items));
        }
        work.bytes = bytes.least - 1;
        const auto refused =
            run(parameters, factors_of(items, TermWeighting::tf_idf), queries, items);
        ASSERT_FALSE(refused.ok());
        EXPECT_EQ(refused.status().code(), ErrorCode::out_of_memory);
    }
}

TEST_F(TermKnnOnDevice, FewQueriesAreSearchedAgain) {
    RandomTexts random;
    const auto n = static_cast<std::size_t>(testing::rounds(200000));
    const Texts items = random.texts(Shape::zipf, ElementType::int32, n, 20000, 12);
    const Texts queries = random.texts(Shape::zipf, ElementType::int32, 200, 20000, 12);
    ASSERT_NO_FATAL_FAILURE(expect_same({.k = 32}, TermWeighting::tf_idf, queries, items));
    if (!small()) {
        EXPECT_LT(counts.escalated, 20u);
        EXPECT_LT(counts.rescored, 200 * 200u);
    }
}

/// As term_knn() does where there are many queries, which would be too slow here.
TEST_F(TermKnnOnDevice, FrequentTermsGiveTheSameAnswer) {
    RandomTexts random;
    const std::size_t n = small() ? 20000 : 60000;
    for (const Shape shape : {Shape::zipf, Shape::signs, Shape::scales, Shape::everywhere})
        for (const std::size_t terms : {300, 4000})
            for (const auto& [k, metric] : {std::pair{std::size_t{1}, Metric::cosine},
                                            std::pair{std::size_t{30}, Metric::cosine},
                                            std::pair{std::size_t{30}, Metric::inner_product},
                                            std::pair{std::size_t{400}, Metric::cosine}}) {
                const Texts items = random.texts(shape, ElementType::float32, n, terms, 40);
                const Texts queries = random.texts(shape, ElementType::float32, 150, terms, 40);
                const auto factors = factors_of(items, TermWeighting::tf_idf);
                Execution execution(16);
                const auto wanted = term_knn({.k = k, .metric = metric}, factors,
                                             queries.vectors(), items.vectors(), {}, execution);
                ASSERT_TRUE(wanted.ok());

                DeviceBuffer<double> on_device;
                ASSERT_TRUE(on_device.upload(factors, stream()).ok());
                gpu::TermQueriesMemory tile;
                gpu::TermRowsMemory part;
                gpu::TermIndexMemory index;
                gpu::DenseTermsMemory dense;
                gpu::BoundedTermsMemory bounded;
                gpu::TermTimers timers(false, stream());
                gpu::TermSearch search;
                const Vectors all = items.vectors(), asked = queries.vectors();
                ASSERT_TRUE(tile.allocate(150, asked.columns.size(),
                                          gpu::TermQueriesMemory::scale_for(100), stream())
                                .ok());
                ASSERT_TRUE(part.allocate(n, all.columns.size(), stream()).ok());
                ASSERT_TRUE(index
                                .allocate((n + gpu::kTermTile - 1) / gpu::kTermTile, terms,
                                          all.columns.size(), stream())
                                .ok());
                ASSERT_TRUE(search
                                .allocate(
                                    gpu::TermSearch::shape_of(k, INFINITY, n), 150, n, false,
                                    [] { return Status(); }, execution, timers, stream())
                                .ok());
                ASSERT_TRUE(tile.load(asked, 0, 150, {}, on_device.data(), ring(), execution).ok());
                ASSERT_TRUE(
                    part.load(all, 0, n, {}, on_device.data(), ring(), execution, metric).ok());
                ASSERT_TRUE(index.build(part.view()).ok());
                ASSERT_TRUE(dense
                                .build(index.view(),
                                       {10000000, 150, asked.columns.size(), std::size_t{1} << 30},
                                       stream())
                                .ok());
                EXPECT_GT(dense.view().padded, 0u);
                ASSERT_TRUE(bounded.build(index.view(), stream()).ok());
                for (const gpu::DenseTerms& products : {dense.view(), gpu::DenseTerms()}) {
                    search.begin(tile.view(), 100, INFINITY);
                    ASSERT_TRUE(search.search(index.view(), products, bounded.view(), 0).ok());
                    Neighbors found;
                    MemoryBudget budget(std::size_t{1} << 30);
                    ASSERT_TRUE(
                        search.lists()
                            .download(150, budget, found.begins, found.items, found.distances)
                            .ok());
                    ASSERT_EQ(differing(found, *wanted), 0u) << products.padded;
                }
            }
}

TEST_F(TermKnnOnDevice, RefusesWhatTheCpuRefuses) {
    Texts items(ElementType::int32, 4), queries(ElementType::int32, 4);
    items.add({{1, 1}});
    queries.add({{1, 2}});
    const std::vector<double> factors(4, 1.0), few(3, 1.0);
    EXPECT_FALSE(run({.k = 0}, factors, queries, items).ok());
    EXPECT_FALSE(run({.k = 1}, few, queries, items).ok());
    EXPECT_TRUE(run({.k = 1}, factors, queries, items).ok());
}

TEST_F(TermKnnOnDevice, StopsWhenAsked) {
    RandomTexts random;
    const Texts items = random.texts(Shape::zipf, ElementType::int32, 1000, 300, 6);
    Execution execution(2);
    execution.request_stop();
    const auto found = gpu::term_knn({.k = 3}, factors_of(items, TermWeighting::tf_idf),
                                     items.vectors(), items.vectors(), {}, work, ring(), execution);
    ASSERT_FALSE(found.ok());
    EXPECT_EQ(found.status().code(), ErrorCode::cancelled);
}

}  // namespace
}  // namespace gputext
