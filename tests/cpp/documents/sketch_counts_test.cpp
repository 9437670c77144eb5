#include "cpp/documents/detail/sketch_counts.hpp"

#include <gtest/gtest.h>

#include <map>

#include "cpp/base/stoppable.hpp"
#include "tests/support/random_strings.hpp"

namespace gputext {
namespace {

using testing::bytes_of;
using testing::RandomStrings;
using testing::utf8_of;

struct PlainCounts {
    std::vector<std::uint32_t> letters = std::vector<std::uint32_t>(kLetterCells);
    std::vector<std::uint32_t> grams = std::vector<std::uint32_t>(kGramCells);
};

/// From the counts of all texts of one and of two characters that it has.
PlainCounts plain_counts(const std::u32string& text) {
    std::map<std::u32string, std::uint32_t> parts;
    for (std::size_t i = 0; i < text.size(); ++i) {
        ++parts[text.substr(i, 1)];
        if (i + 1 < text.size()) ++parts[text.substr(i, 2)];
    }
    PlainCounts plain;
    SketchCounts counts;
    for (const auto& [part, times] : parts) {
        counts.count(bytes_of(utf8_of(part)), CharacterLengths::utf8(), {});
        EXPECT_EQ(counts.length(), part.size());
        const std::vector<std::uint32_t>& from =
            part.size() == 1 ? counts.letters() : counts.grams();
        std::vector<std::uint32_t>& to = part.size() == 1 ? plain.letters : plain.grams;
        for (std::size_t i = 0; i < from.size(); ++i) to[i] += times * from[i];
    }
    return plain;
}

/// The counts of the cells, in the bins of a part of a model.
std::vector<std::uint32_t> in_bins(const SketchPart& part,
                                   const std::vector<std::uint32_t>& cells) {
    std::vector<std::uint32_t> sums(part.least.size());
    for (std::size_t cell = 0; cell < cells.size(); ++cell) sums[part.bins[cell]] += cells[cell];
    return sums;
}

/// One object for all texts, of which some are longer than the parts that they are read in.
TEST(SketchCounts, AreSumsOverCharactersAndPairs) {
    RandomStrings random;
    const auto numbers = general_sketch_model({});
    const SketchModel model({}, numbers.data());
    SketchCounts counts, counts_in_bins(model);
    const auto utf8 = CharacterLengths::utf8();
    const std::u32string_view alphabets[] = {U"etaoinshrdlu ,.\n", U"abcdeäoб漢字🙂 "};
    std::vector<std::size_t> sizes = {0,          1,
                                      2,          7,
                                      8,          9,
                                      1023,       1024,
                                      1025,       1026,
                                      2047,       2048,
                                      2049,       kLookEvery - 1,
                                      kLookEvery, kLookEvery + 1};
    for (int i = 0; i < 100; ++i) sizes.push_back(random.below(5000));
    for (const std::size_t size : sizes)
        for (const auto letters : alphabets) {
            const auto text = random.string<std::u32string>(size, letters);
            ASSERT_TRUE(counts.count(bytes_of(utf8_of(text)), utf8, {}));
            const PlainCounts plain = plain_counts(text);
            ASSERT_EQ(counts.length(), size);
            ASSERT_EQ(counts.letters(), plain.letters) << size;
            ASSERT_EQ(counts.grams(), plain.grams) << size;
            ASSERT_TRUE(counts_in_bins.count(bytes_of(utf8_of(text)), utf8, {}));
            ASSERT_EQ(counts_in_bins.letters(), in_bins(model.letters(), plain.letters)) << size;
            ASSERT_EQ(counts_in_bins.grams(), in_bins(model.grams(), plain.grams)) << size;
        }
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
    EXPECT_LE(std::ranges::count(counts.grams(), 0u), 450);
    EXPECT_LE(*std::ranges::max_element(counts.grams()), 12u);
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
