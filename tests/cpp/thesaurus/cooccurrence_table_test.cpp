#include "cpp/thesaurus/cooccurrence_table.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

namespace gputext {
namespace {

std::vector<std::uint32_t> random_order(std::uint32_t words, std::mt19937_64& random) {
    std::vector<std::uint32_t> order(words);
    std::iota(order.begin(), order.end(), 0u);
    std::ranges::shuffle(order, random);
    return order;
}

/// Half of them of a few words, some counts 0.
std::vector<CountedTriple> random_triples(std::size_t count, std::uint32_t words,
                                          std::mt19937_64& random) {
    std::vector<CountedTriple> triples;
    for (std::size_t i = 0; i < count; ++i) {
        const std::uint64_t below = random() % 2 == 0 ? words : std::min(words, 3u);
        const auto word = static_cast<std::uint32_t>(random() % below);
        const auto neighbor = static_cast<std::uint32_t>(random() % words);
        const int offset = static_cast<int>(random() % 2);
        triples.push_back({random() % 4, word, neighbor, offset == 0 ? -1 : 2});
    }
    return triples;
}

/// In a map.
Cooccurrences plain_counts(const CooccurrenceShape& shape, std::span<const std::uint32_t> order,
                           std::span<const CountedTriple> triples) {
    std::vector<std::uint32_t> numbers(order.size());
    for (std::uint32_t i = 0; i < order.size(); ++i) numbers[order[i]] = i;
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint64_t> sums;
    for (const CountedTriple& triple : triples)
        sums[{numbers[triple.word], shape.relation_of(triple.offset) * shape.words +
                                        numbers[triple.neighbor]}] += triple.count;
    Cooccurrences counts;
    counts.begins.resize(shape.words + 1);
    for (const auto& [place, count] : sums) {
        if (count == 0) continue;
        ++counts.begins[place.first + 1];
        counts.columns.push_back(place.second);
        counts.counts.push_back(static_cast<std::uint32_t>(count));
    }
    std::partial_sum(counts.begins.begin(), counts.begins.end(), counts.begins.begin());
    return counts;
}

TEST(CooccurrenceTable, IsThatOfAMapOnAnyNumberOfThreads) {
    std::mt19937_64 random(1);
    // Fewer words than buckets, and more; triples of several chunks.
    for (const std::uint32_t words : {1u, 7u, 1000u, 5000u})
        for (const std::size_t count : {0, 1, 1000, 300'000}) {
            const auto order = random_order(words, random);
            const auto triples = random_triples(count, words, random);
            for (const unsigned threads : {1, 2, 5}) {
                Execution execution(threads);
                const auto shape = shape_of_triples(words, triples, execution);
                ASSERT_TRUE(shape.ok()) << shape.status().message();
                const auto found = collect_triples(*shape, order, triples, execution);
                ASSERT_TRUE(found.ok()) << found.status().message();
                const Cooccurrences wanted = plain_counts(*shape, order, triples);
                ASSERT_EQ(found->begins, wanted.begins);
                ASSERT_EQ(found->columns, wanted.columns);
                ASSERT_EQ(found->counts, wanted.counts);
            }
        }
}

TEST(CooccurrenceTable, HasTheWindowOfItsTriples) {
    Execution execution(2);
    const std::vector<CountedTriple> with{{1, 0, 1, -3}, {1, 1, 0, 2}}, without{{1, 0, 1, 0}},
        mixed{{1, 0, 1, 0}, {1, 0, 1, 1}}, beyond{{1, 0, 1, -101}};
    EXPECT_EQ(*shape_of_triples(2, with, execution), (CooccurrenceShape{2, 3, true}));
    EXPECT_EQ(*shape_of_triples(2, without, execution), (CooccurrenceShape{2, 1, false}));
    for (const auto& triples : {mixed, beyond})
        EXPECT_EQ(shape_of_triples(2, triples, execution).status().code(),
                  ErrorCode::invalid_argument);
}

TEST(CooccurrenceTable, RefusesWhatCannotBeCounted) {
    Execution execution(2);
    const CooccurrenceShape shape{2, 1, true};
    const auto code = [&](std::vector<std::uint32_t> order, std::vector<CountedTriple> triples) {
        return collect_triples(shape, order, triples, execution).status().code();
    };
    const std::uint64_t most = UINT32_MAX;
    EXPECT_EQ(code({1, 0}, {{most, 0, 1, 1}}), ErrorCode::ok);
    EXPECT_EQ(code({1, 0}, {{most, 0, 1, 1}, {1, 0, 1, 1}}), ErrorCode::invalid_argument);
    EXPECT_EQ(code({1, 0}, {{UINT64_MAX, 0, 1, 1}, {1, 0, 1, 1}}), ErrorCode::invalid_argument);
    EXPECT_EQ(code({1, 0}, {{1, 2, 1, 1}}), ErrorCode::invalid_argument);
    EXPECT_EQ(code({1, 0}, {{1, 0, 2, 1}}), ErrorCode::invalid_argument);
    EXPECT_EQ(code({1, 1}, {}), ErrorCode::invalid_argument);
    EXPECT_EQ(code({1}, {}), ErrorCode::invalid_argument);
    execution.request_stop();
    EXPECT_EQ(code({1, 0}, {{1, 0, 1, 1}}), ErrorCode::cancelled);
}

}  // namespace
}  // namespace gputext
