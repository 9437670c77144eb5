#include "cpp/embeddings/word_movers.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <map>
#include <numeric>
#include <random>
#include <vector>

#include "cpp/base/lane_sums.hpp"
#include "cpp/embeddings/detail/optimal_transport.hpp"
#include "tests/support/random_strings.hpp"
#include "tests/support/stops_soon.hpp"
#include "tests/support/test_size.hpp"
#include "tests/support/text_pairs.hpp"

namespace gputext {
namespace {

std::vector<double> distances_of(const MoversParameters& parameters, const WordVectors& vectors,
                                 const TextPairs& pairs, unsigned threads = 2) {
    Execution execution(threads);
    auto found = word_movers_distances(parameters, vectors, pairs, execution);
    EXPECT_TRUE(found.ok()) << found.status().message();
    return found.ok() ? std::move(*found) : std::vector<double>();
}

// ---- A transport solver that shares nothing with ours ----

/// Least cost flow by the shortest paths of Bellman and Ford, with all arcs in one list.
class PlainFlow {
public:
    explicit PlainFlow(std::size_t nodes) : nodes_(nodes) {}

    void add(std::size_t from, std::size_t to, std::int64_t capacity, std::int64_t cost) {
        arcs_.push_back({from, to, capacity, cost});
        arcs_.push_back({to, from, 0, -cost});
    }

