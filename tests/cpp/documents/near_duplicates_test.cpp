#include "cpp/documents/near_duplicates.hpp"

#include <gtest/gtest.h>

#include <tuple>

#include "cpp/documents/detail/count_filter.hpp"
#include "cpp/documents/edit_distance.hpp"
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
using testing::kSanitized;
using testing::name_of_simd;
using testing::OnEachSimd;
using testing::Packed;
using testing::plain_rates;
using testing::RandomStrings;
using testing::Row;
using testing::rows;
using testing::within;

class NearDuplicatesOnEach : public OnEachSimd {
protected:
    NearDuplicates run(const Packed& packed, NearDuplicateParameters parameters,
                       GivenSignatures signatures = {}) {
        parameters.simd = GetParam();
        Execution execution(3);
        auto answer = near_duplicates(parameters, packed.documents(), signatures, execution);
        EXPECT_TRUE(answer.ok()) << answer.status().message();
        return std::move(*answer);
    }
};

INSTANTIATE_TEST_SUITE_P(Simd, NearDuplicatesOnEach, kEachSimd, name_of_simd);

TEST_P(NearDuplicatesOnEach, ExactModeFindsEveryPair) {
    RandomStrings random;
    for (const std::size_t longest : {40, 700}) {
        const auto texts = corpus(random, kSanitized ? 60 : 160, longest);
        const Packed packed(texts);
        const auto& rates = plain_rates(texts);
        for (const double threshold : {0.0, 0.001, 0.05, 0.2, 0.4999}) {
            // Room for plenty, and for little more than the pairs.
            for (const std::size_t memory_limit : {std::size_t{1} << 30, std::size_t{1} << 22}) {
                NearDuplicateParameters parameters{threshold, NearDuplicateMode::exact};
                parameters.memory_limit = memory_limit;
                ASSERT_EQ(rows(run(packed, parameters)), within(rates, threshold))
                    << threshold << ", " << memory_limit << " bytes";
            }
        }
    }
}

TEST_P(NearDuplicatesOnEach, CtphModeFindsThePairsWithNearSignatures) {
    RandomStrings random;
    const auto texts = corpus(random, kSanitized ? 50 : 110, 1000);
    const Packed packed(texts);
    const auto& rates = plain_rates(texts);
    for (const std::size_t length : {16, 100}) {
        std::vector<std::optional<Ctph>> signatures;
        for (const std::string& text : texts)
            signatures.push_back(*ctph_signature(bytes_of(text), length));
        for (const double threshold : {0.01, 0.05, 0.3}) {
            std::vector<Row> expected = within(rates, threshold);
            std::erase_if(expected, [&](const Row& row) {
                const auto& [i, j, rate] = row;
                const double near = edit_rate(*signatures[i], *signatures[j]);
                return !(near <= 3 * threshold && near < 1) && texts[i] != texts[j];
            });
            NearDuplicateParameters parameters{threshold, NearDuplicateMode::ctph, length};
            ASSERT_EQ(rows(run(packed, parameters)), expected);
            // Signatures that the caller has already make no difference, some or all.
            parameters.signature_length = length;
            for (std::size_t i = 0; i < signatures.size(); i += 3) signatures[i].reset();
            ASSERT_EQ(rows(run(packed, parameters, signatures)), expected);
            for (std::size_t i = 0; i < signatures.size(); i += 3)
                signatures[i] = *ctph_signature(bytes_of(texts[i]), length);
        }
    }
}

TEST_P(NearDuplicatesOnEach, SharedCountsAreNeverBelowTheTruth) {
    RandomStrings random;
    const auto shared = shared_features(GetParam());
    const auto lengths = CharacterLengths::utf8();
    for (int round = 0; round < 60; ++round) {
        // Long runs of one character and of one trigram overflow the bins' counts.
        auto a = random.string(random.below(3000), "ab");
        a.append(round % 5 == 0 ? 70000 : random.below(2000), 'x');
        const auto b = random.edited(a, random.below(40), "abc");
        auto features_a = std::make_unique<DocumentFeatures>();
        auto features_b = std::make_unique<DocumentFeatures>();
        ASSERT_TRUE(features_a->set(bytes_of(a), lengths));
        ASSERT_TRUE(features_b->set(bytes_of(b), lengths));
        const std::size_t edits = *EditDistance()(bytes_of(a), bytes_of(b));
        const std::size_t longer = std::max(a.size(), b.size());
        ASSERT_GE(shared.characters(*features_a, *features_b) + edits, longer);
        ASSERT_GE(shared.trigrams(*features_a, *features_b) + 3 * edits + 2, longer);
        const auto portable = shared_features(Simd::portable);
        ASSERT_EQ(shared.characters(*features_a, *features_b),
                  portable.characters(*features_a, *features_b));
        ASSERT_EQ(shared.trigrams(*features_a, *features_b),
                  portable.trigrams(*features_a, *features_b));
    }
}

