#include "cpp/recent_words.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/random_strings.hpp"

namespace gputext {
namespace {

using testing::RandomStrings;

TEST(RecentWords, GivesANumberToOneWordOnly) {
    RandomStrings random;
    RecentWords recent;
    std::vector<std::string> numbered;
    std::size_t known = 0;
    for (int i = 0; i < 300'000; ++i) {
        const std::string word = random.string(random.below(28), "ab\xff");
        const auto next = static_cast<std::uint32_t>(numbered.size());
        const std::uint32_t number = recent.number_of(word, next);
        if (number == next) {
            numbered.push_back(word);
        } else {
            ++known;
            ASSERT_LT(number, next);
            ASSERT_EQ(numbered[number], word);
        }
        if (word.size() > RecentWords::kLongest) {
            ASSERT_EQ(number, next);
        }
    }
    EXPECT_GT(known, 50'000u);
}

TEST(RecentWords, KnowsWhatComesAgainAmongMuchThatDoesNot) {
    RecentWords recent;
    std::uint32_t next = 0;
    const auto number_of = [&](const std::string& word) {
        const std::uint32_t number = recent.number_of(word, next);
        next += number == next;
        return number;
    };
    const auto frequent = [&](int i) { return number_of("frequent" + std::to_string(i)); };
    for (int round = 0; round < 2; ++round)
        for (int i = 0; i < 1000; ++i) frequent(i);
    const std::uint32_t before = next;
    for (int i = 0; i < 1'000'000; ++i) number_of("once" + std::to_string(i));
    EXPECT_EQ(next, before + 1'000'000);
    int known = 0;
    for (int i = 0; i < 1000; ++i) known += frequent(i) < before;
    EXPECT_GT(known, 900);
}

TEST(RecentWords, KnowsShortWordsApart) {
    RecentWords recent;
    std::uint32_t next = 0;
    std::vector<std::string> words{""};
    for (std::size_t i = 0; words.size() < 1000; ++i)
        for (const char* byte : {"a", "b", "\x01"}) words.push_back(words[i] + byte);
    words.push_back(std::string("a\0", 2));
    words.push_back(std::string("\0", 1));
    for (const std::string& word : words) {
        ASSERT_EQ(recent.number_of(word, next), next);
        ++next;
    }
    // Where three of them share a place, one has been forgotten.
    std::size_t known = 0;
    for (std::uint32_t i = 0; i < words.size(); ++i) {
        const std::uint32_t number = recent.number_of(words[i], next);
        ASSERT_TRUE(number == i || number == next) << i;
        known += number == i;
        next += number == next;
    }
    EXPECT_GT(known, words.size() - 20);
}

}  // namespace
}  // namespace gputext
