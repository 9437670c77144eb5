#include "cpp/groups/groups.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <numeric>

#include "tests/support/plain_groups.hpp"
#include "tests/support/random_strings.hpp"

namespace gputext {
namespace {

using testing::GroupRow;
using testing::plain_groups;
using testing::RandomStrings;

constexpr std::size_t kUnlimited = std::numeric_limits<std::size_t>::max();
constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kGreatest = std::numeric_limits<std::int64_t>::max();

std::vector<GroupRow> rows_of(const IdGroups& found) {
    std::vector<GroupRow> rows;
    found.groups.for_each([&](std::uint32_t node) {
        const std::uint32_t name = found.groups.names[node];
        rows.emplace_back(found.id(node), found.id(name), found.groups.sizes[name]);
    });
    return rows;
}

std::vector<GroupRow> run(const std::vector<std::int64_t>& ends, GroupOrder order,
                          unsigned threads = 3) {
    Execution execution(threads);
    const Result<IdGroups> found = groups_of_ids(ends, order, kUnlimited, execution);
    EXPECT_TRUE(found.ok()) << found.status().message();
    return rows_of(*found);
}

void expect_plain(const std::vector<std::int64_t>& ends) {
    for (const GroupOrder order : {GroupOrder::by_node, GroupOrder::by_occurrence})
        ASSERT_EQ(run(ends, order), plain_groups(ends, order));
}

/// Whatever its bits, a permutation of 64-bit numbers.
std::int64_t scattered(std::int64_t id) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(id + 1) * 0x9e3779b97f4a7c15);
}

TEST(Groups, AreThoseOfABreadthFirstSearch) {
    RandomStrings random;
    for (int round = 0; round < 400; ++round) {
        std::vector<std::int64_t> ends(2 * random.below(300));
        const std::size_t ids = 1 + random.below(400);
        const std::size_t kind = random.below(4);
        for (std::int64_t& end : ends) {
            end = static_cast<std::int64_t>(random.below(ids));
            if (kind == 1) end = scattered(end);
            if (kind == 2) end = end % 2 == 0 ? kLeast + end : kGreatest - end;
            if (kind == 3) end = static_cast<std::int64_t>(std::uint64_t{1} << end % 63) - 9;
        }
        expect_plain(ends);
    }
}

TEST(Groups, OfNothingAndOfSelves) {
    expect_plain({});
    expect_plain({5, 5});
    expect_plain({kGreatest, kGreatest, kLeast, kLeast});
    expect_plain({kGreatest, kLeast});
    expect_plain({3, 1, 1, 3, 3, 3});
    EXPECT_EQ(run({9, 7, 5, 9, 1, 1}, GroupOrder::by_occurrence),
              (std::vector<GroupRow>{{9, 9, 3}, {7, 9, 3}, {5, 9, 3}, {1, 1, 1}}));
    EXPECT_EQ(run({9, 7, 5, 9, 1, 1}, GroupOrder::by_node),
              (std::vector<GroupRow>{{1, 1, 1}, {5, 5, 3}, {7, 5, 3}, {9, 5, 3}}));
}

/// Large enough for many steps of many threads.
TEST(Groups, OfChainsStarsAndCliques) {
    constexpr std::int64_t kLength = 1000000;
    for (const bool scatter : {false, true}) {
        const auto id = [&](std::int64_t i) { return scatter ? scattered(i) : i; };
        std::vector<std::int64_t> up, down, star, cliques;
        for (std::int64_t i = 0; i < kLength; ++i) {
            up.insert(up.end(), {id(i), id(i + 1)});
            down.insert(down.end(), {id(kLength - i), id(kLength - i - 1)});
            star.insert(star.end(), {id(kLength), id(i)});
        }
        for (std::int64_t i = 0; i < 500; ++i)
            for (std::int64_t j = 0; j < i; ++j)
                cliques.insert(cliques.end(), {id(2 * i), id(2 * j), id(2 * j + 1), id(2 * i + 1)});
        for (const auto* const ends : {&up, &down, &star}) {
            const auto rows = run(*ends, GroupOrder::by_occurrence);
            ASSERT_EQ(rows.size(), kLength + 1);
            for (const auto& [own, name, size] : rows) {
                ASSERT_EQ(name, (*ends)[0]);
                ASSERT_EQ(size, kLength + 1);
            }
            ASSERT_EQ(std::get<1>(run(*ends, GroupOrder::by_node).back()),
                      *std::min_element(ends->begin(), ends->end()));
        }
        expect_plain(cliques);
    }
}

