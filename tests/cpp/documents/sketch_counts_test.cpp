#include "cpp/documents/detail/sketch_counts.hpp"

#include <gtest/gtest.h>

#include <map>

#include "cpp/base/stoppable.hpp"
#include "tests/support/random_strings.hpp"
#include "tests/support/test_size.hpp"

namespace gputext {
namespace {

using testing::bytes_of;
using testing::RandomStrings;
using testing::utf8_of;

using Cells = std::vector<std::uint32_t>;

Cells copied(std::span<const std::uint32_t> cells) {
    return {cells.begin(), cells.end()};
}

struct PlainCounts {
    Cells letters = Cells(kLetterCells);
    Cells grams = Cells(2 * kGramCells);
};

/// From the counts of all texts of one and of two characters that it has in each half.
PlainCounts plain_counts(const std::u32string& text) {
    std::map<std::u32string, std::uint32_t> letters, grams[2];
    for (std::size_t i = 0; i < text.size(); ++i) {
        ++letters[text.substr(i, 1)];
        if (i + 1 < text.size()) ++grams[2 * i >= text.size()][text.substr(i, 2)];
    }
    PlainCounts plain;
    SketchCounts counts;
    for (const auto& [letter, times] : letters) {
        counts.count(bytes_of(utf8_of(letter)), CharacterLengths::utf8(), {});
        EXPECT_EQ(counts.length(), 1u);
        for (std::size_t i = 0; i < kLetterCells; ++i)
            plain.letters[i] += times * counts.letters()[i];
    }
    for (const std::size_t half : {0, 1})
        for (const auto& [gram, times] : grams[half]) {
            counts.count(bytes_of(utf8_of(gram)), CharacterLengths::utf8(), {});
            EXPECT_EQ(counts.length(), 2u);
            for (std::size_t i = 0; i < kGramCells; ++i)
                plain.grams[half * kGramCells + i] += times * counts.grams()[i];
        }
    return plain;
}

/// One object for all texts, of which some are longer than the parts that they are read in.
TEST(SketchCounts, AreSumsOverCharactersAndPairsOfHalves) {
    RandomStrings random;
    SketchCounts counts;
    const auto utf8 = CharacterLengths::utf8();
    const std::u32string_view alphabets[] = {U"etaoinshrdlu ,.\n", U"abcdeäoб漢字🙂 ",
                                             U"abcdefghijklmnopqrstuvwxyz abcdefghijklä"};
    std::vector<std::size_t> sizes = {0,          1,
                                      2,          3,
                                      7,          8,
                                      9,          1023,
                                      1024,       1025,
                                      1026,       2047,
                                      2048,       2049,
                                      2050,       kLookEvery - 1,
                                      kLookEvery, kLookEvery + 1};
    for (int i = 0; i < testing::rounds(100); ++i) sizes.push_back(random.below(5000));
    for (const std::size_t size : sizes)
        for (const auto letters : alphabets) {
            // All kinds of characters are in the second one.
            if (testing::tests_are_small() && size > 5000 && letters != alphabets[1]) continue;
            const auto text = random.string<std::u32string>(size, letters);
            ASSERT_TRUE(counts.count(bytes_of(utf8_of(text)), utf8, {}));
            const PlainCounts plain = plain_counts(text);
            ASSERT_EQ(counts.length(), size);
            ASSERT_EQ(copied(counts.letters()), plain.letters) << size;
            ASSERT_EQ(copied(counts.grams()), plain.grams) << size;
        }
}

TEST(SketchCounts, AreAddedUpInBins) {
    RandomStrings random;
    for (int round = 0; round < 200; ++round) {
        const std::size_t cells = round % 2 == 0 ? kGramCells : 2 * kGramCells;
        const std::size_t bins = 32 * (1 + random.below(10));
        Cells counts(2 * kGramCells), expected(bins), found(bins, 7);
        for (auto& count : counts) count = static_cast<std::uint32_t>(random.below(1000));
        std::vector<std::uint16_t> of_cells(cells);
        const std::vector<std::uint16_t> least(bins);
        for (auto& bin : of_cells) bin = static_cast<std::uint16_t>(random.below(bins));
        for (std::size_t i = 0; i < counts.size(); ++i) expected[of_cells[i % cells]] += counts[i];
        add_in_bins(counts, {of_cells, least, {}}, found);
        ASSERT_EQ(found, expected);
    }
}

Cells both_halves(const SketchCounts& counts) {
    Cells sums(kGramCells);
    for (std::size_t i = 0; i < counts.grams().size(); ++i)
        sums[i % kGramCells] += counts.grams()[i];
    return sums;
}

/// Pairs of characters of common texts are told apart by most cells.
TEST(SketchCounts, TellCharactersApart) {
    SketchCounts counts;
    const auto utf8 = CharacterLengths::utf8();
    counts.count(bytes_of("abcdefghijklmnopqrstuvwxyz 0123456789\n.,;:()-/_\"'="), utf8, {});
    EXPECT_EQ(*std::ranges::max_element(counts.letters()), 1u);
    std::string pairs;
    for (char a = 'a'; a <= 'z'; ++a)
        for (char b = 'a'; b <= 'z'; ++b) (pairs += a) += b;
    counts.count(bytes_of(pairs), utf8, {});
    EXPECT_LE(std::ranges::count(both_halves(counts), 0u), 450);
    EXPECT_LE(std::ranges::max(both_halves(counts)), 12u);
    std::u32string cyrillic;
    for (char32_t letter = U'а'; letter <= U'я'; ++letter) cyrillic += letter;
    counts.count(bytes_of(utf8_of(cyrillic)), utf8, {});
    EXPECT_LE(*std::ranges::max_element(counts.letters()), 3u);
}

TEST(SketchCounts, HashAllBytes) {
    RandomStrings random;
    SketchCounts counts;
    const auto hash_of = [&](const std::string& text) {
        counts.count(bytes_of(text), CharacterLengths::utf8(), {});
        return counts.hash();
    };
    for (int round = 0; round < 2000; ++round) {
        std::string text = random.string(1 + random.below(100), "ab");
        const std::uint32_t hash = hash_of(text);
        ASSERT_EQ(hash_of(text), hash);
        ASSERT_NE(hash_of(text + '\0'), hash);
        text[random.below(text.size())] ^= 3;
        ASSERT_NE(hash_of(text), hash);
    }
}

}  // namespace
}  // namespace gputext