TEST(NearDuplicates, ComponentsAreNamedByTheirFirstDocument) {
    const std::string text(400, 'x');
    const std::string chain[] = {text + "ab",
                                 "something else",
                                 text + "abcdefghijklmnopqrstuvwxyz",
                                 text,
                                 text + "abcdefghijklm",
                                 text,
                                 "else something"};
    const Packed packed(std::vector<std::string>(std::begin(chain), std::end(chain)));
    Execution execution(1);
    const NearDuplicateParameters parameters{0.02, NearDuplicateMode::exact};
    const auto answer = near_duplicates(parameters, packed.documents(), {}, execution);
    ASSERT_TRUE(answer.ok());
    // 2 is near 4, 4 near 0 and 3; 2 is not near 0.
    EXPECT_EQ(*answer->components(), (std::vector<std::uint32_t>{0, 1, 0, 0, 0, 0, 6}));
}

TEST(NearDuplicates, CopiesTakeNoMemoryForTheirPairs) {
    const Packed packed(std::vector<std::string>(20000, "the same"));
    Execution execution(2);
    const auto answer =
        near_duplicates({0.05, NearDuplicateMode::exact}, packed.documents(), {}, execution);
    ASSERT_TRUE(answer.ok());
    EXPECT_EQ(answer->pairs(), 20000ull * 19999 / 2);
    std::vector<NearDuplicate> neighbors;
    answer->later_neighbors(19990, neighbors);
    EXPECT_EQ(neighbors.size(), 9u);
}

/// Two words of eight bytes each, which all documents so made hash to the same number.
std::string colliding_document(std::uint64_t word) {
    // As cpp/documents/detail/near_duplicate_search.cpp hashes: the second word undoes what the
    // first one did.
    std::uint64_t hash = (std::uint64_t{16} * 0x9e3779b97f4a7c15u ^ word) * 0xff51afd7ed558ccdu;
    hash ^= hash >> 32;
    const std::uint64_t words[] = {word, ~hash};
    return {reinterpret_cast<const char*>(words), sizeof words};
}

TEST(NearDuplicates, FindsCopiesAmongManyDocuments) {
    // So many that threads share the hashes.
    constexpr std::uint32_t count = 300000, different = 99991;
    std::vector<std::string> texts;
    for (std::uint32_t i = 0; i < count; ++i) texts.push_back(std::to_string(i % different));
    const Packed packed(texts);
    Execution execution(3);
    const auto answer = near_duplicates({.threshold = 0}, packed.documents(), {}, execution);
    ASSERT_TRUE(answer.ok()) << answer.status().message();
    for (std::uint32_t i = 0; i < count; ++i)
        ASSERT_EQ(answer->first_copies()[i], i % different) << i;
}

TEST(NearDuplicates, TellsDocumentsWithEqualHashesApart) {
    std::vector<std::string> texts;
    for (const std::uint64_t word : {1, 2, 1, 3, 2, 3, 1, 4})
        texts.push_back(colliding_document(word));
    const Packed packed(texts, CharacterLengths::single_byte());
    Execution execution(2);
    const auto answer =
        near_duplicates({1e-9, NearDuplicateMode::exact}, packed.documents(), {}, execution);
    ASSERT_TRUE(answer.ok());
    EXPECT_EQ(std::vector(answer->first_copies().begin(), answer->first_copies().end()),
              (std::vector<std::uint32_t>{0, 1, 0, 3, 1, 3, 0, 7}));
}

TEST(NearDuplicates, ComesBackFromItsParts) {
    RandomStrings random;
    const Packed packed(corpus(random, 150, 500));
    for (const double threshold : {0.0, 0.05, 0.4}) {
        Execution execution(2);
        const auto answer = near_duplicates({threshold, NearDuplicateMode::exact},
                                            packed.documents(), {}, execution);
        ASSERT_TRUE(answer.ok());
        const auto pairs = answer->near_pairs_of(0, UINT32_MAX);
        EXPECT_EQ(pairs.size(), answer->near_pair_count());
        const auto again = NearDuplicates::from_parts(answer->first_copies(), pairs);
        ASSERT_TRUE(again.ok()) << again.status().message();
        EXPECT_EQ(rows(*again), rows(*answer));
        EXPECT_EQ(*again->components(), *answer->components());
    }
}

