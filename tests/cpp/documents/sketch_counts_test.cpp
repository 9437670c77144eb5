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

constexpr std::size_t kBins = 232;

struct PlainCounts {
    std::array<std::uint32_t, SketchCounts::classes> letters{};
    std::vector<std::uint32_t> grams = std::vector<std::uint32_t>(kBins);
};

/// From the counts of all texts of one and of two characters that it has.
PlainCounts plain_counts(const std::u32string& text) {
    std::map<std::u32string, std::uint32_t> parts;
    for (std::size_t i = 0; i < text.size(); ++i) {
        ++parts[text.substr(i, 1)];
        if (i + 1 < text.size()) ++parts[text.substr(i, 2)];
    }
    PlainCounts plain;
    for (const auto& [part, times] : parts) {
        SketchCounts counts(kBins);
        counts.count(bytes_of(utf8_of(part)), CharacterLengths::utf8(), {});
        EXPECT_EQ(counts.length(), part.size());
        if (part.size() == 1)
            for (std::size_t i = 0; i < SketchCounts::classes; ++i)
                plain.letters[i] += times * counts.letters()[i];
        else
            for (std::size_t i = 0; i < kBins; ++i) plain.grams[i] += times * counts.grams()[i];
    }
    return plain;
}

/// One object for all texts, of which some are longer than the parts that they are read in.
TEST(SketchCounts, AreSumsOverCharactersAndPairs) {
    RandomStrings random;
    SketchCounts counts(kBins);
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
        }
}

/// Characters of common texts have classes of their own, and pairs of them fall into nearly all
/// bins.
TEST(SketchCounts, TellCharactersApart) {
    SketchCounts counts(kBins);
    const auto utf8 = CharacterLengths::utf8();
    counts.count(bytes_of("abcdefghijklmnopqrstuvwxyz 0123456789\n.,;:()-/_\"'="), utf8, {});
    EXPECT_EQ(*std::ranges::max_element(counts.letters()), 1u);
    std::string pairs;
    for (char a = 'a'; a <= 'z'; ++a)
        for (char b = 'a'; b <= 'z'; ++b) (pairs += a) += b;
    counts.count(bytes_of(pairs), utf8, {});
    EXPECT_LE(std::ranges::count(counts.grams(), 0u), 232 / 20);
    EXPECT_LE(*std::ranges::max_element(counts.grams()), 24u);
    std::u32string cyrillic;
    for (char32_t letter = U'а'; letter <= U'я'; ++letter) cyrillic += letter;
    counts.count(bytes_of(utf8_of(cyrillic)), utf8, {});
    EXPECT_LE(*std::ranges::max_element(counts.letters()), 3u);
}

TEST(SketchCounts, HashAllBytes) {
    RandomStrings random;
    SketchCounts counts(kBins);
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
