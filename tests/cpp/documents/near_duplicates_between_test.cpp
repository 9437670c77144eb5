// Pairs of one of the first documents and one of the others, in both modes, by each method.

#include <gtest/gtest.h>

#include <algorithm>
#include <tuple>

#include "cpp/documents/detail/exact_search.hpp"
#include "cpp/documents/detail/signature_join.hpp"
#include "cpp/documents/distinct_documents.hpp"
#include "cpp/documents/edit_distance.hpp"
#include "cpp/documents/near_duplicates.hpp"
#include "cpp/documents/near_duplicates_parts.hpp"
#include "tests/support/answer_rows.hpp"
#include "tests/support/on_each_simd.hpp"
#include "tests/support/packed.hpp"
#include "tests/support/plain_rates.hpp"
#include "tests/support/random_strings.hpp"

namespace gputext {
namespace {

using testing::bytes_of;
using testing::corpus;
using testing::kEachSimd;
using testing::kFewer;
using testing::kSanitized;
using testing::name_of_simd;
using testing::OnEachSimd;
using testing::Packed;
using testing::plain_rates;
using testing::RandomStrings;
using testing::Row;
using testing::rows;
using testing::utf8_of;
using testing::within;

constexpr std::string_view kLetters = "etaoinshrdlu \n";

std::vector<Row> across(std::vector<Row> rows, std::uint32_t split) {
    std::erase_if(rows, [=](const Row& row) {
        return std::get<0>(row) >= split || std::get<1>(row) < split;
    });
    return rows;
}

/// Texts and versions of them in any order, so that versions and copies are on both sides.
std::vector<std::string> shuffled(RandomStrings& random, std::vector<std::string> texts) {
    for (std::size_t i = texts.size(); i > 1; --i) std::swap(texts[i - 1], texts[random.below(i)]);
    return texts;
}

std::vector<std::string> versions(RandomStrings& random, std::size_t count, std::size_t shortest,
                                  std::size_t longest) {
    std::vector<std::string> texts;
    while (texts.size() < count) {
        std::string text = random.string(shortest + random.below(longest - shortest), kLetters);
        for (int version = 0; version < 4; ++version) {
            texts.push_back(text);
            // Now and then a copy.
            text = random.edited(text, random.below(1 + text.size() / 10), kLetters);
        }
    }
    return shuffled(random, texts);
}

NearDuplicates found(const Packed& packed, const NearDuplicateParameters& parameters,
                     unsigned threads = 2, GivenSignatures signatures = {}) {
    Execution execution(threads);
    auto answer = near_duplicates(parameters, packed.documents(), signatures, execution);
    EXPECT_TRUE(answer.ok()) << answer.status().message();
    return std::move(*answer);
}

NearDuplicateParameters split_at(std::uint32_t split, double threshold, NearDuplicateMode mode) {
    NearDuplicateParameters parameters{threshold, mode};
    parameters.split = split;
    return parameters;
}

class NearDuplicatesBetweenOnEach : public OnEachSimd {};

INSTANTIATE_TEST_SUITE_P(Simd, NearDuplicatesBetweenOnEach, kEachSimd, name_of_simd);

TEST_P(NearDuplicatesBetweenOnEach, ExactModeFindsEveryPairAcross) {
    RandomStrings random;
    for (const std::size_t longest : {40, 700}) {
        const auto texts = shuffled(random, corpus(random, kFewer ? 60 : 160, longest));
        const Packed packed(texts);
        const auto all = static_cast<std::uint32_t>(packed.documents().size());
        // Either side is the larger one; one has no document, or one.
        for (const std::uint32_t split : {1u, all / 7, all / 2, all - all / 5, all - 1, all}) {
            const auto rates = across(plain_rates(texts), split);
            for (const double threshold : {0.0, 0.001, 0.05, 0.2, 0.4999})
                for (const std::size_t memory_limit :
                     {std::size_t{1} << 30, std::size_t{1} << 22}) {
                    auto parameters = split_at(split, threshold, NearDuplicateMode::exact);
                    parameters.memory_limit = memory_limit;
                    parameters.simd = GetParam();
                    ASSERT_EQ(rows(found(packed, parameters, 3)), within(rates, threshold))
                        << threshold << ", " << memory_limit << " bytes, split " << split;
                }
        }
    }
}

TEST_P(NearDuplicatesBetweenOnEach, CtphModeFindsThePairsAcrossOfAllDocuments) {
    RandomStrings random;
    const auto texts = shuffled(random, corpus(random, kFewer ? 60 : 300, 1500));
    const Packed packed(texts);
    std::vector<std::optional<Ctph>> signatures;
    for (const std::string& text : texts)
        signatures.push_back(random.below(3) == 0
                                 ? std::nullopt
                                 : std::optional(*ctph_signature(bytes_of(text), 100)));
    for (const double threshold : {0.01, 0.05, 0.3}) {
        auto parameters = split_at(0, threshold, NearDuplicateMode::ctph);
        parameters.simd = GetParam();
        const auto all = rows(found(packed, parameters));
        for (const std::size_t split : {std::size_t{1}, texts.size() / 5, texts.size() / 2 + 9}) {
            parameters.split = static_cast<std::uint32_t>(split);
            const auto expected = across(all, parameters.split);
            EXPECT_TRUE(split == 1 || !expected.empty());
            ASSERT_EQ(rows(found(packed, parameters)), expected) << threshold;
            ASSERT_EQ(rows(found(packed, parameters, 3, signatures)), expected) << threshold;
        }
    }
}

TEST_P(NearDuplicatesBetweenOnEach, SignaturesAreThePairsAcrossOfAll) {
    RandomStrings random;
    std::vector<Ctph> signatures;
    for (const std::string& text : versions(random, kFewer ? 300 : 2000, 60, 900))
        signatures.push_back(*ctph_signature(bytes_of(text), 100));
    std::vector<std::uint8_t> sides;
    for (std::size_t i = 0; i < signatures.size(); ++i)
        sides.push_back(static_cast<std::uint8_t>(1 + random.below(3)));
    for (const double rate : {0.05, 0.2, 0.45}) {
        Execution execution(2);
        std::vector<IndexPair> expected, pairs;
        ASSERT_TRUE(join_signatures(signatures, rate, GetParam(), execution, expected).ok());
        std::erase_if(expected, [&](const IndexPair& pair) {
            return (sides[pair.first] | sides[pair.second]) != kBothSides;
        });
        EXPECT_FALSE(expected.empty());
        ASSERT_TRUE(join_signatures(signatures, rate, GetParam(), execution, pairs, UINT64_MAX,
                                    nullptr, {}, sides)
                        .ok());
        ASSERT_EQ(pairs, expected);
    }
}

/// Distinct documents with their lengths and sides, and all methods to search them.
std::vector<Row> exact_pairs(const Packed& packed, std::span<const std::uint8_t> sides,
                             const NearDuplicateParameters& parameters, ExactMethod method,
                             ExactSearchCounts* counts = nullptr, const PairPart& part = {}) {
    std::vector<std::uint32_t> lengths;
    const Documents& documents = packed.documents();
    for (std::size_t i = 0; i < documents.size(); ++i)
        lengths.push_back(
            static_cast<std::uint32_t>(count_characters(documents[i], documents.characters)));
    Execution execution(2);
    std::vector<NearPair> pairs;
    const Status status = find_exact_pairs(parameters, {documents, lengths, {}, sides}, execution,
                                           pairs, counts, method, part);
    EXPECT_TRUE(status.ok()) << status.message();
    std::vector<Row> rows;
    for (const NearPair& pair : pairs) rows.emplace_back(pair.first, pair.second, pair.edit_rate);
    std::ranges::sort(rows);
    return rows;
}

std::vector<Row> across(std::vector<Row> rows, std::span<const std::uint8_t> sides) {
    std::erase_if(rows, [&](const Row& row) {
        return (sides[std::get<0>(row)] | sides[std::get<1>(row)]) != kBothSides;
    });
    return rows;
}

/// Documents on the first side, on the second one and on both, as likely as the weights say.
std::vector<std::uint8_t> random_sides(RandomStrings& random, std::size_t count,
                                       std::string_view which) {
    std::vector<std::uint8_t> sides;
    for (std::size_t i = 0; i < count; ++i)
        sides.push_back(static_cast<std::uint8_t>(which[random.below(which.size())] - '0'));
    return sides;
}

TEST(NearDuplicatesBetween, EachMethodFindsThePairsAcrossOfAllDocuments) {
    RandomStrings random;
    const std::size_t few = kFewer ? 60 : 120;
    std::vector<std::vector<std::string>> inputs{versions(random, few, 20, 300),
                                                 versions(random, few, 700, 2500),
                                                 versions(random, 24, 3000, 9000)};
    inputs.push_back(inputs[1]);
    for (std::string& text : inputs.back()) text += utf8_of(U"漢字");
    std::size_t found = 0, searches = 0;
    for (const auto& texts : inputs) {
        const Packed packed(texts);
        for (const double threshold : {0.01, 0.05, 0.11, 0.3}) {
            const NearDuplicateParameters parameters{threshold, NearDuplicateMode::exact};
            const auto all = exact_pairs(packed, {}, parameters, ExactMethod::tiles);
            for (const std::string_view which : {"12", "1111111112", "122222222", "1123", "33"}) {
                const auto sides = random_sides(random, texts.size(), which);
                const auto expected = across(all, sides);
                found += expected.size();
                for (const auto method : {ExactMethod::estimated, ExactMethod::counts,
                                          ExactMethod::tiles, ExactMethod::index})
                    for (const std::size_t memory : {std::size_t{1} << 30, std::size_t{24} << 20}) {
                        if (kFewer && searches++ % 3 != 0) continue;
                        auto own = parameters;
                        own.memory_limit = memory;
                        ASSERT_EQ(exact_pairs(packed, sides, own, method), expected)
                            << threshold << ", sides " << which << ", method "
                            << static_cast<int>(method) << ", " << memory << " bytes";
                    }
            }
        }
    }
    EXPECT_GT(found, 100u);
}

// Rows that are longer than their column by as many letters as the rate allows: with edits only for
// rows of its own length, the column would have too few grams in the index.
TEST(NearDuplicatesBetween, AnIndexFindsLongerRows) {
    RandomStrings random;
    const std::string column = random.string(39, kLetters);
    std::vector<std::string> texts{column};
    std::vector<std::uint8_t> sides{kFirstSide};
    while (texts.size() < 3001) {
        std::string row = column;
        for (int insertion = 0; insertion < 4; ++insertion)
            row.insert(random.below(row.size() + 1), 1, 'X');
        texts.push_back(row);
        sides.push_back(kSecondSide);
    }
    const Packed packed(texts);
    const NearDuplicateParameters parameters{0.05, NearDuplicateMode::exact};
    EXPECT_EQ(exact_pairs(packed, sides, parameters, ExactMethod::index).size(), 3000u);
    EXPECT_EQ(exact_pairs(packed, sides, parameters, ExactMethod::tiles).size(), 3000u);
}

TEST(NearDuplicatesBetween, PartsHaveEachPairOnce) {
    RandomStrings random;
    for (const auto& texts : {versions(random, kFewer ? 150 : 500, 10, 60),
                              versions(random, kFewer ? 100 : 300, 900, 1600)}) {
        const Packed packed(texts);
        const NearDuplicateParameters parameters{0.06, NearDuplicateMode::exact};
        for (const std::string_view which : {"12", "2222221", "1112333"}) {
            const auto sides = random_sides(random, texts.size(), which);
            const auto expected =
                across(exact_pairs(packed, {}, parameters, ExactMethod::tiles), sides);
            for (const auto method : {ExactMethod::estimated, ExactMethod::tiles,
                                      ExactMethod::index, ExactMethod::counts})
                for (std::uint32_t count = 1; count <= 5; ++count) {
                    std::vector<Row> all;
                    std::size_t largest = 0;
                    for (std::uint32_t index = 0; index < count; ++index) {
                        const auto part = exact_pairs(packed, sides, parameters, method, nullptr,
                                                      {index, count, PairSource::documents});
                        largest = std::max(largest, part.size());
                        all.insert(all.end(), part.begin(), part.end());
                    }
                    std::ranges::sort(all);
                    ASSERT_EQ(all, expected) << count << " parts, sides " << which;
                    EXPECT_TRUE(count == 1 || largest < all.size());
                }
        }
    }
}

TEST(NearDuplicatesBetween, PartsOfSignaturesAreTheirJoin) {
    RandomStrings random;
    std::vector<Ctph> signatures;
    for (const std::string& text : versions(random, kSanitized ? 1500 : 3000, 60, 400))
        signatures.push_back(*ctph_signature(bytes_of(text), 100));
    const auto sides = random_sides(random, signatures.size(), "11223");
    Execution execution(2);
    std::vector<IndexPair> expected;
    ASSERT_TRUE(join_signatures(signatures, 0.2, best_simd(), execution, expected, UINT64_MAX,
                                nullptr, {}, sides)
                    .ok());
    for (std::uint32_t count = 2; count <= 4; ++count) {
        std::vector<IndexPair> all;
        for (std::uint32_t index = 0; index < count; ++index) {
            std::vector<IndexPair> pairs;
            ASSERT_TRUE(join_signatures(signatures, 0.2, best_simd(), execution, pairs, UINT64_MAX,
                                        nullptr, {index, count, PairSource::signatures}, sides)
                            .ok());
            EXPECT_LT(pairs.size(), expected.size());
            all.insert(all.end(), pairs.begin(), pairs.end());
        }
        std::ranges::sort(all);
        all.erase(std::unique(all.begin(), all.end()), all.end());
        ASSERT_EQ(all, expected) << count << " parts";
    }
}

TEST(NearDuplicatesBetween, LooksAtPairsAcrossOnly) {
    RandomStrings random;
    const std::size_t old = kSanitized ? 1000 : 4000;
    std::vector<std::string> texts;
    for (std::size_t i = 0; i < old + 10; ++i) texts.push_back(random.string(200, kLetters));
    const Packed packed(texts);
    for (const bool new_first : {true, false}) {
        std::vector<std::uint8_t> sides(texts.size(), kSecondSide);
        const std::size_t split = new_first ? 10 : old;
        std::fill_n(sides.begin(), split, kFirstSide);
        ExactSearchCounts counts;
        exact_pairs(packed, sides, {0.05, NearDuplicateMode::exact}, ExactMethod::tiles, &counts);
        EXPECT_EQ(counts.comparable, 10 * old);
    }
    ExactSearchCounts counts;
    exact_pairs(packed, {}, {0.05, NearDuplicateMode::exact}, ExactMethod::tiles, &counts);
    EXPECT_EQ(counts.comparable, texts.size() * (texts.size() - 1) / 2);
}

// Signatures of one side that are all near each other are no candidates.
TEST(NearDuplicatesBetween, SignaturesOfOneSideAreNotCompared) {
    RandomStrings random;
    const std::string text = random.string(300, kLetters);
    std::vector<Ctph> signatures;
    std::vector<std::uint8_t> sides;
    for (int i = 0; i < 500; ++i) {
        signatures.push_back(*ctph_signature(bytes_of(random.edited(text, 1, kLetters)), 100));
        sides.push_back(i < 3 ? kFirstSide : kSecondSide);
    }
    Execution execution(2);
    std::vector<IndexPair> pairs;
    bool too_many = false;
    const std::uint64_t most = 2 * 3 * 500;  // some are near at two block sizes
    ASSERT_TRUE(
        join_signatures(signatures, 0.3, best_simd(), execution, pairs, most, &too_many, {}, sides)
            .ok());
    EXPECT_FALSE(too_many);
    EXPECT_GT(pairs.size(), 3u * 250);
    ASSERT_TRUE(
        join_signatures(signatures, 0.3, best_simd(), execution, pairs, most, &too_many).ok());
    EXPECT_TRUE(too_many);
}

TEST(NearDuplicatesBetween, CopiesOnBothSidesArePairsOfEachWithEach) {
    std::vector<std::string> texts;
    for (const char kind : std::string_view("aaboabao")) {
        texts.emplace_back(40, kind == 'o' ? 'o' : 'a');
        if (kind == 'b') texts.back()[7] = 'b';
    }
    const Packed packed(texts);
    const double rate = 1.0 / 80;
    const std::vector<Row> expected{{0, 4, 0.0},  {0, 5, rate}, {0, 6, 0.0},  {1, 4, 0.0},
                                    {1, 5, rate}, {1, 6, 0.0},  {2, 4, rate}, {2, 5, 0.0},
                                    {2, 6, rate}, {3, 7, 0.0}};
    for (const auto mode : {NearDuplicateMode::ctph, NearDuplicateMode::exact})
        EXPECT_EQ(rows(found(packed, split_at(4, 0.05, mode))), expected);
}

TEST(NearDuplicatesBetween, RefusesASplitBehindTheDocuments) {
    const Packed packed({"a", "b"});
    Execution execution(1);
    for (const std::uint32_t split : {0u, 1u, 2u, 3u}) {
        const auto answer = near_duplicates(split_at(split, 0.05, NearDuplicateMode::exact),
                                            packed.documents(), {}, execution);
        EXPECT_EQ(answer.status().code(), split > 2 ? ErrorCode::invalid_argument : ErrorCode::ok);
    }
}

TEST(NearDuplicatesBetween, EndsWhenAskedToStop) {
    RandomStrings random;
    const Packed packed(versions(random, 300, 100, 2000));
    for (const auto mode : {NearDuplicateMode::ctph, NearDuplicateMode::exact}) {
        Execution execution(2);
        execution.request_stop();
        const auto answer =
            near_duplicates(split_at(100, 0.05, mode), packed.documents(), {}, execution);
        EXPECT_EQ(answer.status().code(), ErrorCode::cancelled);
    }
}

}  // namespace
}  // namespace gputext
