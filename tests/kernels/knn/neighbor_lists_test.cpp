#include "kernels/knn/neighbor_lists.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "tests/support/device_fixture.hpp"
#include "tests/support/neighbor_rows.hpp"
#include "tests/support/random_strings.hpp"

namespace gputext {
namespace {

using gpu::NeighborLists;
using gpu::QuerySelection;
using testing::differing;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// A list's new items, with their distances; NaN for one that is to be dropped.
using Found = std::vector<std::pair<std::uint32_t, double>>;

std::uint64_t key_of(double distance) {
    return std::isnan(distance) ? gpu::kNoDistance
                                : gpu::ordered_bits(std::bit_cast<std::uint64_t>(distance));
}

class NeighborListsTest : public testing::DeviceTest {
protected:
    void TearDown() override {
        lists_.reset();  // its memory is the stream's
        DeviceTest::TearDown();
    }

    Status allocate(const NeighborLists::Shape& shape, std::uint32_t queries) {
        queries_ = queries;
        GPUTEXT_TRY(lists_->allocate(shape, queries, stream()));
        return lists_->reset(queries, kInfinity);
    }

    /// As a filter and the kernel that scores do: behind the `kept` items of a list.
    void find(std::uint32_t query, std::uint32_t kept, const Found& found) {
        const gpu::ListsView view = lists_->view();
        std::vector<std::uint32_t> items;
        std::vector<std::uint64_t> keys;
        for (const auto& [item, distance] : found) {
            items.push_back(item);
            keys.push_back(key_of(distance));
        }
        const std::size_t at = std::size_t{query} * view.capacity + kept;
        const std::size_t room = std::min<std::size_t>(items.size(), view.capacity - kept);
        write(view.items + at, items.data(), room);
        write(view.keys + at, keys.data(), room);
        const auto count = static_cast<std::uint32_t>(kept + items.size());
        write(view.counts + query, &count, 1);
    }

    template <class T>
    void write(T* to, const T* from, std::size_t count) {
        ASSERT_EQ(cudaMemcpyAsync(to, from, count * sizeof(T), cudaMemcpyHostToDevice, stream()),
                  cudaSuccess);
        ASSERT_EQ(cudaStreamSynchronize(stream()), cudaSuccess);
    }

    Neighbors answer() {
        Neighbors found;
        MemoryBudget budget(std::size_t{1} << 32);
        EXPECT_TRUE(
            lists_->download(queries_, budget, found.begins, found.items, found.distances).ok());
        return found;
    }

    /// The k nearest of each list.
    static Neighbors nearest(const std::vector<Found>& found, std::size_t k) {
        Neighbors answer;
        answer.begins.push_back(0);
        for (const Found& some : found) {
            std::vector<std::pair<std::uint64_t, std::uint32_t>> sorted;
            for (const auto& [item, distance] : some)
                if (!std::isnan(distance)) sorted.emplace_back(key_of(distance), item);
            std::ranges::sort(sorted);
            for (std::size_t i = 0; i < std::min(k, sorted.size()); ++i) {
                answer.items.push_back(sorted[i].second);
                answer.distances.push_back(
                    std::bit_cast<double>(gpu::bits_of_ordered(sorted[i].first)));
            }
            answer.begins.push_back(answer.items.size());
        }
        return answer;
    }

    std::unique_ptr<NeighborLists> lists_ = std::make_unique<NeighborLists>();

private:
    std::uint32_t queries_ = 0;
};

class RandomFound {
public:
    RandomFound()
        : trace_(__FILE__, __LINE__, "GPUTEXT_TEST_SEED=" + std::to_string(testing::seed())) {}

