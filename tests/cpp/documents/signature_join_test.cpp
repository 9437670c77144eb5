#include "cpp/documents/detail/signature_join.hpp"

#include <gtest/gtest.h>

#include "cpp/documents/edit_distance.hpp"
#include "tests/support/on_each_simd.hpp"
#include "tests/support/random_strings.hpp"
#include "tests/support/related_strings.hpp"

namespace gputext {
namespace {

using testing::bytes_of;
using testing::kEachSimd;
using testing::kSanitized;
using testing::name_of_simd;
using testing::OnEachSimd;
using testing::plain_edit_distance;
using testing::RandomStrings;
using testing::related_strings;

/// The pairs of so many rows, in order, for which the condition holds.
template <class Condition>
std::vector<IndexPair> pairs_where(std::size_t rows, const Condition& condition) {
    std::vector<IndexPair> pairs;
    for (std::uint32_t i = 0; i < rows; ++i)
        for (std::uint32_t j = i + 1; j < rows; ++j)
            if (condition(i, j)) pairs.push_back({i, j});
    return pairs;
}

class OnEachInstructionSet : public OnEachSimd {};

INSTANTIATE_TEST_SUITE_P(Simd, OnEachInstructionSet, kEachSimd, name_of_simd);

TEST_P(OnEachInstructionSet, LetterFilterEqualsCounting) {
    RandomStrings random;
    for (const std::size_t depth : {4, 8, 16, 32}) {
        const auto strings = related_strings(random, 203, 26 * depth);
        LetterCounts counts(strings.size(), depth);
        for (std::size_t i = 0; i < strings.size(); ++i) counts.set(i, strings[i]);
        const LetterFilter filter = letter_filter(GetParam(), depth);
        for (int round = 0; round < 300; ++round) {
            const std::size_t begin = random.below(strings.size());
            const std::size_t end = begin + random.below(strings.size() - begin + 1);
            const std::size_t row = random.below(strings.size());
            std::vector<std::int64_t> least(end - begin);
            std::vector<std::uint32_t> expected;
            for (std::size_t column = begin; column < end; ++column) {
                std::int64_t common = 0;
                for (const char letter : kSignatureAlphabet)
                    common += static_cast<std::int64_t>(std::min<std::size_t>(
                        {depth,
                         static_cast<std::size_t>(
                             std::count(strings[row].begin(), strings[row].end(), letter)),
                         static_cast<std::size_t>(
                             std::count(strings[column].begin(), strings[column].end(), letter))}));
                least[column - begin] = common + static_cast<std::int64_t>(random.below(3)) - 1;
                if (common >= least[column - begin])
                    expected.push_back(static_cast<std::uint32_t>(column));
            }
            std::vector<std::uint64_t> words(depth);
            counts.copy_column(row, words.data());
            std::vector<std::uint32_t> hits(end - begin + 1);
            hits.resize(filter(words.data(), counts, begin, end, least.data(), hits.data()));
            ASSERT_EQ(hits, expected) << "depth " << depth << ", columns " << begin << ".." << end;
        }
    }
}

TEST_P(OnEachInstructionSet, JoinOfLettersEqualsBruteForce) {
    RandomStrings random;
    for (const std::size_t longest : {12, 100, 128, 400}) {
        const auto strings =
            related_strings(random, longest > 128 || kSanitized ? 120 : 400, longest);
        const std::vector<std::string_view> views(strings.begin(), strings.end());
        std::vector<std::vector<std::size_t>> distances(strings.size());
        for (std::size_t i = 0; i < strings.size(); ++i)
            for (std::size_t j = 0; j < strings.size(); ++j)
                distances[i].push_back(j > i ? plain_edit_distance(strings[i], strings[j]) : 0);
        for (const double rate : {0.0, 0.02, 0.075, 0.15, 0.3, 0.6, 1.0}) {
            const auto expected = pairs_where(strings.size(), [&](std::size_t i, std::size_t j) {
                return edit_rate(distances[i][j], strings[i].size() + strings[j].size()) <= rate;
            });
            Execution execution(3);
            std::vector<IndexPair> pairs;
            ASSERT_TRUE(join_letters(views, rate, GetParam(), execution, pairs).ok());
            ASSERT_EQ(pairs, expected) << "rate " << rate << ", up to " << longest << " letters";
        }
    }
}

TEST_P(OnEachInstructionSet, JoinOfSignaturesEqualsComparingEachPair) {
    RandomStrings random;
    std::vector<Ctph> signatures;
    for (int i = 0; i < 150; ++i) {
        const auto text = random.string(random.below(4000), "etaoin shrdlu\n");
        signatures.push_back(*ctph_signature(bytes_of(text), 100));
        // Growing a document moves it to the next block size: the pair is found there.
        auto grown = text + random.string(random.below(text.size() / 10 + 2), "etaoin shrdlu\n");
        grown = random.edited(grown, random.below(30), "etaoin");
        signatures.push_back(*ctph_signature(bytes_of(grown), random.below(4) == 0 ? 60 : 100));
    }
    for (const double rate : {0.05, 0.15, 0.5}) {
        const auto expected = pairs_where(signatures.size(), [&](std::size_t i, std::size_t j) {
            return edit_rate(signatures[i], signatures[j]) <= rate;
        });
        ASSERT_FALSE(expected.empty());
        Execution execution(2);
        std::vector<IndexPair> pairs;
        ASSERT_TRUE(join_signatures(signatures, rate, GetParam(), execution, pairs).ok());
        ASSERT_EQ(pairs, expected) << "rate " << rate;
    }
}

TEST(SignatureJoin, EndsWhenAskedToStop) {
    std::vector<Ctph> signatures(1000, *parse_ctph("4:ABC:D"));
    Execution execution(2);
    execution.request_stop();
    std::vector<IndexPair> pairs;
    const Status status = join_signatures(signatures, 0.1, best_simd(), execution, pairs);
    EXPECT_EQ(status.code(), ErrorCode::cancelled);
}

}  // namespace
}  // namespace gputext
