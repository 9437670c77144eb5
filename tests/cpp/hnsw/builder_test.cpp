#include "cpp/hnsw/builder.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <queue>
#include <set>

#include "cpp/base/counter_random.hpp"
#include "cpp/knn/probed_clusters.hpp"
#include "tests/support/test_size.hpp"
#include "tests/support/vector_rows.hpp"

namespace gputext {
namespace {

using testing::DoubleRows;
using testing::kFewer;
using testing::RandomRows;
using testing::rounds;
using testing::Shape;
using testing::TypedRows;

HnswGraph build(const HnswParameters& parameters, const Vectors& values,
                std::span<const std::uint32_t> copy_of = {}, unsigned threads = 3) {
    Execution execution(threads);
    HnswBuilder builder(parameters, values, copy_of);
    EXPECT_TRUE(builder.begin(execution).ok());
    while (builder.has_layer()) {
        auto links = link_layer(builder.layer(), execution);
        EXPECT_TRUE(links.ok()) << links.status().message();
        EXPECT_TRUE(builder.add(*links, execution).ok());
    }
    EXPECT_EQ(builder.linked(), builder.to_link());
    return builder.take();
}

/// Returns the centroids, which have to outlive the clusters.
std::vector<float> set_clusters(ProbedClusters& clusters, const Vectors& values) {
    Execution execution(2);
    auto centroids = ProbedClusters::centroids_of(values, best_simd(), execution);
    EXPECT_TRUE(centroids.ok());
    const Vectors view{ElementType::float32,
                       centroids->size() / values.dimensions,
                       values.dimensions,
                       centroids->data(),
                       {},
                       {}};
    EXPECT_TRUE(clusters.set(view, values, best_simd(), execution).ok());
    return std::move(*centroids);
}

// ---- The graph by its definition ----

using Near = std::pair<double, std::uint32_t>;

class PlainHnsw {
public:
    PlainHnsw(const HnswParameters& parameters, const Vectors& values, std::size_t distinct)
        : parameters_(parameters),
          values_(values),
          distances_(parameters.links.metric, values, values, Simd::portable),
          distinct_(distinct) {}

    unsigned level(std::uint32_t element) const {
        const std::uint64_t random = random_bits(random_key(0, 0x686e7377, parameters_.m), element);
        std::uint64_t limit = UINT64_MAX;
        unsigned level = 0;
        while (level < parameters_.highest_level && random < (limit /= parameters_.m)) ++level;
        return level;
    }

    /// The neighbors of all elements in a layer; empty for those that are not in it.
    std::vector<std::vector<std::uint32_t>> layer(unsigned layer) {
        const std::size_t places = layer == 0 ? 2 * parameters_.m : parameters_.m;
        std::vector<std::set<std::uint32_t>> linked(distinct_);
        ProbedClusters clusters;
        Execution execution(2);
        if (layer == 0 && distinct_ > parameters_.links.exact_rows &&
            parameters_.links.metric != Metric::inner_product) {
            centroids_ = set_clusters(clusters, values_);
            auto probed =
                clusters.nearest(values_, clusters.probes_of_row(), best_simd(), execution);
            EXPECT_TRUE(probed.ok());
            probed_ = std::move(*probed);
        }
        for (std::uint32_t e = 0; e < distinct_; ++e) {
            if (level(e) < layer) continue;
            std::vector<Near> before;
            for (std::uint32_t other = 0; other < e; ++other)
                if (level(other) >= layer && may_link(clusters, e, other))
                    before.emplace_back(distance(e, other), other);
            std::sort(before.begin(), before.end());
            if (before.size() > parameters_.links.candidates)
                before.resize(parameters_.links.candidates);
            for (const std::uint32_t to : choose(before, places, 1)) {
                linked[e].insert(to);
                linked[to].insert(e);
            }
        }
        std::vector<std::vector<std::uint32_t>> neighbors(distinct_);
        for (std::uint32_t e = 0; e < distinct_; ++e) {
            std::vector<Near> all;
            for (const std::uint32_t other : linked[e]) all.emplace_back(distance(e, other), other);
            std::sort(all.begin(), all.end());
            neighbors[e] = choose(
                all, places, parameters_.links.metric == Metric::inner_product ? 1 : 17.0 / 16);
        }
        return neighbors;
    }

private:
    double distance(std::uint32_t a, std::uint32_t b) {
        distances_.set_query(a);
        return distances_(b);
    }

