#include "cpp/documents/detail/document_kinds.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <utility>

#include "tests/support/random_strings.hpp"
#include "tests/support/test_size.hpp"

namespace gputext {
namespace {

using testing::RandomStrings;

/// Documents around some typical ones, in turn.
std::vector<LetterRoots> documents_around(RandomStrings& random, std::size_t typical,
                                          std::size_t count) {
    std::vector<LetterRoots> documents(count);
    for (std::size_t i = 0; i < count; ++i)
        for (std::size_t cell = 0; cell < kLetterCells; ++cell)
            documents[i][cell] = static_cast<std::int16_t>(
                (cell % typical == i % typical ? 1000 : 0) + random.below(100));
    return documents;
}

std::vector<DocumentKind> kinds_of(const std::vector<LetterRoots>& documents, std::size_t most,
                                   const std::function<double(const DocumentNumbers&)>& difficulty,
                                   unsigned threads = 1) {
    Execution execution(threads);
    auto kinds = document_kinds(documents, most, difficulty, execution);
    EXPECT_TRUE(kinds.ok());
    return std::move(*kinds);
}

double by_size(const DocumentNumbers& numbers) {
    return static_cast<double>(numbers.size());
}

TEST(DocumentKinds, AreThoseThatThereAre) {
    RandomStrings random;
    for (const std::size_t typical : {1, 2, 3, 5}) {
        const auto documents = documents_around(random, typical, 100 * typical);
        const auto kinds = kinds_of(documents, typical, by_size);
        ASSERT_EQ(kinds.size(), typical);
        for (const DocumentKind& kind : kinds) {
            ASSERT_EQ(kind.documents.size(), 100u);
            for (const std::size_t number : kind.documents)
                ASSERT_EQ(number % typical, kind.documents[0] % typical);
        }
    }
}

/// Whatever kinds there are, each document is of the one whose typical document is nearest.
TEST(DocumentKinds, ShareAllDocumentsOut) {
    RandomStrings random;
    for (int round = 0; round < (testing::tests_are_small() ? 8 : 30); ++round) {
        const std::size_t count = random.below(600), most = 1 + random.below(16);
        const auto documents = documents_around(random, 1 + random.below(9), count);
        const auto kinds = kinds_of(documents, most, by_size);
        ASSERT_GE(kinds.size(), 1u);
        ASSERT_LE(kinds.size(), most);
        std::vector<int> times(count);
        for (const DocumentKind& kind : kinds)
            for (const std::size_t number : kind.documents) {
                ++times[number];
                for (const DocumentKind& other : kinds)
                    ASSERT_LE(square_distance(documents[number], kind.typical),
                              square_distance(documents[number], other.typical));
            }
        ASSERT_EQ(times, std::vector<int>(count, 1));
        const auto again = kinds_of(documents, most, by_size, 3);
        ASSERT_EQ(again.size(), kinds.size());
        for (std::size_t i = 0; i < kinds.size(); ++i) {
            ASSERT_EQ(again[i].typical, kinds[i].typical);
            ASSERT_EQ(again[i].documents, kinds[i].documents);
        }
    }
}

/// The kind that is the most difficult is split, and none that is not difficult at all.
TEST(DocumentKinds, SplitTheMostDifficultOne) {
    RandomStrings random;
    const auto documents = documents_around(random, 4, 400);
    EXPECT_EQ(kinds_of(documents, 9, [](const auto&) { return 0.0; }).size(), 1u);
    // Only kinds with documents of the first typical one are difficult: it ends up alone.
    const auto kinds = kinds_of(documents, 9, [](const DocumentNumbers& numbers) {
        const auto of_first =
            std::ranges::count_if(numbers, [](std::size_t number) { return number % 4 == 0; });
        return static_cast<std::size_t>(of_first) == numbers.size() ? 0.0
                                                                    : static_cast<double>(of_first);
    });
    EXPECT_GE(kinds.size(), 2u);
    EXPECT_LE(kinds.size(), 4u);
    EXPECT_TRUE(std::ranges::any_of(kinds, [](const DocumentKind& kind) {
        return kind.documents.size() == 100 && kind.documents[0] == 0;
    }));
}

TEST(DocumentKinds, AreNotOfFewDocuments) {
    RandomStrings random;
    EXPECT_EQ(kinds_of(documents_around(random, 2, 63), 2, by_size).size(), 1u);
    EXPECT_EQ(kinds_of(documents_around(random, 2, 64), 2, by_size).size(), 2u);
    EXPECT_EQ(kinds_of({}, 2, [](const auto&) { return 0.0; }).size(), 1u);
}

TEST(DocumentKinds, AreNoneWhenStopped) {
    RandomStrings random;
    const auto documents = documents_around(random, 4, 400);
    Execution execution(2);
    std::atomic<int> calls = 0;
    const auto stop_at_third = [&](const DocumentNumbers& numbers) {
        if (++calls == 3) execution.request_stop();
        return by_size(numbers);
    };
    EXPECT_EQ(document_kinds(documents, 9, stop_at_third, execution).status().code(),
              ErrorCode::cancelled);
    EXPECT_LE(calls, 4);
}

}  // namespace
}  // namespace gputext
