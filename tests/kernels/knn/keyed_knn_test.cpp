#include "kernels/knn/keyed_knn.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <numeric>
#include <thread>

#include "cpp/knn/keyed_knn.hpp"
#include "cpp/knn/knn.hpp"
#include "kernels/base/resident_copies.hpp"
#include "tests/support/device_fixture.hpp"
#include "tests/support/neighbor_rows.hpp"
#include "tests/support/random_keys.hpp"
#include "tests/support/vector_rows.hpp"

namespace gputext {
namespace {

using testing::differing;
using testing::kAllKeyShapes;
using testing::kAllShapes;
using testing::KeyShape;
using testing::RandomKeys;
using testing::RandomRows;
using testing::Shape;
using testing::TypedRows;

using Keys = std::vector<std::uint32_t>;

constexpr Metric kAllMetrics[] = {Metric::euclidean, Metric::cosine, Metric::inner_product,
                                  Metric::manhattan};
constexpr ElementType kAllTypes[] = {ElementType::float16, ElementType::float32,
                                     ElementType::float64, ElementType::int32};

/// The CPU's operator, which its own test holds against a plain search, gives what is expected.
class KeyedKnnOnDevice : public testing::RingTest {
protected:
    Result<Neighbors> run(const KnnParameters& parameters, const Vectors& queries,
                           const Vectors& items, const MatchKeys& matches,
                           const RowKeys& excluded = {}) {
        Execution execution(4);
        const auto groups = group_by_key(matches, execution);
        EXPECT_TRUE(groups.ok());
        counts = {};
        return gpu::keyed_knn(parameters, queries, items, *groups, excluded, work, ring(),
                              execution, &counts);
    }

    void expect_same(const KnnParameters& parameters, const TypedRows& queries,
                     const TypedRows& items, const MatchKeys& matches,
                     const RowKeys& excluded = {}) {
        const auto found = run(parameters, queries.vectors(), items.vectors(), matches, excluded);
        ASSERT_TRUE(found.ok()) << found.status().message();
        Execution execution(8);
        const auto wanted =
            keyed_knn(parameters, queries.vectors(), items.vectors(), matches, excluded, execution);
        ASSERT_TRUE(wanted.ok()) << wanted.status().message();
        ASSERT_EQ(differing(*found, *wanted), 0u);
    }