    std::vector<std::uint32_t> choose(const std::vector<Near>& list, std::size_t limit,
                                      double slack) {
        std::vector<std::uint32_t> chosen, left;
        for (const auto& [far, element] : list) {
            const bool nearer = std::any_of(chosen.begin(), chosen.end(),
                                            [&, of = element, d = far](std::uint32_t other) {
                                                return distance(of, other) <= d / slack;
                                            });
            if (chosen.size() < limit) (nearer ? left : chosen).push_back(element);
        }
        for (const std::uint32_t element : left)
            if (chosen.size() < limit) chosen.push_back(element);
        // A list that fits is kept in its own order.
        if (list.size() <= limit) {
            chosen.clear();
            for (const auto& [far, element] : list) chosen.push_back(element);
        }
        return chosen;
    }

    bool may_link(const ProbedClusters& clusters, std::uint32_t e, std::uint32_t other) const {
        const std::size_t exact = parameters_.links.exact_rows,
                          together = parameters_.links.probing_rows;
        if (clusters.size() == 0 || e < exact) return true;
        const std::size_t block = (e - exact) / together * together + exact;
        const std::size_t probes = clusters.probes_of_row();
        const auto probed = std::span(probed_).subspan(e * probes, probes);
        return other >= block ||
               std::count(probed.begin(), probed.end(), clusters.cluster_of(other)) > 0;
    }

