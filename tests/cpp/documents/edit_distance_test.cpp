#include "cpp/documents/edit_distance.hpp"

#include <gtest/gtest.h>

#include "tests/support/random_strings.hpp"

namespace gputext {
namespace {

using testing::bytes_of;
using testing::kSanitized;
using testing::plain_edit_distance;
using testing::RandomStrings;
using testing::utf8_of;

std::size_t distance(std::string_view a, std::string_view b,
                     std::size_t limit = EditDistance::no_limit) {
    return *EditDistance()(bytes_of(a), bytes_of(b), limit);
}

TEST(EditDistance, KnowsTheTextbookExamples) {
    EXPECT_EQ(distance("", ""), 0u);
    EXPECT_EQ(distance("", "abc"), 3u);
    EXPECT_EQ(distance("abc", ""), 3u);
    EXPECT_EQ(distance("kitten", "sitting"), 3u);
    EXPECT_EQ(distance("intention", "execution"), 5u);
    EXPECT_EQ(distance("GAMBOL", "GUMBO"), 2u);
}

TEST(EditDistance, EqualsTheDynamicProgramOnRandomStrings) {
    RandomStrings random;
    EditDistance edit_distance;
    const std::string_view alphabets[] = {"ab", "abcd", "abcdefghijklmnopqrstuvwxyz0123456789"};
    for (int round = 0; round < 6000; ++round) {
        const std::string_view letters = alphabets[random.below(3)];
        const std::size_t length = random.below(round % 50 == 0 ? 1500 : 200);
        const auto a = random.string(length, letters);
        // Half of the pairs are versions of each other, from one edit to a rewrite.
        const auto b = random.below(2) == 0
                           ? random.edited(a, random.below(length / 2 + 2), letters)
                           : random.string(random.below(300), letters);
        const std::size_t truth = plain_edit_distance(a, b);
        ASSERT_EQ(*edit_distance(bytes_of(a), bytes_of(b)), truth) << a << "\n" << b;
        for (const std::size_t limit :
             {std::size_t{0}, truth / 2, truth - (truth > 0), truth, truth + 1, 2 * truth + 70}) {
            ASSERT_EQ(*edit_distance(bytes_of(a), bytes_of(b), limit), std::min(truth, limit + 1))
                << "limit " << limit << "\n"
                << a << "\n"
                << b;
        }
    }
}

TEST(EditDistance, EqualsTheDynamicProgramOnLongVersions) {
    RandomStrings random;
    EditDistance edit_distance;
    const std::string_view letters = "etaoinshrdlu \n";
    for (int round = 0; round < (kSanitized ? 9 : 25); ++round) {
        auto a = random.string(3000 + random.below(3000), letters);
        auto b = random.edited(a, random.below(1200), letters);
        // Moved blocks make diagonals far from the main one matter.
        if (round % 3 == 0)
            b = b.substr(random.below(700)) + random.string(random.below(500), "xyz");
        const std::size_t truth = plain_edit_distance(a, b);
        ASSERT_EQ(*edit_distance(bytes_of(a), bytes_of(b)), truth);
        for (const std::size_t limit : {truth - 1, truth, truth + 300, truth / 3})
            ASSERT_EQ(*edit_distance(bytes_of(b), bytes_of(a), limit), std::min(truth, limit + 1));
    }
}

/// In the EUC encodings each byte above 0x7f begins a character of two, the least of these bytes,
/// too.
TEST(EditDistance, CountsCharactersOfTheLeastHighByte) {
    std::array<std::uint8_t, 256> lengths;
    lengths.fill(1);
    std::fill(lengths.begin() + 0x80, lengths.end(), std::uint8_t{2});
    const CharacterLengths euc(lengths);
    const std::string_view characters = "\x80\x80\x80\x80";
    EXPECT_FALSE(is_narrow(bytes_of(characters), euc));
    EXPECT_EQ(count_characters(bytes_of(characters), euc), 2u);
    EXPECT_EQ(*EditDistance().of_texts(bytes_of(characters), bytes_of(""), euc), 2u);
}

TEST(EditDistance, CountsCharactersOfUtf8) {
    RandomStrings random;
    EditDistance edit_distance;
    const auto utf8 = CharacterLengths::utf8();
    const std::u32string_view letters = U"aé€ß漢字かな한글🙂🙃z";
    for (int round = 0; round < 1500; ++round) {
        const auto a = random.string<std::u32string>(random.below(300), letters);
        const auto b = round % 2 == 0 ? random.edited(a, random.below(60), letters)
                                      : random.string<std::u32string>(
                                            random.below(300), round % 4 == 1 ? U"az" : letters);
        const auto a_bytes = utf8_of(a);
        const auto b_bytes = utf8_of(b);
        ASSERT_EQ(count_characters(bytes_of(a_bytes), utf8), a.size());
        const std::size_t truth = plain_edit_distance(a, b);
        ASSERT_EQ(*edit_distance.of_texts(bytes_of(a_bytes), bytes_of(b_bytes), utf8), truth);
        ASSERT_EQ(*edit_distance.of_texts(bytes_of(a_bytes), bytes_of(b_bytes), utf8, truth / 2),
                  std::min(truth, truth / 2 + 1));
    }
}

TEST(EditDistance, SurvivesCharactersThatAreCutOff) {
    const auto utf8 = CharacterLengths::utf8();
    EXPECT_EQ(count_characters(bytes_of("ab\xe2\x82"), utf8), 3u);
    EXPECT_EQ(*EditDistance().of_texts(bytes_of("ab\xe2\x82"), bytes_of("ab\xe2"), utf8), 1u);
}

TEST(EditDistance, StopsWhenAsked) {
    RandomStrings random;
    const auto a = random.string(400000, "abcdefgh");
    const auto b = random.string(400000, "abcdefgh");
    int asked = 0;
    const Stop after_three{[](void* count) { return ++*static_cast<int*>(count) > 3; }, &asked};
    const auto result =
        EditDistance()(bytes_of(a), bytes_of(b), EditDistance::no_limit, after_three);
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.status().code(), ErrorCode::cancelled);
    EXPECT_EQ(asked, 4);
}

TEST(EditRate, IsTheDistanceOverBothLengths) {
    EXPECT_EQ(edit_rate(0, 0), 0.0);
    EXPECT_EQ(edit_rate(3, 13), 3.0 / 13);
}

TEST(EditRate, MostEditsWithinAgreesWithTheDivision) {
    for (const double threshold :
         {0.0, 1e-9, 0.01, 0.05, 0.07, 0.1, 0.15, 0.3, 1.0 / 3, 0.49999, 1.0}) {
        for (std::size_t sum = 0; sum < 3000; ++sum) {
            const std::size_t most = most_edits_within(threshold, sum);
            ASSERT_LE(edit_rate(most, sum), threshold) << threshold << " " << sum;
            if (sum == 0) continue;
            ASSERT_GT(edit_rate(most + 1, sum), threshold) << threshold << " " << sum;
        }
    }
}

}  // namespace
}  // namespace gputext
