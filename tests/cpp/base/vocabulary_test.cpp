#include "cpp/base/vocabulary.hpp"

#include <gtest/gtest.h>

#include <string>
#include <unordered_map>

#include "tests/support/random_strings.hpp"

namespace gputext {
namespace {

using testing::RandomStrings;

TEST(Vocabulary, NumbersTermsInTheOrderInWhichTheyCome) {
    Vocabulary vocabulary;
    EXPECT_EQ(vocabulary.size(), 0u);
    EXPECT_EQ(vocabulary.find("egg"), Vocabulary::kNone);
    EXPECT_EQ(vocabulary.add("egg"), 0u);
    EXPECT_EQ(vocabulary.add("tyre"), 1u);
    EXPECT_EQ(vocabulary.add("egg"), 0u);
    EXPECT_EQ(vocabulary.find("tyre"), 1u);
    EXPECT_EQ(vocabulary.find("tyres"), Vocabulary::kNone);
    EXPECT_EQ(vocabulary.size(), 2u);
    EXPECT_EQ(vocabulary.term(0), "egg");
    EXPECT_EQ(vocabulary.term(1), "tyre");
}

TEST(Vocabulary, TermsAreAnyBytes) {
    using namespace std::string_view_literals;
    Vocabulary vocabulary;
    const std::string_view terms[] = {"", "\0"sv, "\0\0"sv, "\xff", "a\0b"sv, "a", "卵", "Ei"};
    for (std::uint32_t i = 0; i < std::size(terms); ++i) EXPECT_EQ(vocabulary.add(terms[i]), i);
    for (std::uint32_t i = 0; i < std::size(terms); ++i) {
        EXPECT_EQ(vocabulary.find(terms[i]), i);
        EXPECT_EQ(vocabulary.term(i), terms[i]);
    }
}

TEST(Vocabulary, IsThatOfTheStandardLibrary) {
    RandomStrings random;
    for (int round = 0; round < 20; ++round) {
        Vocabulary vocabulary;
        std::unordered_map<std::string, std::uint32_t> expected;
        const std::size_t longest = 1 + random.below(6);
        for (std::size_t i = 0; i < 20000; ++i) {
            const std::string term = random.string(random.below(longest + 1), "abcdefgh");
            const auto known = expected.find(term);
            ASSERT_EQ(vocabulary.find(term),
                      known == expected.end() ? Vocabulary::kNone : known->second);
            const auto number = static_cast<std::uint32_t>(expected.size());
            ASSERT_EQ(vocabulary.add(term), expected.try_emplace(term, number).first->second);
        }
        ASSERT_EQ(vocabulary.size(), expected.size());
        for (const auto& [term, number] : expected) ASSERT_EQ(vocabulary.term(number), term);
    }
}

TEST(Vocabulary, AddsManyAsOneByOne) {
    RandomStrings random;
    Vocabulary vocabulary, expected;
    for (std::size_t count = 0; count < 300; ++count) {
        std::vector<std::string> terms(count);
        for (std::string& term : terms) term = random.string(random.below(5), "abcdefgh");
        EXPECT_TRUE(vocabulary.add_all(std::vector<std::string_view>(terms.begin(), terms.end())));
        for (const std::string& term : terms) expected.add(term);
        ASSERT_EQ(vocabulary.size(), expected.size());
    }
    for (std::uint32_t i = 0; i < expected.size(); ++i)
        ASSERT_EQ(vocabulary.term(i), expected.term(i));
}

TEST(Vocabulary, AddingManyEndsWhenStopped) {
    const std::string large(std::size_t{3} << 20, 'a');
    const std::vector<std::string_view> terms{"small", large, "behind"};
    Vocabulary vocabulary;
    EXPECT_FALSE(vocabulary.add_all(terms, {[](void*) { return true; }, nullptr}));
    EXPECT_EQ(vocabulary.find("behind"), Vocabulary::kNone);
}

TEST(Vocabulary, TakesTheMemoryThatItSays) {
    for (const std::uint32_t terms : {1000u, 100000u, 174763u, 174764u}) {
        Vocabulary vocabulary;
        std::size_t characters = 0;
        for (std::uint32_t i = 0; i < terms; ++i) {
            const std::string term = "term " + std::to_string(i);
            vocabulary.add(term);
            characters += term.size();
        }
        EXPECT_LE(vocabulary.bytes(), 2 * (characters + 30 * std::size_t{terms})) << terms;
        EXPECT_GE(vocabulary.bytes(), characters + 8 * std::size_t{terms});
    }
}

TEST(Vocabulary, IsTheSameWithRoomThatWasReserved) {
    Vocabulary vocabulary;
    EXPECT_EQ(vocabulary.add("first"), 0u);
    vocabulary.reserve(100000);
    const std::size_t slots = vocabulary.bytes();
    EXPECT_EQ(vocabulary.find("first"), 0u);
    std::size_t others = 0;  // bytes of all but the slots
    for (std::uint32_t i = 1; i <= 100000; ++i) {
        ASSERT_EQ(vocabulary.add("term " + std::to_string(i)), i);
        others = std::size_t{i} * 32;
    }
    EXPECT_GE(slots, 1.5 * 100000 * 8);
    EXPECT_LE(vocabulary.bytes(), slots + others);
    EXPECT_EQ(vocabulary.find("term 77777", Vocabulary::hash_of("term 77777")), 77777u);
}

}  // namespace
}  // namespace gputext
