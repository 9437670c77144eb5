#include "cpp/thesaurus/cooccurrences.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <string_view>

#include "cpp/base/natural_functions.hpp"
#include "cpp/thesaurus/feature_weights.hpp"
#include "tests/support/plain_cooccurrences.hpp"
#include "tests/support/stops_soon.hpp"

namespace gputext {
namespace {

using testing::kSanitized;
using testing::plain_counts;
using testing::plain_weights;
using testing::PlainCounts;
using testing::PlainStream;
using testing::random_stream;
using testing::RandomStrings;

constexpr std::size_t kMuch = std::size_t{1} << 30;

Cooccurrences count(const CooccurrenceShape& shape, const PlainStream& stream, unsigned threads = 2,
                    std::size_t memory = kMuch) {
    Execution execution(threads);
    auto counts = count_cooccurrences(shape, stream.view(), memory, execution);
    EXPECT_TRUE(counts.ok()) << counts.status().message();
    return counts.ok() ? std::move(*counts) : Cooccurrences{};
}

/// Rows whose features ascend, of counts above 0, symmetric.
void expect_well_formed(const Cooccurrences& counts) {
    ASSERT_EQ(counts.begins.size(), counts.shape.words + 1);
    ASSERT_EQ(counts.begins.back(), counts.stored());
    for (std::uint32_t word = 0; word < counts.shape.words; ++word)
        for (auto i = counts.begins[word]; i < counts.begins[word + 1]; ++i) {
            ASSERT_GT(counts.counts[i], 0u);
            if (i > counts.begins[word]) {
                ASSERT_LT(counts.columns[i - 1], counts.columns[i]);
            }
        }
    const PlainCounts plain = plain_counts(counts);
    for (const auto& [triple, times] : plain) {
        const auto& [word, relation, neighbor] = triple;
        const auto opposite = counts.shape.positions
                                  ? counts.shape.relation_of(-counts.shape.offset_of(relation))
                                  : 0;
        ASSERT_EQ(plain.at({neighbor, opposite, word}), times);
    }
}

/// Section 3.3 of the thesis: `a` is a stop word and keeps its place. I, have, black, cat are 0 to
/// 3. The thesis lists six of the triples that it defines and leaves out <black, 1, cat> and
/// <I, 3, black> with their opposites.
TEST(Cooccurrences, AreTheThesissTriples) {
    const CooccurrenceShape shape{.words = 4, .window = 3};
    PlainStream stream;
    stream.add_text({0, 1, 9, 2, 3}, shape);
    const auto triple = [&](std::uint32_t word, std::int32_t offset, std::uint32_t neighbor) {
        return std::tuple{word, shape.relation_of(offset), neighbor};
    };
    const PlainCounts wanted{{triple(0, 1, 1), 1},  {triple(1, 2, 2), 1},  {triple(1, 3, 3), 1},
                             {triple(1, -1, 0), 1}, {triple(2, -2, 1), 1}, {triple(3, -3, 1), 1},
                             {triple(2, 1, 3), 1},  {triple(3, -1, 2), 1}, {triple(0, 3, 2), 1},
                             {triple(2, -3, 0), 1}};
    EXPECT_EQ(plain_counts(count(shape, stream)), wanted);
}

TEST(Cooccurrences, EqualAPlainCountAtAnyMemoryAndThreads) {
    RandomStrings random;
    for (int round = 0; round < testing::rounds(kSanitized ? 40 : 300); ++round) {
        CooccurrenceShape shape;
        shape.words = static_cast<std::uint32_t>(1 + random.below(random.below(2) == 0 ? 5 : 200));
        const std::uint32_t windows[] = {1, 2, 3, 10, 100};
        shape.window = windows[random.below(5)];
        shape.positions = random.below(3) != 0;
        const PlainStream stream = random_stream(random, shape, random.below(500));
        const PlainCounts wanted = plain_counts(shape, stream);
        for (const unsigned threads : {1u, 3u})
            for (const std::size_t memory : {std::size_t{0}, std::size_t{1000}, kMuch}) {
                const Cooccurrences counts = count(shape, stream, threads, memory);
                ASSERT_EQ(counts.shape, shape);
                ASSERT_NO_FATAL_FAILURE(expect_well_formed(counts));
                ASSERT_EQ(plain_counts(counts), wanted);
            }
    }
}

/// More columns than are counted at a time.
TEST(Cooccurrences, OfManyColumnsAreCountedInParts) {
    RandomStrings random;
    const CooccurrenceShape shape{.words = 50000, .window = 100};
    const PlainStream stream = random_stream(random, shape, 3000);
    const PlainCounts wanted = plain_counts(shape, stream);
    for (const std::size_t memory : {std::size_t{0}, kMuch})
        ASSERT_EQ(plain_counts(count(shape, stream, 2, memory)), wanted);
}

TEST(Cooccurrences, VariantsOfAWordAreNotItsNeighbors) {
    const CooccurrenceShape shape{.words = 3, .window = 1};
    PlainStream stream;
    stream.words = {0, 1, 2};
    stream.positions = {7, 7, 8};
    const PlainCounts wanted{{{0, 1, 2}, 1}, {{1, 1, 2}, 1}, {{2, 0, 0}, 1}, {{2, 0, 1}, 1}};
    EXPECT_EQ(plain_counts(count(shape, stream)), wanted);
}

TEST(Cooccurrences, OfAWordBesideItselfCountTwiceWithoutPositions) {
    PlainStream stream;
    stream.words = {0, 0};
    stream.positions = {0, 1};
    EXPECT_EQ(plain_counts(count({.words = 1, .window = 1, .positions = false}, stream)),
              (PlainCounts{{{0, 0, 0}, 2}}));
    EXPECT_EQ(plain_counts(count({.words = 1, .window = 1}, stream)),
              (PlainCounts{{{0, 0, 0}, 1}, {{0, 1, 0}, 1}}));
}

TEST(Cooccurrences, EndWithTheirText) {
    const CooccurrenceShape shape{.words = 4, .window = 3};
    PlainStream stream;
    stream.add_text({0, 1}, shape);
    stream.add_text({2, 3}, shape);
    EXPECT_EQ(plain_counts(count(shape, stream)),
              (PlainCounts{{{0, 3, 1}, 1}, {{1, 2, 0}, 1}, {{2, 3, 3}, 1}, {{3, 2, 2}, 1}}));
}

TEST(Cooccurrences, OfNoWordsAreNone) {
    EXPECT_EQ(count({.words = 0}, {}).begins, (std::vector<std::uint64_t>{0}));
    EXPECT_EQ(count({.words = 2}, {}).begins, (std::vector<std::uint64_t>{0, 0, 0}));
}

TEST(Cooccurrences, RefuseWhatCannotBeCounted) {
    const auto message = [](const CooccurrenceShape& shape, const PlainStream& stream) {
        Execution execution(2);
        const auto counts = count_cooccurrences(shape, stream.view(), kMuch, execution);
        EXPECT_EQ(counts.status().code(), ErrorCode::invalid_argument);
        return counts.status().message();
    };
    PlainStream one, falling, uneven;
    one.words = {3}, one.positions = {0};
    falling.words = {0, 0}, falling.positions = {1, 0};
    uneven.words = {0};
    EXPECT_EQ(message({.words = 3, .window = 0}, {}), "the window must be from 1 to 100, not 0");
    EXPECT_EQ(message({.words = 3, .window = 101}, {}),
              "the window must be from 1 to 100, not 101");
    EXPECT_EQ(message({.words = 1u << 31, .window = 1}, {}),
              "2147483648 words in 2 places make more features than the 4294967295 that there may "
              "be");
    EXPECT_EQ(message({.words = 3}, one), "word 3 is not of the vocabulary, which has 3");
    EXPECT_EQ(message({.words = 3}, falling), "the positions of words must ascend");
    EXPECT_EQ(message({.words = 3}, uneven), "there must be a position for each word");
}

/// 46341 at one place beside as many: twice the square of that is more than 2^32.
TEST(Cooccurrences, RefuseCountsAbove32Bits) {
    if (kSanitized) GTEST_SKIP() << "takes minutes";
    constexpr std::uint32_t many = 46341;
    PlainStream stream;
    stream.words.assign(2 * many, 0);
    stream.positions.assign(many, 0);
    stream.positions.resize(2 * many, 1);
    Execution execution(2);
    const auto counts = count_cooccurrences({.words = 1, .window = 1, .positions = false},
                                            stream.view(), kMuch, execution);
    EXPECT_EQ(counts.status().code(), ErrorCode::invalid_argument);
    EXPECT_EQ(counts.status().message(),
              "two words stand near one another more than 4294967295 times");
}

TEST(Cooccurrences, KeepToTheAnswerLimit) {
    RandomStrings random;
    const CooccurrenceShape shape{.words = 500, .window = 20};
    const PlainStream stream = random_stream(random, shape, 20000);
    const Cooccurrences wanted = count(shape, stream);
    const std::size_t bytes = wanted.stored() * kBytesOfTriple;
    Execution execution(2);
    const auto within = count_cooccurrences(shape, stream.view(), kMuch, execution, bytes);
    ASSERT_TRUE(within.ok()) << within.status().message();
    EXPECT_EQ(within->columns, wanted.columns);
    EXPECT_EQ(within->counts, wanted.counts);
    const auto above = count_cooccurrences(shape, stream.view(), kMuch, execution, bytes - 1);
    EXPECT_EQ(above.status().code(), ErrorCode::memory_limit);
    EXPECT_EQ(above.status().message().find("the counts would take at least "), 0u)
        << above.status().message();
}

TEST(Cooccurrences, StopSoonAtAnyTime) {
    RandomStrings random;
    const CooccurrenceShape shape{.words = 20000, .window = 5};
    const PlainStream stream = random_stream(random, shape, kSanitized ? 200000 : 3000000);
    for (const int time : {0, 5, 20, 50, 100, 200}) {
        SCOPED_TRACE(std::to_string(time) + " ms");
        testing::expect_stops_soon(
            [&](Execution& execution) -> Status {
                const auto counts = count_cooccurrences(shape, stream.view(), kMuch, execution);
                if (!counts.ok()) return counts.status();
                return weigh_features({}, *counts, execution).status();
            },
            testing::after(time));
    }
}

/// All tokens are of one word, whose row one thread counts.
TEST(Cooccurrences, StopSoonWithinARow) {
    PlainStream stream;
    stream.words.assign(kSanitized ? 2000000 : 20000000, 0);
    stream.positions.resize(stream.words.size());
    std::iota(stream.positions.begin(), stream.positions.end(), 0u);
    testing::expect_stops_soon(
        [&](Execution& execution) {
            const Status status =
                count_cooccurrences({.words = 1, .window = 20}, stream.view(), kMuch, execution)
                    .status();
            EXPECT_EQ(status.code(), ErrorCode::cancelled);
            return status;
        },
        testing::after_begin_of("counting neighbors", 20));
}

TEST(WordWeights, AreTheThesissWithinHalfAUnit) {
    RandomStrings random;
    for (int round = 0; round < testing::rounds(kSanitized ? 40 : 300); ++round) {
        CooccurrenceShape shape;
        shape.words = static_cast<std::uint32_t>(1 + random.below(random.below(2) == 0 ? 5 : 200));
        shape.window = static_cast<std::uint32_t>(1 + random.below(4));
        shape.positions = random.below(3) != 0;
        const PlainStream stream = random_stream(random, shape, random.below(2000));
        WeightParameters parameters;
        parameters.weight = static_cast<WordWeight>(random.below(3));
        parameters.discount = random.below(3) == 0   ? 0
                              : random.below(3) == 0 ? static_cast<double>(random.below(4))
                                                     : 0.95;
        parameters.features = random.below(3) == 0 ? 1 + random.below(shape.columns() + 5) : 0;
        const Cooccurrences counts = count(shape, stream);
        const PlainCounts plain = plain_counts(counts);
        const auto wanted = plain_weights(parameters, plain);
        Execution execution(1 + static_cast<unsigned>(random.below(3)));
        const auto weights = weigh_counts(parameters, counts, execution);
        const auto features = weigh_features(parameters, counts, execution);
        ASSERT_TRUE(weights.ok() && features.ok());
        ASSERT_EQ(weights->size(), counts.stored());
        const double unit = weight_unit(parameters.weight);
        const std::uint64_t relations = shape.relations();
        const std::uint64_t neighbors = parameters.features == 0
                                             ? shape.words
                                             : (parameters.features + relations - 1) / relations;
        std::uint64_t kept = 0;
        for (std::uint32_t word = 0; word < shape.words; ++word) {
            ASSERT_EQ(features->begins[word], kept);
            for (auto i = counts.begins[word]; i < counts.begins[word + 1]; ++i) {
                const std::uint16_t weight = (*weights)[i];
                if (weight != 0) {
                    ASSERT_EQ(features->columns[kept], counts.columns[i]);
                    ASSERT_EQ(features->weights[kept++], weight);
                }
                if (counts.columns[i] % shape.words >= neighbors) {
                    ASSERT_EQ(weight, 0);
                    continue;
                }
                const long double exact = std::max<long double>(0, wanted[i] / unit);
                ASSERT_LE(std::abs(weight - exact), 0.5L + 1e-9L) << wanted[i];
            }
        }
        ASSERT_EQ(features->begins.back(), kept);
        ASSERT_EQ(features->columns.size(), kept);
        ASSERT_EQ(features->weights.size(), kept);
    }
}

TEST(WordWeights, AreCutOffAt16Bits) {
    Cooccurrences counts;
    counts.shape = {.words = 1, .window = 1, .positions = false};
    counts.begins = {0, 1};
    counts.columns = {0};
    Execution execution(1);
    for (const auto& [count, weight] :
         {std::pair{1u, 0}, {2u, 1}, {65536u, 65535}, {65537u, 65535}, {UINT32_MAX, 65535}}) {
        counts.counts = {count};
        EXPECT_EQ(weigh_counts({WordWeight::count, 0.95}, counts, execution)->front(),
                  count == 1 ? 0 : weight);
    }
    counts.counts = {3};
    EXPECT_EQ(weigh_counts({WordWeight::count, 2.5}, counts, execution)->front(), 1);
    EXPECT_EQ(weigh_counts({WordWeight::count, 2.75}, counts, execution)->front(), 0);
}

TEST(WordWeights, RefuseWhatCannotBeWeighed) {
    Execution execution(1);
    for (const double discount : {-0.5, 1000.5, std::nan("")})
        EXPECT_EQ(weigh_features({WordWeight::lin, discount}, count({.words = 1}, {}), execution)
                      .status()
                      .message(),
                  "the discount must be from 0 to 1000");
    Cooccurrences counts = count({.words = 1}, {});
    counts.begins.clear();
    EXPECT_EQ(weigh_features({}, counts, execution).status().message(),
              "there must be a row of counts for each word");
}

TEST(NaturalLog, IsTheLibrarysWithinTheStatedError) {
    RandomStrings random;
    for (int i = 0; i < 200000; ++i) {
        const double x = std::ldexp(1 + static_cast<double>(random.below(1 << 30)) / (1 << 30),
                                    static_cast<int>(random.below(i % 2 == 0 ? 3 : 400)) - 1);
        const double wanted = std::log(x);
        ASSERT_LE(std::abs(natural_log(x) - wanted),
                  std::max(std::abs(wanted) * 0x1p-51, 0x1p-52) + std::abs(wanted) * 0x1p-53)
            << x;
    }
    EXPECT_EQ(natural_log(1), 0);
    EXPECT_EQ(natural_log(2), 0x1.62e42fefa39efp-1);
}

}  // namespace
}  // namespace gputext