TEST(NearDuplicates, SortsThePairsOfASearch) {
    const std::vector<std::uint32_t> firsts{0, 1, 0, 3, 4};
    const std::vector<NearPair> ascending{{0, 1, 0.1}, {0, 4, 0.2}, {1, 3, 0.3}, {3, 4, 0.4}};
    const auto sorted = NearDuplicates::from_parts(firsts, ascending);
    ASSERT_TRUE(sorted.ok());
    for (const std::vector<std::size_t>& order : {std::vector<std::size_t>{0, 1, 2, 3},
                                                  {3, 2, 1, 0},
                                                  {0, 2, 1, 3},
                                                  {1, 0, 3, 2},
                                                  {0, 0, 1, 2, 3},
                                                  {3, 1, 2, 2, 0, 3, 3}}) {
        std::vector<NearPair> pairs;
        for (const std::size_t i : order) pairs.push_back(ascending[i]);
        Execution execution(2);
        const auto answer = NearDuplicates::from_search(firsts, pairs, 0, execution);
        ASSERT_TRUE(answer.ok());
        EXPECT_EQ(rows(*answer), rows(*sorted));
        EXPECT_EQ(answer->near_pair_count(), ascending.size());
        const auto in_order = answer->near_pairs_of(0, UINT32_MAX);
        for (std::size_t i = 0; i < in_order.size(); ++i) {
            EXPECT_EQ(in_order[i].first, ascending[i].first);
            EXPECT_EQ(in_order[i].second, ascending[i].second);
            EXPECT_EQ(in_order[i].edit_rate, ascending[i].edit_rate);
        }
    }
    Execution stopped(1);
    stopped.request_stop();
    EXPECT_EQ(NearDuplicates::from_search(firsts, ascending, 0, stopped).status().code(),
              ErrorCode::cancelled);
}

TEST(NearDuplicates, RefusesPartsOfNoAnswer) {
    using Firsts = std::vector<std::uint32_t>;
    using Pairs = std::vector<NearPair>;
    const Firsts firsts{0, 1, 0, 3};
    const auto made = [](const Firsts& first_copies, const Pairs& pairs) {
        return NearDuplicates::from_parts(first_copies, pairs).status().code();
    };
    EXPECT_EQ(made(firsts, {{0, 1, 0.1}, {0, 3, 0}, {1, 3, 0.4}}), ErrorCode::ok);
    EXPECT_EQ(made({}, {}), ErrorCode::ok);
    for (const Firsts& wrong : {Firsts{1, 1}, Firsts{0, 2, 2}, Firsts{0, 0, 1}, Firsts{9}})
        EXPECT_EQ(made(wrong, {}), ErrorCode::invalid_argument);
    for (const Pairs& wrong : {Pairs{{1, 0, 0.1}}, Pairs{{1, 1, 0.1}}, Pairs{{0, 2, 0.1}},
                               Pairs{{2, 3, 0.1}}, Pairs{{0, 4, 0.1}}, Pairs{{0, UINT32_MAX, 0.1}},
                               Pairs{{0, 1, -0.1}}, Pairs{{0, 1, 0.5}}, Pairs{{0, 1, std::nan("")}},
                               Pairs{{0, 1, 0.1}, {0, 1, 0.1}}, Pairs{{1, 3, 0.1}, {0, 1, 0.1}}})
        EXPECT_EQ(made(firsts, wrong), ErrorCode::invalid_argument);
    const Stop at_once{[](void*) { return true; }, nullptr};
    EXPECT_EQ(NearDuplicates::from_parts(firsts, {}, 0, at_once).status().code(),
              ErrorCode::cancelled);
}

TEST(NearDuplicates, HandlesNoDocuments) {
    const Packed packed({});
    Execution execution(2);
    for (const auto mode : {NearDuplicateMode::ctph, NearDuplicateMode::exact}) {
        const auto answer = near_duplicates({0.05, mode}, packed.documents(), {}, execution);
        ASSERT_TRUE(answer.ok());
        EXPECT_EQ(answer->pairs(), 0u);
        EXPECT_TRUE(answer->components()->empty());
    }
}

TEST(NearDuplicates, RefusesParametersOutOfRange) {
    const Packed packed({"a", "b"});
    Execution execution(1);
    for (const double threshold : {-0.1, 0.5, 2.0, std::nan("")}) {
        const auto answer = near_duplicates({threshold}, packed.documents(), {}, execution);
        EXPECT_EQ(answer.status().code(), ErrorCode::invalid_argument);
    }
    for (const std::size_t length : {0, 1025}) {
        const auto answer = near_duplicates({0.05, NearDuplicateMode::ctph, length},
                                            packed.documents(), {}, execution);
        EXPECT_EQ(answer.status().code(), ErrorCode::invalid_argument);
    }
}

}  // namespace
}  // namespace gputext
