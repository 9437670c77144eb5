#include "cpp/documents/detail/near_duplicate_search.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "cpp/documents/detail/candidate_pairs.hpp"
#include "cpp/documents/detail/exact_search.hpp"
#include "cpp/documents/near_duplicates_parts.hpp"
#include "tests/support/packed.hpp"
#include "tests/support/random_strings.hpp"

namespace gputext {
namespace {

using testing::corpus;
using testing::kSanitized;
using testing::Packed;
using testing::RandomStrings;

using Edge = std::pair<std::uint32_t, std::uint32_t>;
using Components = std::vector<std::uint32_t>;

constexpr std::string_view kLetters = "etaoinshrdlu ";

Components components_of(std::size_t documents, const std::vector<Edge>& edges) {
    DisjointSets sets(documents);
    for (const auto& [a, b] : edges) sets.join(a, b);
    return sets.firsts();
}

std::vector<Edge> edges_of(const std::vector<NearPair>& pairs) {
    std::vector<Edge> edges;
    for (const NearPair& pair : pairs) edges.emplace_back(pair.first, pair.second);
    return edges;
}

/// Documents without text, of which given ones are near. It counts the pairs of different sets and
/// of one that it is asked for.
class GivenPairs : public NearPairFinder {
public:
    GivenPairs(std::size_t documents, std::vector<Edge> edges)
        : extents_(documents, Extent{0, 1}), lengths_(documents, 1), edges_(std::move(edges)) {
        for (std::size_t i = 0; i < documents; ++i) extents_[i].begin = i;
    }

    DistinctDocuments documents() const {
        return {{nullptr, extents_, CharacterLengths::single_byte()}, lengths_, {}};
    }
    Components components() const { return components_of(extents_.size(), edges_); }
    std::uint64_t asked() const { return asked_; }

