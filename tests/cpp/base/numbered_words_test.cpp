#include "cpp/base/numbered_words.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/random_strings.hpp"

namespace gputext {
namespace {

using testing::kSanitized;
using testing::RandomStrings;

using Numbers = std::vector<std::vector<std::uint32_t>>;

/// Not the number of any word of the tests.
constexpr std::uint32_t kUntouched = 4000000000;

/// Lists of words, each a word at most once, and runs of them in some order.
struct Case {
    std::deque<Vocabulary> of_lists;
    std::vector<Words> lists;
    std::vector<WordRun> runs;

    void add_list(RandomStrings& random, std::size_t words, std::size_t longest,
                  std::string_view letters) {
        Vocabulary& list = of_lists.emplace_back();
        for (std::size_t i = 0; i < words; ++i)
            list.add(random.string(random.below(longest + 1), letters));
    }
    /// Divides each list into runs of at most `longest` words, leaves out some, and shuffles them.
    void add_runs(RandomStrings& random, std::size_t longest) {
        for (const Vocabulary& list : of_lists) lists.push_back(list.words());
        for (std::uint32_t list = 0; list < lists.size(); ++list)
            for (std::uint32_t begin = 0; begin < lists[list].size();) {
                const auto end = static_cast<std::uint32_t>(
                    std::min(lists[list].size(), begin + random.below(longest + 1)));
                if (random.below(8) > 0) runs.push_back({list, begin, end});
                begin = end;
            }
        for (std::size_t i = runs.size(); i > 1; --i) std::swap(runs[i - 1], runs[random.below(i)]);
    }
    Numbers untouched() const {
        Numbers numbers;
        for (const Words& list : lists) numbers.emplace_back(list.size(), kUntouched);
        return numbers;
    }
    Numbers one_by_one(bool closed, Vocabulary& vocabulary) const {
        Numbers numbers = untouched();
        for (const WordRun& run : runs)
            for (std::uint32_t word = run.begin; word < run.end; ++word) {
                const std::string_view bytes = lists[run.list][word];
                numbers[run.list][word] = closed ? vocabulary.find(bytes) : vocabulary.add(bytes);
            }
        return numbers;
    }
    void check(bool closed, const std::vector<std::string>& known, unsigned threads) const {
        Vocabulary expected, vocabulary;
        for (const std::string& word : known) {
            expected.add(word);
            vocabulary.add(word);
        }
        const Numbers wanted = one_by_one(closed, expected);
        Numbers numbers = untouched();
        Execution execution(threads);
        ASSERT_TRUE(number_words(lists, runs, closed, vocabulary, numbers, execution).ok());
        EXPECT_EQ(numbers, wanted);
        EXPECT_EQ(execution.done(), execution.total());
        ASSERT_EQ(vocabulary.size(), expected.size());
        for (std::uint32_t number = 0; number < expected.size(); ++number)
            ASSERT_EQ(vocabulary.term(number), expected.term(number));
    }
};

TEST(NumberedWords, HaveTheNumbersOfWordsThatAreAddedOneByOne) {
    RandomStrings random;
    for (unsigned round = 0; round < 100; ++round) {
        Case words;
        const std::size_t longest = 1 + random.below(5);
        for (std::size_t list = random.below(10); list > 0; --list)
            words.add_list(random, random.below(300), longest, "abcdefgh");
        words.add_runs(random, 1 + random.below(50));
        std::vector<std::string> known;
        for (std::size_t i = random.below(100); i > 0; --i)
            known.push_back(random.string(random.below(longest + 1), "abcdefgh"));
        for (const bool closed : {false, true}) words.check(closed, known, 1 + round % 8);
    }
}

/// Of several parts and partitions.
TEST(NumberedWords, AreTheSameOnAnyNumberOfThreads) {
    RandomStrings random;
    Case words;
    for (int list = 0; list < 5; ++list) words.add_list(random, 30000, 5, "abcdefghij");
    words.add_runs(random, 2000);
    const std::vector<std::string> known{"", "a", "bcd", "not among them", "jihgf"};
    for (unsigned threads = 1; threads <= 8; ++threads)
        for (const bool closed : {false, true}) words.check(closed, known, threads);
}

/// More than are numbered at once: later ones are in the vocabulary already.
TEST(NumberedWords, MayBeMoreThanAreNumberedAtOnce) {
    if (kSanitized) GTEST_SKIP() << "takes long with sanitizers";
    RandomStrings random;
    Case words;
    for (int list = 0; list < 25; ++list) words.add_list(random, 200000, 6, "abcdefghij");
    words.add_runs(random, 30000);
    std::size_t count = 0;
    for (const WordRun& run : words.runs) count += run.end - run.begin;
    ASSERT_GT(count, std::size_t{1} << 20);
    words.check(false, {}, 3);
}

TEST(NumberedWords, MayBeNone) {
    const Case none;
    none.check(false, {"word"}, 4);
    Case empty;
    empty.of_lists.resize(3);
    for (const Vocabulary& list : empty.of_lists) empty.lists.push_back(list.words());
    empty.runs = {{2, 0, 0}, {0, 0, 0}};
    empty.check(false, {}, 4);
}

TEST(NumberedWords, EndWhenStopped) {
    RandomStrings random;
    Case words;
    words.add_list(random, 1000, 5, "abcdefgh");
    words.add_runs(random, 1000);
    for (const unsigned threads : {1u, 4u}) {
        Vocabulary vocabulary;
        Numbers numbers = words.untouched();
        Execution execution(threads);
        execution.request_stop();
        EXPECT_EQ(
            number_words(words.lists, words.runs, false, vocabulary, numbers, execution).code(),
            ErrorCode::cancelled);
    }
}

}  // namespace
}  // namespace gputext