    std::int64_t least_cost(std::size_t source, std::size_t sink) {
        std::int64_t total = 0;
        for (;;) {
            constexpr std::int64_t kFar = INT64_MAX / 2;
            std::vector<std::int64_t> length(nodes_, kFar);
            std::vector<std::size_t> by(nodes_);
            length[source] = 0;
            for (bool changed = true; changed;) {
                changed = false;
                for (std::size_t i = 0; i < arcs_.size(); ++i) {
                    const Arc& arc = arcs_[i];
                    if (arc.left == 0 || length[arc.from] == kFar ||
                        length[arc.from] + arc.cost >= length[arc.to])
                        continue;
                    length[arc.to] = length[arc.from] + arc.cost;
                    by[arc.to] = i;
                    changed = true;
                }
            }
            if (length[sink] == kFar) return total;
            std::int64_t most = kFar;
            for (std::size_t at = sink; at != source; at = arcs_[by[at]].from)
                most = std::min(most, arcs_[by[at]].left);
            for (std::size_t at = sink; at != source; at = arcs_[by[at]].from) {
                arcs_[by[at]].left -= most;
                arcs_[by[at] ^ 1].left += most;
            }
            total += most * length[sink];
        }
    }

private:
    struct Arc {
        std::size_t from, to;
        std::int64_t left, cost;
    };
    std::size_t nodes_;
    std::vector<Arc> arcs_;
};

std::int64_t plain_least_cost(const std::vector<std::uint32_t>& supplies,
                              const std::vector<std::uint32_t>& demands,
                              const std::vector<std::uint32_t>& costs) {
    const std::size_t n = supplies.size(), m = demands.size();
    PlainFlow flow(n + m + 2);
    for (std::size_t i = 0; i < n; ++i) flow.add(n + m, i, supplies[i], 0);
    for (std::size_t j = 0; j < m; ++j) flow.add(n + j, n + m + 1, demands[j], 0);
    for (std::size_t i = 0; i < n; ++i)
        for (std::size_t j = 0; j < m; ++j) flow.add(i, n + j, UINT32_MAX, costs[i * m + j]);
    return flow.least_cost(n + m, n + m + 1);
}

TEST(Transport, FindsTheLeastCost) {
    std::mt19937 random(3);
    std::vector<OptimalTransport> solvers;
    for (const Simd simd : {Simd::portable, Simd::avx2, Simd::avx512})
        if (simd_available(simd)) solvers.emplace_back(simd);
    for (int round = 0; round < 400; ++round) {
        const std::size_t n = 1 + random() % 20, m = 1 + random() % 20;
        // Many ties, or the largest costs.
        const std::uint32_t least = round % 3 == 0 ? 0 : kTransportCostEnd - 40;
        const std::uint32_t range = round % 3 == 1 ? 40 : 4;
        std::vector<std::uint32_t> costs(n * m), supplies(n), demands(m, 0);
        for (std::uint32_t& cost : costs)
            cost = round % 3 == 2 ? static_cast<std::uint32_t>(random() % kTransportCostEnd)
                                  : least + static_cast<std::uint32_t>(random() % range);
        std::uint32_t sum = 0;
        for (std::uint32_t& supply : supplies)
            sum += supply = 1 + static_cast<std::uint32_t>(random() % 9);
        sum = std::max(sum, static_cast<std::uint32_t>(m));
        supplies[0] +=
            sum - static_cast<std::uint32_t>(std::accumulate(supplies.begin(), supplies.end(), 0u));
        for (std::uint32_t& demand : demands) demand = 1;
        for (std::uint32_t rest = sum - static_cast<std::uint32_t>(m); rest > 0; --rest)
            ++demands[random() % m];
        const auto wanted = static_cast<std::uint64_t>(plain_least_cost(supplies, demands, costs));
        for (OptimalTransport& solver : solvers) {
            std::uint32_t* const to = solver.begin(n, m);
            for (std::size_t i = 0; i < n; ++i)
                for (std::size_t j = 0; j < m; ++j) to[i * solver.stride() + j] = costs[i * m + j];
            std::uint64_t total = 0;
            ASSERT_TRUE(solver.solve(supplies, demands, {}, total).ok());
            ASSERT_EQ(total, wanted) << n << " x " << m << " in round " << round;
        }
    }
}

// ---- Masses ----

TEST(TextPairs, HaveMassesWithoutWhatBothHave) {
    // Counts 2, 1 of three tokens and 1, 1 of two: six in all, of which word 7 is on both sides.
    std::vector<std::uint32_t> first = {7, 9, 7}, second = {7, 3};
    std::vector<WordMass> left, right;
    EXPECT_EQ(append_masses(first, second, left, right), 6u);
    ASSERT_EQ(left.size(), 2u);
    EXPECT_EQ(left[0].word, 7u);
    EXPECT_EQ(left[0].mass, 1u);
    EXPECT_EQ(left[1].word, 9u);
    EXPECT_EQ(left[1].mass, 2u);
    ASSERT_EQ(right.size(), 1u);
    EXPECT_EQ(right[0].word, 3u);
    EXPECT_EQ(right[0].mass, 3u);
}

TEST(TextPairs, OfTheSameWordsHaveNothingLeft) {
    std::vector<std::uint32_t> first = {1, 2, 2}, second = {2, 1, 2, 2, 2, 1};
    std::vector<WordMass> left, right;
    EXPECT_EQ(append_masses(first, second, left, right), 6u);
    EXPECT_TRUE(left.empty());
    EXPECT_TRUE(right.empty());
}

TEST(TextPairs, WithoutTokensHaveNoTotal) {
    std::vector<std::uint32_t> none, some = {1};
    std::vector<WordMass> left, right;
    EXPECT_EQ(append_masses(none, some, left, right), 0u);
    EXPECT_EQ(append_masses(some, none, left, right), 0u);
    EXPECT_TRUE(left.empty() && right.empty());
}

TEST(TextPairs, OfTheLargestTextsFit) {
    std::vector<std::uint32_t> first(kMostPairTokens, 0), second(kMostPairTokens - 1, 1);
    std::vector<WordMass> left, right;
    const std::uint64_t total = std::uint64_t{kMostPairTokens} * (kMostPairTokens - 1);
    EXPECT_EQ(append_masses(first, second, left, right), total);
    EXPECT_EQ(left[0].mass, total);
    EXPECT_EQ(right[0].mass, total);
}

TEST(TextPairs, AreRefusedWhenTheyCannotBe) {
    const std::vector<WordMass> masses = {{1, 2}, {3, 4}, {2, 6}};
    const std::vector<std::uint64_t> begins = {0, 2, 3};
    const std::vector<std::uint32_t> totals = {6};
    const auto check = [](std::vector<std::uint64_t> b, std::vector<WordMass> m,
                          std::vector<std::uint32_t> t) {
        Execution execution(1);
        return check_text_pairs({b, m, t}, 4, execution).code();
    };
    EXPECT_EQ(check(begins, masses, totals), ErrorCode::ok);
    EXPECT_EQ(check(begins, masses, {7}), ErrorCode::ok);
    EXPECT_EQ(check(begins, masses, {5}), ErrorCode::invalid_argument);
    EXPECT_EQ(check({0, 3}, masses, totals), ErrorCode::invalid_argument);
    EXPECT_EQ(check({1, 2, 3}, masses, totals), ErrorCode::invalid_argument);
    EXPECT_EQ(check({0, 4, 3}, masses, totals), ErrorCode::invalid_argument);
    EXPECT_EQ(check({0, 2, 2}, masses, totals), ErrorCode::invalid_argument);
    EXPECT_EQ(check(begins, {{1, 2}, {4, 4}, {2, 6}}, totals), ErrorCode::invalid_argument);
    EXPECT_EQ(check(begins, {{3, 2}, {1, 4}, {2, 6}}, totals), ErrorCode::invalid_argument);
    EXPECT_EQ(check(begins, {{1, 2}, {3, 4}, {2, 5}}, totals), ErrorCode::invalid_argument);
    EXPECT_EQ(check(begins, {{1, 6}, {3, 0}, {2, 6}}, totals), ErrorCode::invalid_argument);
}

TEST(TextPairs, AreRefusedWhereverTheWrongOneIs) {
    const std::size_t count = 10000;
    std::vector<WordMass> masses;
    std::vector<std::uint64_t> begins{0};
    for (std::size_t pair = 0; pair < count; ++pair)
        for (std::uint32_t word : {1, 2}) {
            masses.push_back({word, 6});
            begins.push_back(masses.size());
        }
    const std::vector<std::uint32_t> totals(count, 6);
    Execution execution(2);
    const TextPairs pairs{begins, masses, totals};
    EXPECT_TRUE(check_text_pairs(pairs, 3, execution).ok());
    for (const std::size_t wrong :
         {std::size_t{0}, std::size_t{4095}, std::size_t{4096}, count - 1}) {
        masses[2 * wrong].mass = 5;
        EXPECT_EQ(check_text_pairs(pairs, 3, execution).code(), ErrorCode::invalid_argument)
            << wrong;
        masses[2 * wrong].mass = 6;
    }
}

// ---- Distances ----

/// By the header's definition, with the plain solver, of whole masses: nothing is taken off.
double plain_distance(const WordVectors& vectors, const std::vector<std::uint32_t>& first,
                      const std::vector<std::uint32_t>& second, int scale) {
    if (first.empty() || second.empty()) return std::nan("");
    const auto total = static_cast<std::uint32_t>(std::lcm(first.size(), second.size()));
    std::map<std::uint32_t, std::uint32_t> a, b;
    for (const std::uint32_t word : first)
        a[word] += total / static_cast<std::uint32_t>(first.size());
    for (const std::uint32_t word : second)
        b[word] += total / static_cast<std::uint32_t>(second.size());
    std::vector<std::uint32_t> supplies, demands, costs;
    for (const auto& [word, mass] : a) supplies.push_back(mass);
    for (const auto& [word, mass] : b) demands.push_back(mass);
    for (const auto& from : a)
        for (const auto& to : b) {
            const float distance = std::sqrt(lane_squared_distance_by(best_simd())(
                vectors.of(from.first), vectors.of(to.first), vectors.dimensions));
            costs.push_back(
                static_cast<std::uint32_t>(std::nearbyint(std::ldexp(double{distance}, scale))));
        }
    const auto cost = static_cast<double>(plain_least_cost(supplies, demands, costs));
    return std::ldexp(cost / total, -scale);
}

std::uint64_t bits(double x) {
    return std::bit_cast<std::uint64_t>(x);
}

TEST(WordMovers, AreExactByAnyInstructionSetAndNumberOfThreads) {
    const RandomModel model(60, 50, 1);
    const std::size_t count = testing::rounds<std::size_t>(600);
    const PackedPairs pairs = random_pairs(count, 60, 25, 2);
    Execution execution(1);
    const auto scale = movers_scale(model.view(), execution);
    ASSERT_TRUE(scale.ok());
    for (const Simd simd : {Simd::portable, Simd::avx2, Simd::avx512}) {
        if (!simd_available(simd)) continue;
        MoversParameters parameters;
        parameters.simd = simd;
        const auto found =
            distances_of(parameters, model.view(), pairs.view(), simd == Simd::portable ? 1 : 3);
        ASSERT_EQ(found.size(), count);
        for (std::size_t i = 0; i < found.size(); ++i) {
            const double wanted =
                plain_distance(model.view(), pairs.firsts[i], pairs.seconds[i], *scale);
            if (std::isnan(wanted))
                EXPECT_TRUE(std::isnan(found[i]));
            else
                // Taking off what both have is exact in real numbers; rounded costs obey the
                // triangle inequality to a unit or two.
                EXPECT_NEAR(found[i], wanted, std::ldexp(4.0, -*scale)) << i;
        }
    }
}

TEST(WordMovers, HaveTheSameBitsFromEitherSide) {
    const RandomModel model(200, 37, 4);
    const std::size_t count = testing::rounds<std::size_t>(300);
    const PackedPairs pairs = random_pairs(count, 200, 60, 5);
    PackedPairs turned;
    for (std::size_t i = 0; i < count; ++i) turned.append(pairs.seconds[i], pairs.firsts[i]);
    for (const MoversMethod method : {MoversMethod::exact, MoversMethod::relaxed}) {
        MoversParameters parameters;
        parameters.method = method;
        const auto there = distances_of(parameters, model.view(), pairs.view());
        const auto back = distances_of(parameters, model.view(), turned.view());
        for (std::size_t i = 0; i < count; ++i) EXPECT_EQ(bits(there[i]), bits(back[i])) << i;
    }
}

TEST(WordMovers, RelaxedAreNeverAbove) {
    const RandomModel model(80, 20, 6);
    const PackedPairs pairs = random_pairs(500, 80, 40, 7);
    MoversParameters parameters;
    const auto exact = distances_of(parameters, model.view(), pairs.view());
    parameters.method = MoversMethod::relaxed;
    const auto relaxed = distances_of(parameters, model.view(), pairs.view());
    std::size_t below = 0;
    for (std::size_t i = 0; i < 500; ++i) {
        EXPECT_EQ(std::isnan(exact[i]), std::isnan(relaxed[i]));
        if (std::isnan(exact[i])) continue;
        EXPECT_LE(relaxed[i], exact[i]);
        EXPECT_EQ(relaxed[i] == 0, exact[i] == 0);
        below += relaxed[i] < exact[i];
    }
    EXPECT_GT(below, 100u);
}

TEST(WordMovers, RelaxedAreTheGreaterOfBothWays) {
    const std::vector<float> elements = {0, 0, 0, 1, 0, 10};
    const WordVectors model{elements.data(), 3, 2};
    PackedPairs pairs;
    pairs.append({0}, {1, 2});
    pairs.append({1, 2}, {0});
    MoversParameters parameters;
    parameters.method = MoversMethod::relaxed;
    // All of the one word moves to the nearer of two, or each of the two to the one.
    for (const double distance : distances_of(parameters, model, pairs.view()))
        EXPECT_EQ(distance, 5.5);
}

TEST(WordMovers, OfTheSameWordsInAnyOrderAreZero) {
    const RandomModel model(10, 8, 8);
    PackedPairs pairs;
    pairs.append({1, 2, 3, 3}, {3, 1, 3, 2});
    pairs.append({1, 2}, {2, 1, 1, 2, 2, 1});
    for (const double distance : distances_of({}, model.view(), pairs.view()))
        EXPECT_EQ(bits(distance), bits(0.0));
}

TEST(WordMovers, OfOneWordAreTheGroundDistance) {
    const std::vector<float> elements = {0, 0, 3, 4, 6, 8};
    const WordVectors model{elements.data(), 3, 2};
    PackedPairs pairs;
    pairs.append({0}, {1});
    pairs.append({0, 0, 0}, {1, 2});
    const auto found = distances_of({}, model, pairs.view());
    EXPECT_EQ(found[0], 5);
    EXPECT_EQ(found[1], 7.5);
}

TEST(WordMovers, OfLongTextsAreExactToo) {
    const RandomModel model(400, 10, 9);
    const PackedPairs pairs = random_pairs(testing::kSanitized ? 2 : 6, 400, 600, 10);
    Execution execution(1);
    const auto scale = movers_scale(model.view(), execution);
    const auto found = distances_of({}, model.view(), pairs.view());
    for (std::size_t i = 0; i < found.size(); ++i)
        EXPECT_NEAR(found[i],
                    plain_distance(model.view(), pairs.firsts[i], pairs.seconds[i], *scale),
                    std::ldexp(4.0, -*scale));
}

TEST(WordMovers, KeepToTheMemoryLimit) {
    const RandomModel model(300, 10, 11);
    const PackedPairs pairs = random_pairs(40, 300, 300, 12);
    std::uint64_t largest = 0;
    for (std::size_t i = 0; i < 40; ++i)
        largest = std::max(largest, transport_bytes(pairs.view().side(i, 0).size(),
                                                    pairs.view().side(i, 1).size()));
    const auto wanted = distances_of({}, model.view(), pairs.view());
    MoversParameters parameters;
    parameters.memory_limit = largest;
    const auto found = distances_of(parameters, model.view(), pairs.view(), 4);
    for (std::size_t i = 0; i < 40; ++i)
        if (!std::isnan(wanted[i])) {
            EXPECT_EQ(bits(found[i]), bits(wanted[i]));
        }

    parameters.memory_limit = largest - 1;
    Execution execution(2);
    const auto refused = word_movers_distances(parameters, model.view(), pairs.view(), execution);
    EXPECT_EQ(refused.status().code(), ErrorCode::invalid_argument);
    EXPECT_NE(refused.status().message().find("different words"), std::string::npos);
}

TEST(WordMovers, KnowTheScaleOfAnyModel) {
    for (const float length : {0x1p-40f, 1e-6f, 1.0f, 3.0f, 1e6f, 0x1p40f}) {
        const std::vector<float> elements = {length, -length / 2};
        Execution execution(1);
        const auto scale = movers_scale({elements.data(), 2, 1}, execution);
        ASSERT_TRUE(scale.ok()) << length;
        EXPECT_LT(std::ldexp(2 * double{length}, *scale), 0x1p29);
        EXPECT_GE(std::ldexp(2 * double{length}, *scale), 0x1p28);
    }
    const std::vector<float> zeros(4);
    Execution execution(1);
    EXPECT_EQ(*movers_scale({zeros.data(), 2, 2}, execution), 0);
    EXPECT_EQ(*movers_scale({nullptr, 0, 0}, execution), 0);
    for (const float length : {0x1p-41f, 0x1p41f, INFINITY, NAN}) {
        const std::vector<float> elements = {length};
        EXPECT_EQ(movers_scale({elements.data(), 1, 1}, execution).status().code(),
                  ErrorCode::invalid_argument);
    }
}

TEST(WordMovers, EndSoonWhenStopped) {
    const RandomModel model(12000, 4, 13);
    PackedPairs pairs;
    std::vector<std::uint32_t> first, second;
    for (std::uint32_t i = 0; i < 6000; ++i) first.push_back(i), second.push_back(6000 + i);
    pairs.append(first, second);
    Execution execution(1);
    execution.request_stop();
    EXPECT_EQ(word_movers_distances({}, model.view(), pairs.view(), execution).status().code(),
              ErrorCode::cancelled);
    // While it computes the distances of words, and while it moves them
    for (const int time : {20, 600})
        testing::expect_stops_soon(
            [&](Execution& later) {
                const Status status =
                    word_movers_distances({}, model.view(), pairs.view(), later).status();
                EXPECT_EQ(status.code(), ErrorCode::cancelled);
                return status;
            },
            testing::after_begin_of("moving words", time), 4 * testing::kSoon);
}

}  // namespace
}  // namespace gputext