    gpu::KeyedKnnCounts counts;
    RandomRows random_;
    RandomKeys random_keys_;
};

TEST_F(KeyedKnnOnDevice, EqualsTheCpusOnAllShapes) {
    const std::size_t queries_count = small() ? 60 : 400, items_count = small() ? 90 : 700;
    for (const Shape shape : kAllShapes)
        for (const ElementType type : kAllTypes)
            for (const KeyShape keys : kAllKeyShapes) {
                // Numbers that only double precision has
                const bool extreme =
                    shape == Shape::tiny || shape == Shape::huge || shape == Shape::mixed;
                if (extreme && type != ElementType::float64) continue;
                if (random_.below(5) != 0) continue;  // all of them would take minutes
                const std::size_t d = 1 + random_.below(70);
                const TypedRows queries(random_.rows(shape, queries_count, d), type, d);
                const TypedRows items(random_.rows(shape, items_count, d), type, d);
                const Keys query_keys = random_keys_.keys(keys, queries_count);
                const Keys item_keys = random_keys_.keys(keys, items_count);
                const Keys query_ids = random_keys_.keys(KeyShape::zipf, queries_count);
                const Keys item_ids = random_keys_.keys(KeyShape::zipf, items_count);
                const MatchKeys matches{query_keys, item_keys};
                for (const Metric metric : kAllMetrics) {
                    SCOPED_TRACE("shape " + std::to_string(static_cast<int>(shape)) + ", keys " +
                                 std::to_string(static_cast<int>(keys)) + ", type " +
                                 std::to_string(static_cast<int>(type)) + ", metric " +
                                 std::to_string(static_cast<int>(metric)) + ", d " +
                                 std::to_string(d));
                    for (const std::size_t k : {1, 7, 32, 33, 300}) {
                        ASSERT_NO_FATAL_FAILURE(
                            expect_same({.k = k, .metric = metric}, queries, items, matches));
                        ASSERT_NO_FATAL_FAILURE(expect_same({.k = k, .metric = metric}, queries,
                                                            items, matches, {query_ids, item_ids}));
                        ASSERT_NO_FATAL_FAILURE(
                            expect_same({.k = k, .metric = metric, .include_ties = true}, queries,
                                        items, matches));
                    }
                    for (const double radius : {0.0, 0.5, 4.0}) {
                        ASSERT_NO_FATAL_FAILURE(expect_same(
                            {.k = 2, .metric = metric, .radius = radius}, queries, items, matches));
                        ASSERT_NO_FATAL_FAILURE(expect_same(
                            {.k = KnnParameters::all_items, .metric = metric, .radius = radius},
                            queries, items, matches, {query_ids, item_ids}));
                    }
                    ASSERT_NO_FATAL_FAILURE(
                        expect_same({.k = KnnParameters::all_items, .metric = metric}, queries,
                                    items, matches));
                }
            }
}

/// Groups that are searched as matrices beside lists of every kind.
TEST_F(KeyedKnnOnDevice, LargeGroupsEqualTheCpus) {
    const std::size_t d = 64, n = small() ? 3000 : 40'000;
    const TypedRows queries(random_.rows(Shape::gaussian, n, d), ElementType::float32, d);
    const TypedRows items(random_.rows(Shape::gaussian, n, d), ElementType::float32, d);
    Keys query_keys = random_keys_.keys(KeyShape::uniform, n);
    Keys item_keys = random_keys_.keys(KeyShape::uniform, n);
    for (std::size_t row = 0; row < n; row += 3) query_keys[row] = item_keys[row] = 5;
    for (std::size_t row = 1; row < n; row += 9) item_keys[row] = 6;  // with a few queries
    const Keys query_ids = random_keys_.keys(KeyShape::zipf, n);
    const Keys item_ids = random_keys_.keys(KeyShape::zipf, n);
    for (const std::size_t k : {1, 10, 50}) {
        ASSERT_NO_FATAL_FAILURE(expect_same({.k = k, .metric = Metric::euclidean}, queries, items,
                                            {query_keys, item_keys}));
        EXPECT_TRUE(small() || counts.large_groups > 0);
        ASSERT_NO_FATAL_FAILURE(expect_same({.k = k, .include_ties = true}, queries, items,
                                            {query_keys, item_keys}, {query_ids, item_ids}));
    }
    const Keys one(n, 3);
    ASSERT_NO_FATAL_FAILURE(expect_same({.k = 5}, queries, items, {one, one}));
    EXPECT_EQ(counts.tiles > 0, small());
}

TEST_F(KeyedKnnOnDevice, AnyMemoryGivesTheSame) {
    const std::size_t d = 48, n = small() ? 2000 : 30'000;
    const TypedRows queries(random_.rows(Shape::grid, n, d), ElementType::float32, d);
    const TypedRows items(random_.rows(Shape::grid, n, d), ElementType::float32, d);
    for (const KeyShape shape : {KeyShape::uniform, KeyShape::zipf}) {
        const Keys query_keys = random_keys_.keys(shape, n),
                   item_keys = random_keys_.keys(shape, n);
        const MatchKeys matches{query_keys, item_keys};
        Execution execution(4);
        const auto groups = group_by_key(matches, execution);
        ASSERT_TRUE(groups.ok());
        for (const KnnParameters& parameters :
             {KnnParameters{.k = 1, .metric = Metric::euclidean},
              KnnParameters{.k = 40, .metric = Metric::manhattan},
              KnnParameters{
                  .k = KnnParameters::all_items, .metric = Metric::euclidean, .radius = 9}}) {
            const auto bytes =
                gpu::keyed_knn_bytes(parameters, queries.vectors(), items.vectors(), *groups);
            std::uint64_t most_ranges = 0;
            for (const std::size_t memory :
                 {bytes.least, 2 * bytes.least, 4 * bytes.least, bytes.good}) {
                work.bytes = memory;
                ASSERT_NO_FATAL_FAILURE(expect_same(parameters, queries, items, matches));
                most_ranges = std::max(most_ranges, counts.ranges);
            }
            EXPECT_TRUE(small() || most_ranges > 1);
            work.bytes = 1000;
            EXPECT_EQ(run(parameters, queries.vectors(), items.vectors(), matches).status().code(),
                      ErrorCode::out_of_memory);
        }
    }
}

/// Few of the items are in groups: these are gathered. Few of the queries are.
TEST_F(KeyedKnnOnDevice, FewRowsInGroupsEqualTheCpus) {
    const std::size_t d = 20, n = 5000;
    const TypedRows queries(random_.rows(Shape::gaussian, n, d), ElementType::float64, d);
    const TypedRows items(random_.rows(Shape::gaussian, n, d), ElementType::float64, d);
    Keys query_keys(n, kNoKey), item_keys(n, kNoKey);
    for (std::size_t i = 0; i < 40; ++i) {
        query_keys[random_.below(n)] = static_cast<std::uint32_t>(i % 4);
        item_keys[random_.below(n)] = static_cast<std::uint32_t>(i % 5);
    }
    for (const std::size_t k : {1, 3, 100})
        ASSERT_NO_FATAL_FAILURE(expect_same({.k = k, .metric = Metric::euclidean}, queries, items,
                                            {query_keys, item_keys}));
}

/// Items that the device has a copy of.
TEST_F(KeyedKnnOnDevice, ResidentItemsEqualTheCpus) {
    const std::size_t d = 32, n = 4000;
    const TypedRows queries(random_.rows(Shape::gaussian, n, d), ElementType::float32, d);
    const TypedRows items(random_.rows(Shape::gaussian, n, d), ElementType::float32, d);
    const Keys query_keys = random_keys_.keys(KeyShape::uniform, n);
    const Keys item_keys = random_keys_.keys(KeyShape::uniform, n);
    const auto ranges = std::make_shared<ResidentRanges>();
    const auto* data = static_cast<const std::uint8_t*>(items.vectors().elements);
    ranges->add({1, data, n * d * sizeof(float)});
    gpu::ResidentCopies copies(ranges, 0);
    ring().use(&copies);
    for (int round = 0; round < 3; ++round) {
        ASSERT_EQ(cudaStreamSynchronize(ring().stream()), cudaSuccess);
        ASSERT_TRUE(copies.begin_job(work.bytes).ok());
        ASSERT_NO_FATAL_FAILURE(expect_same({.k = 1, .metric = Metric::euclidean}, queries, items,
                                            {query_keys, item_keys}));
        const Keys one(n, 3);
        ASSERT_NO_FATAL_FAILURE(expect_same({.k = 5}, queries, items, {one, one}));
    }
    ring().use(nullptr);
    ranges->remove(1);
}

TEST_F(KeyedKnnOnDevice, RefusesWhatTheCpuRefuses) {
    const TypedRows rows(random_.rows(Shape::gaussian, 50, 8), ElementType::float32, 8);
    const TypedRows sparse(random_.rows(Shape::sparse, 50, 8), ElementType::float32, 8, true);
    const Keys keys(50, 1);
    const auto code = [&](const KnnParameters& parameters, const TypedRows& of) {
        return run(parameters, of.vectors(), of.vectors(), {keys, keys}).status().code();
    };
    EXPECT_EQ(code({.k = 0}, rows), ErrorCode::invalid_argument);
    EXPECT_EQ(code({.k = 1}, sparse), ErrorCode::invalid_argument);
    KnnParameters limited{.k = KnnParameters::all_items, .metric = Metric::euclidean};
    limited.answer_limit = 2500 * kBytesOfNeighbor - 1;
    EXPECT_EQ(code(limited, rows), ErrorCode::memory_limit);
    limited.answer_limit += 1;
    EXPECT_EQ(code(limited, rows), ErrorCode::ok);
    testing::DoubleRows infinite(50, testing::DoubleRow(8, 1));
    infinite[17][3] = INFINITY;
    const TypedRows bad(infinite, ElementType::float32, 8);
    EXPECT_EQ(run({.k = 1}, rows.vectors(), bad.vectors(), {keys, keys}).status().message(),
              "item 17 has an element that is not a finite number");
}

TEST_F(KeyedKnnOnDevice, CanBeCancelled) {
    const std::size_t d = 64, n = 60'000;
    const TypedRows rows(random_.rows(Shape::gaussian, n, d), ElementType::float32, d);
    for (const KeyShape shape : {KeyShape::uniform, KeyShape::zipf, KeyShape::one}) {
        const Keys keys = random_keys_.keys(shape, n);
        Execution execution(4);
        const auto groups = group_by_key({keys, keys}, execution);
        ASSERT_TRUE(groups.ok());
        std::chrono::steady_clock::time_point asked;
        std::thread canceller([&] {
            std::this_thread::sleep_for(std::chrono::milliseconds(3));
            asked = std::chrono::steady_clock::now();
            execution.request_stop();
        });
        const auto found = gpu::keyed_knn({.k = 100}, rows.vectors(), rows.vectors(), *groups, {},
                                          work, ring(), execution);
        const auto ended = std::chrono::steady_clock::now();
        canceller.join();
        if (!found.ok()) {
            EXPECT_EQ(found.status().code(), ErrorCode::cancelled);
            EXPECT_LT(ended - asked, std::chrono::milliseconds(200));
        }
    }
}

}  // namespace
}  // namespace gputext
