#include "cpp/strings/string_distance.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <numeric>
#include <random>

#include "tests/support/plain_strings.hpp"
#include "tests/support/test_size.hpp"

namespace gputext {
namespace {

using testing::kAllStringMetrics;
using testing::name_of;
using testing::plain_damerau_levenshtein;
using testing::plain_edits;
using testing::plain_jaro;
using testing::plain_jaro_winkler;
using testing::plain_string_distance;
using testing::RandomNames;
using testing::String;
using testing::string_of;

std::uint64_t bits(double number) {
    return std::bit_cast<std::uint64_t>(number);
}

/// Of random strings, two thirds related, as the metric wants them.
struct Pairs {
    RandomNames random;
    std::vector<String> strings;

    const String& any() { return strings[random.below(strings.size())]; }
    void draw(StringMetric metric, std::size_t longest) {
        strings = random.strings(20, longest);
        if (metric == StringMetric::trigram)
            for (String& string : strings) string = RandomNames::ascending(std::move(string));
    }
};

TEST(StringDistance, EqualsTheDefinitionsToTheBit) {
    Pairs pairs;
    for (const StringMetric metric : kAllStringMetrics) {
        SCOPED_TRACE(name_of(metric));
        StringDistance distance(metric);
        const std::size_t draws = testing::rounds<std::size_t>(60);
        for (std::size_t draw = 0; draw < draws; ++draw) {
            pairs.draw(metric, draw % 4 == 0 ? 300 : 70);
            for (std::size_t i = 0; i < 20; ++i) {
                const String &a = pairs.any(), &b = pairs.any();
                const double wanted = plain_string_distance(metric, a, b);
                double found = -1;
                distance.set_query(a);
                ASSERT_TRUE(distance(b, INFINITY, {}, found).ok());
                ASSERT_EQ(bits(found), bits(wanted)) << a.size() << " and " << b.size();
                // Limits just below and at it, and others
                for (const double limit : {wanted, std::nextafter(wanted, -1.0), wanted / 2, 0.0,
                                           wanted + 1, static_cast<double>(pairs.random.below(9))}) {
                    ASSERT_TRUE(distance(b, limit, {}, found).ok());
                    ASSERT_EQ(bits(found), bits(wanted <= limit ? wanted : INFINITY))
                        << a.size() << " and " << b.size() << " within " << limit;
                }
            }
        }
    }
}

/// A string of so many random symbols, of ASCII or beyond.
String random_string(std::mt19937_64& generator, std::size_t length, std::uint32_t alphabet) {
    String string(length);
    for (std::uint32_t& symbol : string)
        symbol = (alphabet > 26 ? 0xe38080 : 'a') + static_cast<std::uint32_t>(generator() % alphabet);
    return string;
}

/// Without a limit, and with some: one just at the distance, one just below it.
void expect_alignment(const String& a, const String& b) {
    const std::size_t edits = plain_edits(a, b, true);
    const auto wanted = static_cast<double>(edits);
    ASSERT_EQ(*osa_distance(a, b, {}), edits) << a.size() << " and " << b.size();
    StringDistance distance(StringMetric::osa);
    distance.set_query(a);
    for (const double limit : {wanted, wanted + 1, 2 * wanted, wanted - 1, wanted / 2}) {
        double found = -1;
        ASSERT_TRUE(distance(b, limit, {}, found).ok());
        ASSERT_EQ(found, wanted <= limit ? wanted : INFINITY)
            << a.size() << " and " << b.size() << " within " << limit;
    }
}

/// Of lengths about a multiple of a word's bits, and of more blocks than a query's places are kept of
TEST(StringDistance, OfAlignmentsOfLongStringsEqualsAllCells) {
    std::mt19937_64 generator(testing::seed());
    for (const std::uint32_t alphabet : {2u, 4u, 26u, 300u})
        for (const std::size_t length : {1, 63, 64, 65, 127, 128, 129, 130, 200, 600, 1100}) {
            SCOPED_TRACE("GPUTEXT_TEST_SEED=" + std::to_string(testing::seed()));
            const String a = random_string(generator, length, alphabet);
            String near = a;
            for (std::size_t edits = generator() % 20; edits > 0 && length > 1; --edits) {
                const std::size_t at = generator() % (near.size() - 1);
                std::swap(near[at], near[at + 1]);
                if (edits % 3 == 0) near.erase(near.begin() + static_cast<std::ptrdiff_t>(at));
            }
            expect_alignment(a, near);
            if (length > 600) continue;
            expect_alignment(a, random_string(generator, length, alphabet));
            expect_alignment(a, random_string(generator, 60 + generator() % 75, alphabet));
        }
}

/// Exchanges of symbols that lie in two blocks, where the limit leaves no diagonal more
TEST(StringDistance, OfAlignmentsThatExchangeSymbolsOfTwoBlocks) {
    String a(200);
    std::iota(a.begin(), a.end(), 'a');
    for (std::size_t at = 62; at < 130; ++at)
        for (std::size_t front = 0; front < 4; ++front) {
            String exchanged = a;
            std::swap(exchanged[at], exchanged[at + 1]);
            exchanged.erase(exchanged.begin(), exchanged.begin() + static_cast<std::ptrdiff_t>(front));
            for (const auto& [from, to] : {std::pair(a, exchanged), std::pair(exchanged, a)}) {
                StringDistance distance(StringMetric::osa);
                distance.set_query(from);
                const auto edits = static_cast<double>(front + 1);
                double found = 0;
                ASSERT_TRUE(distance(to, edits, {}, found).ok());
                ASSERT_EQ(found, edits) << at << " behind " << front;
            }
        }
}

TEST(StringDistance, OfTwoStringsIsTheSame) {
    Pairs pairs;
    for (std::size_t draw = 0; draw < 40; ++draw) {
        pairs.draw(StringMetric::jaro, draw % 4 == 0 ? 200 : 70);
        for (std::size_t i = 0; i < 20; ++i) {
            const String &a = pairs.any(), &b = pairs.any();
            ASSERT_EQ(bits(*jaro_similarity(a, b, {})), bits(plain_jaro(a, b)));
            ASSERT_EQ(bits(*jaro_winkler_similarity(a, b, {})), bits(plain_jaro_winkler(a, b)));
        }
    }
}

TEST(StringDistance, OfDamerauAndLevenshteinEqualsTheRecurrence) {
    Pairs pairs;
    for (std::size_t draw = 0; draw < 60; ++draw) {
        pairs.draw(StringMetric::osa, 30);
        for (std::size_t i = 0; i < 20; ++i) {
            const String &a = pairs.any(), &b = pairs.any();
            const auto found = damerau_levenshtein(a, b, {});
            ASSERT_TRUE(found.ok());
            ASSERT_EQ(*found, plain_damerau_levenshtein(a, b));
        }
    }
}

/// Values that rapidfuzz 3.14 gives.
TEST(StringDistance, OfKnownPairs) {
    const String martha = string_of("MARTHA"), marhta = string_of("MARHTA");
    const String dixon = string_of("DIXON"), dicksonx = string_of("DICKSONX");
    EXPECT_EQ(*jaro_similarity(martha, marhta, {}), 0.9444444444444445);
    EXPECT_EQ(*jaro_winkler_similarity(martha, marhta, {}), 0.9611111111111111);
    EXPECT_EQ(*jaro_similarity(dixon, dicksonx, {}), 0.7666666666666666);
    EXPECT_EQ(*jaro_winkler_similarity(dixon, dicksonx, {}), 0.8133333333333332);
    EXPECT_EQ(*jaro_similarity({}, {}, {}), 1);
    EXPECT_EQ(*jaro_similarity({}, dixon, {}), 0);
    // "ca" to "abc": by alignment no symbol is edited twice.
    const String ca = string_of("ca"), abc = string_of("abc");
    EXPECT_EQ(*damerau_levenshtein(ca, abc, {}), 2u);
    StringDistance osa(StringMetric::osa);
    osa.set_query(ca);
    double distance = 0;
    ASSERT_TRUE(osa(abc, INFINITY, {}, distance).ok());
    EXPECT_EQ(distance, 3);
}

/// The bound from what two strings have in common is at most their distance, and does not grow with
/// it.
TEST(StringDistance, IsAtLeastItsBound) {
    Pairs pairs;
    for (const StringMetric metric : kAllStringMetrics) {
        SCOPED_TRACE(name_of(metric));
        for (std::size_t draw = 0; draw < 40; ++draw) {
            pairs.draw(metric, 70);
            for (std::size_t i = 0; i < 20; ++i) {
                String a = pairs.any(), b = pairs.any();
                const double distance = plain_string_distance(metric, a, b);
                std::sort(a.begin(), a.end());
                std::sort(b.begin(), b.end());
                String common;
                std::set_intersection(a.begin(), a.end(), b.begin(), b.end(),
                                      std::back_inserter(common));
                double above = INFINITY;
                for (std::size_t c = 0; c <= std::min(a.size(), b.size()) + 1; ++c) {
                    const double bound = least_distance(metric, a.size(), b.size(), c);
                    ASSERT_LE(bound, above);
                    above = bound;
                    if (c == common.size()) { ASSERT_LE(bound, distance); }
                }
            }
        }
    }
}

TEST(StringDistance, OfLongStringsIsStopped) {
    std::vector<std::uint32_t> a(40000, 'a'), b(40000, 'b');
    const Stop stop{[](void*) { return true; }, nullptr};
    for (const StringMetric metric :
         {StringMetric::edit_rate, StringMetric::levenshtein, StringMetric::osa,
          StringMetric::jaro, StringMetric::jaro_winkler}) {
        StringDistance distance(metric);
        distance.set_query(a);
        double found = 0;
        EXPECT_EQ(distance(b, INFINITY, stop, found).code(), ErrorCode::cancelled)
            << name_of(metric);
    }
    std::vector<std::uint32_t> trigrams(std::size_t{1} << 20);
    std::iota(trigrams.begin(), trigrams.end(), 0u);
    StringDistance distance(StringMetric::trigram);
    distance.set_query(trigrams);
    double found = 0;
    EXPECT_EQ(distance(a, INFINITY, stop, found).code(), ErrorCode::cancelled);
    EXPECT_EQ(jaro_similarity(a, b, stop).status().code(), ErrorCode::cancelled);
    EXPECT_EQ(jaro_winkler_similarity(a, b, stop).status().code(), ErrorCode::cancelled);
    EXPECT_EQ(osa_distance(a, b, stop).status().code(), ErrorCode::cancelled);
    EXPECT_EQ(damerau_levenshtein(a, b, stop).status().code(), ErrorCode::cancelled);
}

}  // namespace
}  // namespace gputext