    Status find(const NearDuplicateParameters&, const DistinctDocuments& documents, Execution&,
                std::vector<NearPair>& pairs) override {
        constexpr std::uint32_t none = UINT32_MAX;
        std::vector<std::uint32_t> place(extents_.size(), none);
        std::uint64_t firsts = 0;
        for (std::uint32_t i = 0; i < documents.size(); ++i) {
            place[documents.documents.extents[i].begin] = i;
            firsts += !documents.sides.empty() && documents.sides[i] == 1;
        }
        asked_ += documents.sides.empty() ? documents.size() * (documents.size() - 1) / 2
                                          : firsts * (documents.size() - firsts);
        pairs.clear();
        WantedPairs wanted(documents);
        for (const auto& [a, b] : edges_) {
            const auto [first, second] = std::minmax(place[a], place[b]);
            if (second == none) continue;
            if (!documents.sides.empty() && documents.sides[first] == documents.sides[second])
                continue;
            if (wanted.wants(first, second) && wanted.take(first, second))
                pairs.push_back({first, second, 0.01});
        }
        return {};
    }

private:
    std::vector<Extent> extents_;
    std::vector<std::uint32_t> lengths_;
    std::vector<Edge> edges_;
    std::uint64_t asked_ = 0;
};

void expect_connected(GivenPairs& given) {
    Execution execution(1);
    std::vector<NearPair> pairs;
    const Status status = find_connecting_pairs({}, given.documents(), given, execution, pairs);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(components_of(given.documents().size(), edges_of(pairs)), given.components());
    EXPECT_LT(pairs.size(), given.documents().size());
    for (const NearPair& pair : pairs) ASSERT_LT(pair.first, pair.second);
}

/// Clusters of which the documents come in any order, each of them connected by random pairs as
/// often as `degree` says; pairs beside these connect some clusters.
GivenPairs random_clusters(RandomStrings& random, std::span<const std::size_t> sizes,
                           std::size_t degree, std::size_t bridges) {
    std::vector<std::uint32_t> order(std::accumulate(sizes.begin(), sizes.end(), std::size_t{0}));
    std::iota(order.begin(), order.end(), 0u);
    for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
    std::vector<Edge> edges;
    std::size_t begin = 0;
    for (const std::size_t size : sizes) {
        for (std::size_t i = 0; i < size * degree; ++i) {
            const std::size_t a = random.below(size), b = random.below(size);
            if (a != b) edges.emplace_back(order[begin + a], order[begin + b]);
        }
        begin += size;
    }
    for (; bridges > 0; --bridges) {
        const std::size_t a = random.below(order.size()), b = random.below(order.size());
        if (a != b) edges.emplace_back(order[a], order[b]);
    }
    return {order.size(), edges};
}

TEST(ConnectingSearch, ConnectsWhatAllPairsConnect) {
    RandomStrings random;
    for (int round = 0; round < 12; ++round) {
        std::vector<std::size_t> sizes;
        for (std::size_t n = 1 + random.below(6); n > 0; --n)
            sizes.push_back(1 + random.below(random.below(2) == 0 ? 4000 : 40));
        sizes.resize(sizes.size() + random.below(2) * 2000, 1);
        // So many pairs that samples show the clusters, or so few that they do not.
        GivenPairs given = random_clusters(random, sizes, round % 3 == 0 ? 2 : 60, random.below(5));
        SCOPED_TRACE("round " + std::to_string(round));
        expect_connected(given);
    }
}

TEST(ConnectingSearch, ConnectsChainsAndStars) {
    constexpr std::uint32_t count = 9000;
    std::vector<Edge> chain, star;
    for (std::uint32_t i = 1; i < count; ++i) {
        chain.emplace_back(i - 1, i);
        star.emplace_back(4711 % i, i);
    }
    for (const auto& edges : {chain, star}) {
        GivenPairs given(count, edges);
        expect_connected(given);
    }
}

TEST(ConnectingSearch, LooksAtFewPairsOfLargeClusters) {
    RandomStrings random;
    constexpr std::size_t count = 24000;
    constexpr std::uint64_t all = std::uint64_t{count} * (count - 1) / 2;
    const std::size_t one[] = {count};
    GivenPairs giant = random_clusters(random, one, 200, 0);
    expect_connected(giant);
    EXPECT_LT(giant.asked(), all / 10);
    // Of clusters apart, each document has to be compared with those of the others, once.
    const std::size_t three[] = {count / 2, count / 4, count / 4};
    GivenPairs apart = random_clusters(random, three, 200, 0);
    expect_connected(apart);
    EXPECT_LT(apart.asked(), all - (all / 4 + all / 8) + all / 5);
    // Without clusters there is a sample beside the search.
    GivenPairs lonely(count, {});
    expect_connected(lonely);
    EXPECT_LT(lonely.asked(), all + all / 100);
}

Components components(NearDuplicateParameters parameters, const Packed& packed, unsigned threads,
                      bool only) {
    Execution execution(threads);
    parameters.components_only = only;
    const auto answer = near_duplicates(parameters, packed.documents(), {}, execution);
    EXPECT_TRUE(answer.ok()) << answer.status().message();
    if (!answer.ok()) return {};
    if (only) {
        EXPECT_LT(answer->near_pair_count(), packed.documents().size());
    }
    return *answer->components();
}

/// In both modes, and with several numbers of threads.
void expect_same_components(const std::vector<std::string>& texts,
                            std::initializer_list<double> thresholds) {
    const Packed packed(texts);
    for (const auto mode : {NearDuplicateMode::exact, NearDuplicateMode::ctph})
        for (const double threshold : thresholds) {
            const NearDuplicateParameters parameters{threshold, mode};
            const Components all = components(parameters, packed, 2, false);
            for (const unsigned threads : {1, 2, 5})
                EXPECT_EQ(components(parameters, packed, threads, true), all)
                    << threshold << ' ' << threads
                    << (mode == NearDuplicateMode::exact ? " exact" : " ctph");
        }
}

TEST(ConnectingSearch, HasTheComponentsOfRelatedTexts) {
    RandomStrings random;
    expect_same_components(corpus(random, kSanitized ? 100 : 400, 150), {0, 0.01, 0.05, 0.2, 0.45});
    // Long ones, which are counted; and an alphabet of two letters, where all are much alike.
    std::vector<std::string> texts = corpus(random, 60, 3000), alike;
    expect_same_components(texts, {0.03, 0.06});
    while (alike.size() < 600) alike.push_back(random.string(30 + random.below(20), "ab"));
    expect_same_components(alike, {0.05, 0.12, 0.2});
}

/// Clusters of short texts, chains, two clusters apart, and texts without relatives.
TEST(ConnectingSearch, HasTheComponentsOfLargeClusters) {
    RandomStrings random;
    std::vector<std::string> texts;
    const auto add_cluster = [&](std::string base, std::size_t members) {
        for (std::size_t i = 0; i < members; ++i)
            texts.push_back(random.edited(base, 1 + random.below(2), kLetters));
    };
    const std::string base = random.string(60, kLetters);
    add_cluster(base, 1800);
    add_cluster(random.edited(base, 14, kLetters), 1300);  // some of them near the first ones
    add_cluster(random.string(64, kLetters), 300);
    std::string link = random.string(50, kLetters);
    for (int i = 0; i < 500; ++i) texts.push_back(link = random.edited(link, 3, kLetters));
    for (int i = 0; i < 500; ++i) texts.push_back(random.string(40 + random.below(40), kLetters));
    for (std::size_t i = texts.size(); i > 1; --i) std::swap(texts[i - 1], texts[random.below(i)]);
    expect_same_components(texts, {0.05});
}

/// Texts of the same pieces in other orders, for which counts are left in the middle of the search:
/// what they have connected until then remains.
TEST(ConnectingSearch, KeepsWhatIsFoundBeforeAMethodIsLeft) {
    RandomStrings random;
    std::vector<std::string> pieces(100), texts;
    for (std::string& piece : pieces) piece = random.string(50, kLetters);
    while (texts.size() < 150) {
        for (std::size_t i = pieces.size(); i > 1; --i)
            std::swap(pieces[i - 1], pieces[random.below(i)]);
        std::string text;
        for (const std::string& piece : pieces) text += piece;
        texts.push_back(text);
        text[random.below(text.size())] = 'X';
        texts.push_back(text);
    }
    const Packed packed(texts);
    const NearDuplicateParameters parameters{0.02, NearDuplicateMode::exact};
    const Components all = components(parameters, packed, 1, false);
    for (std::uint32_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i], i / 2 * 2);
    for (const unsigned threads : {1, 3})
        EXPECT_EQ(components(parameters, packed, threads, true), all);
}

TEST(ConnectingSearch, VerifiesFewPairsOfACluster) {
    RandomStrings random;
    std::vector<std::string> texts;
    // Of a length for each of the methods.
    for (const std::size_t length : {100, 1200}) {
        const std::string base = random.string(length, kLetters);
        texts.clear();
        while (texts.size() < 500) texts.push_back(random.edited(base, 3, kLetters));
        std::ranges::sort(texts);
        texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
        const Packed packed(texts);
        std::vector<std::uint32_t> lengths, sets;
        for (std::uint32_t i = 0; i < texts.size(); ++i) {
            lengths.push_back(static_cast<std::uint32_t>(texts[i].size()));
            sets.push_back(i);
        }
        for (const auto method : {ExactMethod::counts, ExactMethod::tiles, ExactMethod::index}) {
            // Looks at each gram that two documents have in common.
            if (method == ExactMethod::index && length > 1000) continue;
            Execution execution(1);
            ExactSearchCounts counts;
            std::vector<NearPair> pairs;
            const Status status = find_exact_pairs({}, {packed.documents(), lengths, {}, {}, sets},
                                                   execution, pairs, &counts, method);
            ASSERT_TRUE(status.ok()) << status.message();
            EXPECT_EQ(pairs.size(), texts.size() - 1);
            EXPECT_LT(counts.verified, 2 * texts.size());
        }
    }
}

TEST(ConnectingSearch, TakesMemoryForNoPairs) {
    RandomStrings random;
    const std::string base = random.string(80, kLetters);
    std::vector<std::string> texts(2500);
    for (std::string& text : texts) text = random.edited(base, 3, kLetters);
    const Packed packed(texts);
    NearDuplicateParameters parameters{0.1, NearDuplicateMode::exact};
    parameters.memory_limit = std::size_t{32} << 20;
    Execution execution(2);
    const auto all = near_duplicates(parameters, packed.documents(), {}, execution);
    EXPECT_EQ(all.status().code(), ErrorCode::memory_limit);
    parameters.components_only = true;
    for (const auto mode : {NearDuplicateMode::exact, NearDuplicateMode::ctph}) {
        parameters.mode = mode;
        const auto groups = near_duplicates(parameters, packed.documents(), {}, execution);
        ASSERT_TRUE(groups.ok()) << groups.status().message();
        EXPECT_LT(groups->near_pair_count(), texts.size());
    }
}

TEST(ConnectingSearch, PartsConnectWhatTheirPairsConnect) {
    RandomStrings random;
    std::vector<std::string> texts = corpus(random, 400, 200);
    std::ranges::sort(texts);
    texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
    const Packed packed(texts);
    std::vector<std::uint32_t> lengths, sets(texts.size());
    for (std::size_t i = 0; i < texts.size(); ++i)
        lengths.push_back(static_cast<std::uint32_t>(
            count_characters(packed.documents()[i], packed.documents().characters)));
    std::iota(sets.begin(), sets.end(), 0u);
    Execution execution(2);
    for (const auto mode : {NearDuplicateMode::exact, NearDuplicateMode::ctph}) {
        const NearDuplicateParameters parameters{0.1, mode};
        const auto find = [&](std::span<const std::uint32_t> known, const PairPart& part) {
            const auto found = near_pairs(parameters, {packed.documents(), lengths, {}, {}, known},
                                          part, execution);
            EXPECT_TRUE(found.ok()) << found.status().message();
            return edges_of(found->pairs);
        };
        const std::vector<Edge> all = find({}, {});
        std::vector<Edge> parts;
        for (std::uint32_t part = 0; part < 3; ++part)
            for (const Edge& edge : find(sets, {part, 3, PairSource::documents}))
                parts.push_back(edge);
        EXPECT_EQ(components_of(texts.size(), parts), components_of(texts.size(), all));
    }
}

TEST(ConnectingSearch, SeesLargeClusters) {
    RandomStrings random;
    const std::string base = random.string(50, kLetters);
    std::vector<std::string> texts;
    for (int i = 0; i < 5000; ++i) texts.push_back(random.string(50, kLetters));
    const auto has_clusters = [&] {
        const Packed packed(texts);
        const std::vector<std::uint32_t> lengths(texts.size(), 50);
        Execution execution(1);
        const auto found = has_large_clusters({}, {packed.documents(), lengths, {}}, execution);
        EXPECT_TRUE(found.ok());
        return *found;
    };
    EXPECT_FALSE(has_clusters());
    for (std::size_t i = 0; i < texts.size(); i += 4) {
        texts[i] = base;
        texts[i][i % 50] = 'X';
    }
    EXPECT_TRUE(has_clusters());
}

TEST(WantedPairs, PutsAForestFirst) {
    const std::vector<std::uint32_t> sets{0, 0, 2, 3, 4};
    DistinctDocuments documents;
    documents.sets = sets;
    WantedPairs wanted(documents);
    // Places are documents in another order.
    const std::vector<std::uint32_t> numbers{4, 3, 2, 1, 0};
    std::vector<IndexPair> pairs{{3, 4}, {0, 1}, {1, 2}, {0, 2}, {2, 4}, {0, 3}};
    EXPECT_EQ(wanted.put_forest_first(numbers, pairs), 3u);
    EXPECT_EQ(pairs, (std::vector<IndexPair>{{0, 1}, {1, 2}, {2, 4}, {0, 2}, {0, 3}}));
    EXPECT_TRUE(wanted.take(4, 3));
    EXPECT_FALSE(wanted.take(3, 4));
    EXPECT_TRUE(wanted.take(2, 3));
    EXPECT_FALSE(wanted.none_left());
    EXPECT_EQ(wanted.put_forest_first(numbers, pairs), 1u);
    EXPECT_EQ(pairs, (std::vector<IndexPair>{{2, 4}, {0, 3}}));
    EXPECT_TRUE(wanted.take(0, 2));
    EXPECT_TRUE(wanted.none_left());
}

}  // namespace
}  // namespace gputext
