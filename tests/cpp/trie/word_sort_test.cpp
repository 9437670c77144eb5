#include "cpp/trie/detail/word_sort.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "cpp/base/execution.hpp"
#include "tests/support/random_strings.hpp"

namespace gputext {
namespace {

using testing::kSanitized;
using testing::RandomStrings;

/// Enough words for some buckets, and for some parts of those that threads divide.
constexpr std::size_t kMany = kSanitized ? 20000 : 50000;

/// Sorted on one thread and on several, as the standard library sorts.
void expect_sorted(const std::vector<std::string>& words) {
    std::vector<std::string_view> expected(words.begin(), words.end());
    std::sort(expected.begin(), expected.end());
    expected.erase(std::unique(expected.begin(), expected.end()), expected.end());
    for (const unsigned threads : {1u, 3u}) {
        std::vector<std::string_view> sorted(words.begin(), words.end());
        Execution execution(threads);
        const Status status = sort_words(sorted, execution);
        ASSERT_TRUE(status.ok()) << status.message();
        ASSERT_TRUE(sorted == expected) << threads;
    }
}

TEST(WordSort, SortsWordsOfAnyBytes) {
    RandomStrings random;
    const std::string letters("\0\1a\x7f\x80\xff", 6);
    for (const std::size_t count : {2, 100, 3000, static_cast<int>(kMany)})
        for (const std::size_t longest : {2, 8, 20}) {
            std::vector<std::string> words(count);
            for (std::string& word : words)
                word = random.string(random.below(longest + 1), letters);
            expect_sorted(words);
        }
}

TEST(WordSort, ManyWordsMayBeginWithTheSameBytes) {
    RandomStrings random;
    // Of every length: what a word is compared by ends within them, before and behind them.
    for (const std::size_t length : {1, 6, 7, 8, 13, 14, 15, 200}) {
        const std::string common = random.string(length, "ab");
        std::vector<std::string> words(kMany / 2);
        for (std::string& word : words)
            word = common.substr(0, random.below(8) == 0 ? random.below(length + 1) : length) +
                   random.string(random.below(12), "abc");
        expect_sorted(words);
    }
}

TEST(WordSort, WordsMayBeginWithEachOther) {
    std::vector<std::string> words;
    for (std::size_t length = 0; length < 3000; ++length) words.emplace_back(length, 'a');
    std::reverse(words.begin(), words.end());
    expect_sorted(words);
    for (std::string& word : words) word.push_back('\0');
    expect_sorted(words);
}

TEST(WordSort, OneWordMayComeManyTimes) {
    RandomStrings random;
    std::vector<std::string> words(kMany, "the same word each time");
    words[kMany / 2] = "the same word each day";
    expect_sorted(words);
    for (std::size_t i = 0; i < kMany; i += 2) words[i] = random.string(3, "abcdefgh");
    expect_sorted(words);
}

TEST(WordSort, EndsWhenStopped) {
    RandomStrings random;
    std::vector<std::string> words(kMany);
    for (std::string& word : words) word = random.string(5, "abc");
    std::vector<std::string_view> sorted(words.begin(), words.end());
    Execution execution(2);
    execution.request_stop();
    EXPECT_EQ(sort_words(sorted, execution).code(), ErrorCode::cancelled);
}

}  // namespace
}  // namespace gputext