    Found found(std::size_t count, const std::function<double(double)>& distance) {
        std::vector<std::uint32_t> items(2 * count);
        std::iota(items.begin(), items.end(), 7u);
        std::ranges::shuffle(items, generator_);
        Found found;
        std::uniform_real_distribution<double> share;
        for (std::size_t i = 0; i < count; ++i)
            found.emplace_back(items[i], distance(share(generator_)));
        return found;
    }

private:
    std::mt19937_64 generator_{testing::seed()};
    ::testing::ScopedTrace trace_;
};

/// How distances may lie; of these buckets of equal width suit the first ones only.
const std::pair<const char*, std::function<double(double)>> kDistances[] = {
    {"even", [](double x) { return x; }},
    {"ever more frequent", [](double x) { return 1 + std::log(x + 1e-9) / 8; }},
    {"one far from the others", [](double x) { return x < 0.002 ? 0 : 0.8 + 0.1 * x; }},
    {"some dropped", [](double x) { return x < 0.3 ? std::nan("") : x; }},
    {"all dropped", [](double) { return std::nan(""); }},
    {"few different", [](double x) { return std::floor(x * 200) / 200; }},
    {"two different", [](double x) { return std::floor(x * 2) / 2; }},
    {"equal", [](double) { return 0.25; }},
    {"close", [](double x) { return 0.5 + x * 0x1p-50; }},
    {"both signs", [](double x) { return 1e3 * (x - 0.5); }},
    {"scales", [](double x) { return std::exp(600 * (x - 0.5)); }},
    {"infinite", [](double x) { return x < 0.1   ? -kInfinity
                                       : x > 0.9 ? kInfinity
                                                 : x; }},
    {"signs of zero", [](double x) { return x < 0.5 ? -0.0 : 0.0; }},
};

TEST_F(NeighborListsTest, KeepsTheNearest) {
    RandomFound random;
    // One list, or so many that blocks have fewer threads; short and long lists.
    for (const std::uint32_t queries : {1u, 200u})
        for (const auto& [k, capacity] :
             {std::pair{1u, 1024u}, {32u, 1024u}, {512u, 4096u}, {1024u, 4096u}, {2000u, 5000u}})
            for (const auto& [name, distance] : kDistances) {
                SCOPED_TRACE(std::string(name) + ", k " + std::to_string(k) + ", queries " +
                             std::to_string(queries));
                if (small() && queries * capacity > 5000) continue;
                ASSERT_TRUE(allocate({k, capacity, true, false}, queries).ok());
                std::vector<Found> all(queries);
                for (std::uint32_t round = 0; round < 2; ++round) {
                    const Neighbors before = nearest(all, k);
                    for (std::uint32_t q = 0; q < queries; ++q) {
                        const auto kept =
                            static_cast<std::uint32_t>(before.begins[q + 1] - before.begins[q]);
                        const std::size_t sizes[] = {0, 1, 2, 33, 700, capacity - kept};
                        Found more = random.found(
                            std::min<std::size_t>(sizes[(q + 5 + round) % 6], capacity - kept),
                            distance);
                        for (auto& [item, of] : more) item = 2 * item + round;
                        find(q, kept, more);
                        all[q].insert(all[q].end(), more.begin(), more.end());
                    }
                    ASSERT_TRUE(lists_->keep({nullptr, queries}).ok());
                    ASSERT_EQ(differing(answer(), nearest(all, k)), 0u);
                }
            }
}

TEST_F(NeighborListsTest, TheLastKeptDistanceIsTheLimit) {
    RandomFound random;
    for (const bool equal : {false, true}) {
        ASSERT_TRUE(allocate({100, 1024, true, false}, 1).ok());
        const Found found = random.found(500, [=](double x) { return equal ? 0.5 : x; });
        find(0, 0, found);
        ASSERT_TRUE(lists_->keep({nullptr, 1}).ok());
        double limit = 0;
        ASSERT_EQ(cudaMemcpyAsync(&limit, lists_->view().limits, sizeof(limit),
                                  cudaMemcpyDeviceToHost, stream()),
                  cudaSuccess);
        ASSERT_EQ(cudaStreamSynchronize(stream()), cudaSuccess);
        EXPECT_EQ(limit, nearest({found}, 100).distances.back());
    }
}

/// Of lists that overflowed or are not proven nothing is kept, and they are named.
TEST_F(NeighborListsTest, FailedListsAreTakenBack) {
    RandomFound random;
    constexpr std::uint32_t kQueries = 300;
    const auto even = [](double x) { return x; };
    DeviceBuffer<float> wanted, proven;
    DeviceBuffer<std::uint32_t> failed;
    ASSERT_TRUE(failed.allocate(kQueries, stream()).ok());
    std::vector<float> one(kQueries, 1), some(kQueries, 2);
    for (std::uint32_t q = 0; q < kQueries; q += 7) some[q] = 0.5;
    ASSERT_TRUE(wanted.upload(one, stream()).ok());
    ASSERT_TRUE(proven.upload(some, stream()).ok());
    for (const bool at_once : {false, true})
        for (const bool late : {false, true}) {
            SCOPED_TRACE(std::to_string(at_once) + ", " + std::to_string(late));
            ASSERT_TRUE(allocate({20, 1024, true, false}, kQueries).ok());
            std::vector<Found> all(kQueries);
            std::vector<std::uint32_t> expected;
            for (std::uint32_t q = 0; q < kQueries; ++q) {
                const Found found = random.found(q % 5 == 0 ? 1025 : 50, even);
                find(q, 0, found);
                if (q % 5 == 0 || q % 7 == 0)
                    expected.push_back(q);
                else
                    all[q] = found;
            }
            if (late) {
                ASSERT_NO_FATAL_FAILURE(testing::hold_up(stream()));
            }
            std::uint32_t count = 0;
            const QuerySelection selection{nullptr, kQueries};
            if (at_once) {
                ASSERT_TRUE(lists_
                                ->keep_and_take_failed(selection, wanted.data(), proven.data(),
                                                       failed.data(), count)
                                .ok());
            } else {
                ASSERT_TRUE(lists_->keep(selection).ok());
                ASSERT_TRUE(
                    lists_
                        ->take_failed(selection, wanted.data(), proven.data(), failed.data(), count)
                        .ok());
            }
            std::vector<std::uint32_t> names(count);
            ASSERT_EQ(cudaMemcpyAsync(names.data(), failed.data(), count * sizeof(names[0]),
                                      cudaMemcpyDeviceToHost, stream()),
                      cudaSuccess);
            ASSERT_EQ(cudaStreamSynchronize(stream()), cudaSuccess);
            std::ranges::sort(names);
            EXPECT_EQ(names, expected);
            EXPECT_EQ(differing(answer(), nearest(all, 20)), 0u);
            // Counting begins anew.
            ASSERT_TRUE(
                lists_->take_failed(selection, nullptr, nullptr, failed.data(), count).ok());
            EXPECT_EQ(count, 0u);
        }
}

/// Small answers come by way of pinned memory, others do not.
TEST_F(NeighborListsTest, AnswersOfAllSizes) {
    RandomFound random;
    const auto even = [](double x) { return x; };
    for (const std::uint32_t queries : {1u, 2u, 129u, 512u, 513u})
        for (const std::uint32_t k : {1u, 40u, 43u, 400u}) {
            if (small() && queries * k > 1000) continue;
            ASSERT_TRUE(allocate({k, 512, true, false}, queries).ok());
            std::vector<Found> all(queries);
            for (std::uint32_t q = 0; q < queries; ++q) {
                all[q] = random.found(q % 3 * 30 + q % 11, even);
                find(q, 0, all[q]);
            }
            ASSERT_TRUE(lists_->keep({nullptr, queries}).ok());
            const Neighbors found = answer(), expected = nearest(all, k);
            EXPECT_EQ(found.begins, expected.begins);
            EXPECT_EQ(differing(found, expected), 0u);
            Neighbors none;
            MemoryBudget little(1);
            const Status refused =
                lists_->download(queries, little, none.begins, none.items, none.distances);
            EXPECT_EQ(refused.ok(), expected.items.empty());
        }
}

}  // namespace
}  // namespace gputext