TEST(Groups, OfManyRandomPairsOnAnyNumberOfThreads) {
    RandomStrings random;
    for (const std::size_t ids : {1000u, 60000u, 500000u})
        for (const bool scatter : {false, true}) {
            std::vector<std::int64_t> ends(100000);
            for (std::int64_t& end : ends) {
                end = static_cast<std::int64_t>(random.below(ids));
                if (scatter) end = scattered(end);
            }
            const auto expected = plain_groups(ends, GroupOrder::by_occurrence);
            for (const unsigned threads : {1u, 2u, 7u})
                ASSERT_EQ(run(ends, GroupOrder::by_occurrence, threads), expected);
            ASSERT_EQ(run(ends, GroupOrder::by_node, 7), plain_groups(ends, GroupOrder::by_node));
        }
}

/// Far apart but for one id, near which most are: parts of very different size.
TEST(Groups, OfIdsThatAreSpreadUnevenly) {
    RandomStrings random;
    std::vector<std::int64_t> ends(400000);
    for (std::int64_t& end : ends)
        end = random.below(100) == 0 ? scattered(static_cast<std::int64_t>(random.below(1000)))
                                     : static_cast<std::int64_t>(random.below(150000));
    ends[17] = kLeast;
    ends[18] = kGreatest;
    expect_plain(ends);
}

TEST(Groups, OfNodes) {
    Execution execution(2);
    const std::vector<std::uint32_t> ends{3, 1, 0, 0, 2, 1};
    const auto found = groups_of_nodes(ends, 4, GroupOrder::by_node, kUnlimited, execution);
    ASSERT_TRUE(found.ok());
    EXPECT_EQ(found->names, (std::vector<std::uint32_t>{0, 1, 1, 1}));
    EXPECT_EQ(found->sizes, (std::vector<std::uint32_t>{1, 3, 0, 0}));
    const auto occurring =
        groups_of_nodes(ends, 4, GroupOrder::by_occurrence, kUnlimited, execution);
    ASSERT_TRUE(occurring.ok());
    EXPECT_EQ(occurring->order, (std::vector<std::uint32_t>{3, 1, 0, 2}));
    EXPECT_EQ(occurring->names, (std::vector<std::uint32_t>{0, 3, 3, 3}));
    EXPECT_EQ(occurring->sizes, (std::vector<std::uint32_t>{1, 0, 0, 3}));
}

/// With just enough memory, and a byte less.
TEST(Groups, StayWithinTheMemoryLimit) {
    std::vector<std::int64_t> near(2000), far(2000);
    std::iota(near.begin(), near.end(), 0);
    std::transform(near.begin(), near.end(), far.begin(), scattered);
    for (const auto* const ends : {&near, &far})
        for (const GroupOrder order : {GroupOrder::by_node, GroupOrder::by_occurrence}) {
            Execution execution(2);
            std::size_t enough = 1;
            while (!groups_of_ids(*ends, order, enough, execution).ok()) ++enough;
            const std::size_t each = order == GroupOrder::by_node ? 8 : 16;
            const std::size_t nodes = 2000 * each + 250;
            EXPECT_EQ(enough,
                      ends == &near ? nodes : std::max<std::size_t>(2000 * 24, 2000 * 12 + nodes));
            const auto refused = groups_of_ids(*ends, order, enough - 1, execution);
            EXPECT_EQ(refused.status().code(), ErrorCode::memory_limit);
        }
}

TEST(Groups, StopWhenAsked) {
    const std::vector<std::int64_t> ends{1, 2, kGreatest, 2};
    Execution execution(2);
    execution.request_stop();
    const auto found = groups_of_ids(ends, GroupOrder::by_node, kUnlimited, execution);
    EXPECT_EQ(found.status().code(), ErrorCode::cancelled);
}

}  // namespace
}  // namespace gputext