    const HnswParameters& parameters_;
    const Vectors& values_;
    Distances distances_;
    std::size_t distinct_;
    std::vector<float> centroids_;
    std::vector<std::uint16_t> probed_;
};

std::vector<std::uint32_t> neighbors_of(const HnswGraph& graph, std::size_t element,
                                        unsigned layer) {
    std::vector<std::uint32_t> neighbors;
    for (const std::uint32_t other : graph.neighbors(element, layer)) {
        if (other == kNoElement) break;
        neighbors.push_back(other);
    }
    const auto places = graph.neighbors(element, layer);
    EXPECT_TRUE(std::all_of(places.begin() + static_cast<std::ptrdiff_t>(neighbors.size()),
                            places.end(), [](std::uint32_t n) { return n == kNoElement; }));
    return neighbors;
}

void expect_defined(const HnswGraph& graph, const HnswParameters& parameters,
                    const Vectors& values) {
    PlainHnsw plain(parameters, values, values.rows);
    unsigned highest = 0;
    ASSERT_EQ(graph.size(), values.rows);
    for (std::uint32_t e = 0; e < values.rows; ++e) {
        EXPECT_EQ(graph.level(e), plain.level(e));
        highest = std::max(highest, graph.level(e));
    }
    for (std::uint32_t e = 0; e < graph.entry(); ++e) EXPECT_LT(graph.level(e), highest);
    EXPECT_EQ(graph.level(graph.entry()), highest);
    for (unsigned layer = 0; layer <= highest; ++layer) {
        const auto wanted = plain.layer(layer);
        for (std::uint32_t e = 0; e < values.rows; ++e)
            if (graph.level(e) >= layer) {
                EXPECT_EQ(neighbors_of(graph, e, layer), wanted[e])
                    << "of " << e << " in layer " << layer;
            }
    }
}

TEST(HnswBuilder, MakesTheGraphOfItsDefinition) {
    RandomRows random;
    for (int round = 0; round < rounds(12, 60); ++round) {
        HnswParameters parameters;
        parameters.m = static_cast<unsigned>(2 + random.below(15));
        parameters.links.candidates = 1 + random.below(60);
        parameters.links.metric = std::array{Metric::euclidean, Metric::inner_product,
                                             Metric::manhattan}[random.below(3)];
        parameters.highest_level =
            static_cast<unsigned>(random.below(4) == 0 ? random.below(3) : 255);
        parameters.links.block_rows = 1 + random.below(600);
        const std::size_t d = 1 + random.below(40), rows = random.below(700);
        const Shape shape = std::array{Shape::gaussian, Shape::grid, Shape::copies,
                                       Shape::clusters}[random.below(4)];
        const TypedRows values(random.rows(shape, rows, d),
                               random.below(2) == 0 ? ElementType::float32 : ElementType::float16,
                               d);
        if (rows == 0) {
            EXPECT_EQ(build(parameters, values.vectors()).entry(), kNoElement);
            continue;
        }
        expect_defined(build(parameters, values.vectors()), parameters, values.vectors());
    }
}

TEST(HnswBuilder, ProbesClustersOfManyRows) {
    RandomRows random;
    const std::size_t d = 8;
    const TypedRows values(random.rows(Shape::gaussian, 4000, d), ElementType::float32, d);
    HnswParameters parameters;
    parameters.m = 6;
    parameters.links.candidates = 30;
    parameters.links.exact_rows = 1000;
    parameters.links.probing_rows = 700;
    expect_defined(build(parameters, values.vectors()), parameters, values.vectors());
    // Smaller blocks of the first rows make no difference, nor does the number of threads.
    parameters.links.block_rows = 300;
    expect_defined(build(parameters, values.vectors(), {}, 1), parameters, values.vectors());
    // By inner product the nearest row may be in any cluster.
    parameters.links.metric = Metric::inner_product;
    expect_defined(build(parameters, values.vectors()), parameters, values.vectors());
}

// The sample is of all rows, not of the first ones.
TEST(ProbedClusters, AreOfRowsEverywhere) {
    constexpr std::size_t rows = 2 * ProbedClusters::sample;
    std::vector<float> values(rows);
    for (std::size_t row = 0; row < rows; ++row)
        values[row] = static_cast<float>(row < rows / 2 ? row : 1'000'000 + row);
    const Vectors vectors{ElementType::float32, rows, 1, values.data(), {}, {}};
    ProbedClusters clusters;
    const std::vector<float> centroids = set_clusters(clusters, vectors);
    std::set<std::uint16_t> later;
    for (std::size_t row = rows / 2; row < rows; ++row) later.insert(clusters.cluster_of(row));
    EXPECT_GT(later.size(), clusters.size() / 4);
}

// Stretches and leaves of a block, which are of thousands of rows
TEST(HnswBuilder, MakesTheGraphOfItsDefinitionOfManyRows) {
    RandomRows random;
    HnswParameters parameters;
    parameters.m = 4;
    parameters.links.candidates = 20;
    parameters.links.block_rows = 4500;
    const TypedRows values(random.rows(Shape::clusters, kFewer ? 5000 : 12000, 3),
                           ElementType::float32, 3);
    expect_defined(build(parameters, values.vectors()), parameters, values.vectors());
}

// They are at distance 0, and no copies: k-means finds but one of them.
TEST(HnswBuilder, LinksRowsThatDifferInTheSignsOfZeros) {
    constexpr std::size_t dimensions = 9, rows = 512;
    std::vector<float> zeros(rows * dimensions);
    for (std::size_t i = 0; i < zeros.size(); ++i)
        zeros[i] = (i / dimensions >> i % dimensions & 1) != 0 ? -0.0f : 0.0f;
    Vectors values;
    values.rows = rows;
    values.dimensions = dimensions;
    values.elements = zeros.data();
    HnswParameters parameters;
    parameters.links.exact_rows = 100;
    parameters.links.probing_rows = 50;
    const HnswGraph graph = build(parameters, values);
    for (std::size_t element = 0; element < rows; ++element)
        EXPECT_NE(graph.neighbors(element, 0)[0], kNoElement);
}

TEST(HnswBuilder, ChainsCopies) {
    RandomRows random;
    const std::size_t distinct = 50;
    DoubleRows rows = random.rows(Shape::gaussian, distinct, 5);
    std::vector<std::uint32_t> copy_of;
    for (int copy = 0; copy < 40; ++copy) {
        copy_of.push_back(copy % 3 == 0 ? 7u : copy % 3 == 1 ? 9u : 7u);
        rows.push_back(rows[copy_of.back()]);
    }
    const TypedRows values(rows, ElementType::float32, 5);
    HnswParameters parameters;
    parameters.m = 4;
    const HnswGraph graph = build(parameters, values.vectors(), copy_of);
    const HnswGraph alone = [&] {
        Vectors distinct_values = values.vectors();
        distinct_values.rows = distinct;
        return build(parameters, distinct_values);
    }();
    for (std::uint32_t e = 0; e < distinct; ++e)
        if (e != 7 && e != 9) {
            EXPECT_EQ(neighbors_of(graph, e, 0), neighbors_of(alone, e, 0));
        }
    std::vector<std::uint32_t> chain{7};
    for (std::uint32_t copy = 0; copy < copy_of.size(); ++copy)
        if (copy_of[copy] == 7) chain.push_back(static_cast<std::uint32_t>(distinct + copy));
    for (std::size_t at = 0; at < chain.size(); ++at) {
        EXPECT_TRUE(at == 0 || graph.level(chain[at]) == 0);
        std::vector<std::uint32_t> wanted;
        for (std::size_t far = 1; far <= 2; ++far) {
            if (at >= far) wanted.push_back(chain[at - far]);
            if (at + far < chain.size()) wanted.push_back(chain[at + far]);
        }
        for (const std::uint32_t other : neighbors_of(alone, 7, 0))
            if (wanted.size() < 8) wanted.push_back(other);
        EXPECT_EQ(neighbors_of(graph, chain[at], 0), wanted);
    }
}

TEST(HnswBuilder, StopsWhenAsked) {
    RandomRows random;
    const TypedRows values(random.rows(Shape::gaussian, 3000, 20), ElementType::float32, 20);
    Execution execution(2);
    HnswBuilder builder({}, values.vectors(), {});
    ASSERT_TRUE(builder.begin(execution).ok());
    execution.request_stop();
    EXPECT_EQ(link_layer(builder.layer(), execution).status().code(), ErrorCode::cancelled);
}

// ---- Whether searches find what they look for ----

/// As pgvector searches.
std::vector<std::uint32_t> search(const HnswGraph& graph, const Vectors& values,
                                  const Vectors& queries, std::size_t query, std::size_t ef,
                                  std::size_t k) {
    Distances from(Metric::euclidean, queries, values, best_simd());
    from.set_query(query);
    std::set<Near> found{{from(graph.entry()), graph.entry()}};
    for (int layer = static_cast<int>(graph.level(graph.entry())); layer >= 0; --layer) {
        const std::size_t most = layer == 0 ? ef : 1;
        std::set<std::uint32_t> seen;
        std::priority_queue<Near, std::vector<Near>, std::greater<>> next;
        for (const Near& near : found) {
            next.push(near);
            seen.insert(near.second);
        }
        while (!next.empty() &&
               !(found.size() == most && next.top().first > found.rbegin()->first)) {
            const std::uint32_t at = next.top().second;
            next.pop();
            for (const std::uint32_t other :
                 neighbors_of(graph, at, static_cast<unsigned>(layer))) {
                if (!seen.insert(other).second) continue;
                const Near near{from(other), other};
                if (found.size() == most && near.first >= found.rbegin()->first) continue;
                found.insert(near);
                next.push(near);
                if (found.size() > most) found.erase(std::prev(found.end()));
            }
        }
    }
    std::vector<std::uint32_t> nearest;
    for (const Near& near : found)
        if (nearest.size() < k) nearest.push_back(near.second);
    return nearest;
}

TEST(HnswBuilder, LetsSearchesFindTheNearest) {
    RandomRows random;
    const std::size_t d = 16, k = 10;
    const TypedRows values(random.rows(Shape::clusters, kFewer ? 3000 : 20000, d),
                           ElementType::float32, d);
    const TypedRows queries(random.rows(Shape::clusters, 100, d), ElementType::float32, d);
    const HnswGraph graph = build({}, values.vectors());
    Execution execution(2);
    KnnParameters parameters;
    parameters.k = k;
    parameters.metric = Metric::euclidean;
    const auto exact = knn(parameters, queries.vectors(), values.vectors(), {}, execution);
    ASSERT_TRUE(exact.ok());
    std::size_t hits = 0;
    for (std::size_t query = 0; query < 100; ++query) {
        const auto found = search(graph, values.vectors(), queries.vectors(), query, 100, k);
        for (std::uint64_t i = exact->begins[query]; i < exact->begins[query + 1]; ++i)
            hits += std::count(found.begin(), found.end(), exact->items[i]) > 0;
    }
    EXPECT_GE(hits, 970u);
}

}  // namespace
}  // namespace gputext
