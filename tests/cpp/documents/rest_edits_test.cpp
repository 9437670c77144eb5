#include "cpp/documents/detail/rest_edits.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "cpp/documents/edit_distance.hpp"
#include "tests/support/random_strings.hpp"

namespace gputext {
namespace {

using testing::bytes_of;
using testing::kSanitized;
using testing::plain_edit_distance;
using testing::RandomStrings;

/// Words of a vocabulary of its own, as in a text.
std::string text_of(RandomStrings& random, std::size_t length, std::string_view letters) {
    std::vector<std::string> words;
    while (words.size() < 500) words.push_back(random.string(2 + random.below(9), letters));
    std::string text;
    while (text.size() < length) text += words[random.below(words.size())] + ' ';
    text.resize(length);
    return text;
}

/// The text with edits in some parts of it, and perhaps a part that has moved.
std::string version_of(RandomStrings& random, const std::string& text, std::size_t edits,
                       std::string_view letters) {
    std::string version = text;
    const std::size_t begin = random.below(text.size() / 2);
    const std::string part = text.substr(begin, text.size() / 3);
    version.replace(begin, part.size(), random.edited(part, edits, letters));
    if (random.below(3) == 0)
        version = random.string(random.below(300), letters) + version.substr(random.below(300));
    return version;
}

constexpr std::string_view kAlphabets[] = {"ab", "acgt", "etaoinshrdlu", "0123456789abcdef"};

/// [i]: the distance of a and b's first i symbols; the rows before are forgotten.
std::vector<std::uint32_t> last_row(std::string_view a, std::string_view b) {
    std::vector<std::uint32_t> row(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); ++j) row[j] = static_cast<std::uint32_t>(j);
    for (const char letter : a) {
        std::uint32_t diagonal = row[0]++;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::uint32_t best =
                std::min({diagonal + (letter != b[j - 1]), row[j] + 1, row[j - 1] + 1});
            diagonal = std::exchange(row[j], best);
        }
    }
    return row;
}

TEST(RestEdits, AreALowerBoundOfEachRest) {
    RandomStrings random;
    RestEdits rest;
    std::size_t told = 0;
    for (int round = 0; round < testing::rounds(kSanitized ? 4 : 8, kSanitized ? 4 : 16); ++round) {
        const std::string_view letters = kAlphabets[random.below(4)];
        std::string a = round % 4 == 0 ? random.string(2000 + random.below(3000), letters)
                                       : text_of(random, 2000 + random.below(3000), letters);
        std::string b = round % 5 == 0 ? text_of(random, a.size(), letters)
                                       : version_of(random, a, random.below(600), letters);
        if (a.size() > b.size()) std::swap(a, b);
        const std::size_t distance = plain_edit_distance(a, b);
        for (const std::size_t limit : {distance, distance + 100, 2 * distance, b.size()}) {
            if (limit < distance) continue;
            ASSERT_TRUE(rest.assign(bytes_of(a), bytes_of(b), limit, {}));
            ASSERT_LE(rest.whole(), distance) << "limit " << limit;
            told += rest.whole();
            // A way within the limit that leaves row i at column j.
            for (std::size_t i = 0; i < a.size(); i += 1 + random.below(900)) {
                const std::string_view behind_a = std::string_view(a).substr(i);
                const auto before = last_row(std::string_view(a).substr(0, i), b);
                const std::string back_a(behind_a.rbegin(), behind_a.rend());
                const std::string back_b(b.rbegin(), b.rend());
                const auto behind = last_row(back_a, back_b);
                for (std::size_t j = 0; j <= b.size(); ++j) {
                    if (before[j] + behind[b.size() - j] > limit) continue;
                    ASSERT_LE(rest.behind(i), behind[b.size() - j])
                        << "row " << i << ", column " << j << ", limit " << limit;
                }
            }
        }
        if (distance > 0) {
            ASSERT_TRUE(rest.assign(bytes_of(a), bytes_of(b),
                                    std::max(distance / 2, b.size() - a.size()), {}));
        }
    }
    EXPECT_GT(told, 1000u);
}

TEST(RestEdits, ExcludeUnrelatedTexts) {
    RandomStrings random;
    for (const std::string_view letters : {kAlphabets[2], kAlphabets[3]}) {
        const std::string a = text_of(random, 300'000, letters);
        const std::string b = text_of(random, 310'000, letters);
        RestEdits rest;
        const std::size_t limit = 30'500;  // a rate of 0.05
        ASSERT_TRUE(rest.assign(bytes_of(a), bytes_of(b), limit, {}));
        EXPECT_EQ(rest.whole(), limit + 1);
    }
}

/// Wide bands look at what the rests take; the distance stays the same.
TEST(RestEdits, LeaveTheDistanceAsItIs) {
    RandomStrings random;
    EditDistance edit_distance;
    for (int round = 0; round < testing::rounds(kSanitized ? 1 : 2, kSanitized ? 1 : 4); ++round) {
        const std::string_view letters = kAlphabets[round];
        const std::string a = text_of(random, 26'000 + random.below(4000), letters);
        const std::string b = round % 2 == 0
                                  ? text_of(random, a.size() + random.below(2000), letters)
                                  : version_of(random, a, 9000, letters);
        const std::size_t truth = plain_edit_distance(a, b);
        for (const std::size_t limit : {truth - 1, truth, truth + 500, EditDistance::no_limit})
            ASSERT_EQ(*edit_distance(bytes_of(a), bytes_of(b), limit), std::min(truth, limit + 1));
    }
}

/// Unrelated texts take a time linear in their length: about as many steps as characters, where
/// the band of the limit has a hundred times as many.
TEST(RestEdits, BoundTheWorkOfUnrelatedTexts) {
    RandomStrings random;
    const std::size_t length = kSanitized ? 200'000 : 1'000'000;
    const std::string a = text_of(random, length, kAlphabets[2]);
    const std::string b = text_of(random, length, kAlphabets[2]);
    // Every other part of this one is a's.
    std::string half;
    for (std::size_t at = 0; at < length; at += 2000)
        half += a.substr(at, 1000) + b.substr(at, 1000);
    const std::size_t limit = length / 10;
    for (const std::string& other : {b, half}) {
        EditDistance edit_distance;
        ASSERT_EQ(*edit_distance(bytes_of(a), bytes_of(other), limit), limit + 1);
        EXPECT_LT(edit_distance.band_steps(), 20 * length);
    }
}

}  // namespace
}  // namespace gputext
