#include "cpp/base/recent_words.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/random_strings.hpp"

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

/// Gives numbers, and counts.
class Numbering {
public:
    bool known(const std::string& word) {
        const std::uint32_t number = recent_.number_of(word, next_);
        const bool is_new = number == next_;
        next_ += is_new;
        return !is_new;
    }

private:
    RecentWords recent_;
    std::uint32_t next_ = 0;
};

TEST(RecentWords, KnowsWhatComesAgainAmongMuchThatDoesNot) {
    Numbering words;
    int known = 0;
    for (int i = 0; i < 1'000'000; ++i) {
        EXPECT_FALSE(i % 4 != 0 && words.known("once" + std::to_string(i)));
        if (i % 4 == 0) known += words.known("again" + std::to_string(i / 4 % 1000));
    }
    EXPECT_GT(known, 225'000);
}

TEST(RecentWords, SeesWhenWordsBeginToComeAgain) {
    Numbering words;
    for (int i = 0; i < 1'000'000; ++i) ASSERT_FALSE(words.known("once" + std::to_string(i)));
    int known = 0;
    for (int i = 0; i < 200'000; ++i) known += words.known("again" + std::to_string(i % 1000));
    EXPECT_GT(known, 150'000);
}

TEST(RecentWords, KnowsWordsWithTheSameEndsApart) {
    RecentWords recent;
    for (std::uint32_t i = 0; i < 4000; ++i) {
        const std::string digits = std::to_string(10'000'000 + i);
        ASSERT_EQ(recent.number_of("the same" + digits + "the same", i), i);
    }
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
