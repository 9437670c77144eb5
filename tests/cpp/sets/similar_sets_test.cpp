#include "cpp/sets/similar_sets.hpp"

#include <gtest/gtest.h>

#include <pthread.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <utility>

#include "tests/support/plain_strings.hpp"
#include "tests/support/test_size.hpp"
#include "tests/support/words_of_one_hash.hpp"

namespace gputext {
namespace {

using testing::RandomNames;
using Sets = std::vector<std::set<std::uint32_t>>;

/// Some tokens are hot; some sets are parts of others.
Sets random_sets(RandomNames& random) {
    Sets sets;
    const std::size_t tokens = 1 + random.below(random.below(2) == 0 ? 20 : 300);
    for (std::size_t count = random.below(60); count > 0; --count) {
        std::set<std::uint32_t> set;
        if (!sets.empty() && random.below(2) == 0) set = sets[random.below(sets.size())];
        for (std::size_t n = random.below(random.below(4) == 0 ? 40 : 8); n > 0; --n)
            set.insert(static_cast<std::uint32_t>(random.below(1 + random.below(tokens))));
        for (std::size_t n = random.below(6); n > 0 && !set.empty(); --n)
            set.erase(std::next(set.begin(), static_cast<std::ptrdiff_t>(random.below(set.size()))));
        sets.push_back(set);
    }
    return sets;
}

/// Tokens that no other set has may be left out.
SetCollection collection_of(const Sets& sets, bool leave_out) {
    std::map<std::uint32_t, int> counts;
    for (const auto& set : sets)
        for (const std::uint32_t token : set) ++counts[token];
    SetCollection collection;
    for (const auto& set : sets) {
        for (const std::uint32_t token : set)
            if (!leave_out || counts[token] > 1) collection.tokens.push_back(token);
        collection.begins.push_back(collection.tokens.size());
        collection.sizes.push_back(static_cast<std::uint32_t>(set.size()));
    }
    return collection;
}

/// The number of common tokens, and the similarity.
using Pairs =
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::pair<std::uint32_t, double>>;

/// What a token counts, in whole numbers.
using Weights = std::map<std::uint32_t, std::uint64_t>;

Weights weights_of(const Sets& sets, bool by_rarity) {
    std::map<std::uint32_t, int> counts;
    for (const auto& set : sets)
        for (const std::uint32_t token : set) ++counts[token];
    Weights weights;
    for (const auto& [token, count] : counts)
        weights[token] = !by_rarity ? 1
                                    : static_cast<std::uint64_t>(std::round(
                                          std::log(static_cast<double>(sets.size()) / count) * 65536));
    return weights;
}

std::uint64_t sum_of(const std::set<std::uint32_t>& set, const Weights& weights) {
    std::uint64_t sum = 0;
    for (const std::uint32_t token : set) sum += weights.at(token);
    return sum;
}

std::set<std::uint32_t> common_of(const std::set<std::uint32_t>& a,
                                  const std::set<std::uint32_t>& b) {
    std::set<std::uint32_t> common;
    std::ranges::set_intersection(a, b, std::inserter(common, common.end()));
    return common;
}

/// Only so many of each first set.
Pairs nearest_of(const Pairs& pairs, std::size_t nearest) {
    std::map<std::uint32_t, std::set<std::pair<double, std::uint32_t>>> of_first;
    for (const auto& [sets, pair] : pairs) of_first[sets.first].insert({-pair.second, sets.second});
    Pairs kept;
    for (const auto& [first, others] : of_first) {
        std::size_t taken = 0;
        for (const auto& [similarity, second] : others)
            if (taken++ < nearest) kept[{first, second}] = pairs.at({first, second});
    }
    return kept;
}

TEST(SimilarSets, AreThoseOfTheDefinitionOnRandomSets) {
    RandomNames random;
    for (std::size_t i = 0; i < testing::rounds<std::size_t>(testing::kSanitized ? 300 : 2000);
         ++i) {
        const Sets sets = random_sets(random);
        SetCollection collection = collection_of(sets, random.below(2) == 0);
        Execution execution(1 + static_cast<unsigned>(random.below(3)));
        const bool by_rarity = random.below(2) == 0;
        const Weights weights = weights_of(sets, by_rarity);
        if (by_rarity) {
            ASSERT_TRUE(weigh_by_rarity(collection, execution.stop()).ok());
        }
        SimilarSetsParameters parameters;
        parameters.measure = static_cast<SetMeasure>(random.below(4));
        const bool overlap = parameters.measure == SetMeasure::overlap;
        parameters.threshold = overlap ? 1 + static_cast<double>(random.below(8))
                                       : static_cast<double>(1 + random.below(20)) / 20;
        parameters.two_tables = random.below(2) == 0;
        if (parameters.two_tables) parameters.split = random.below(sets.size() + 1);
        if (parameters.two_tables) parameters.nearest = random.below(4);
        Pairs expected;
        for (std::uint32_t a = 0; a < sets.size(); ++a)
            for (std::uint32_t b = a + 1; b < sets.size(); ++b) {
                if (parameters.two_tables && (a >= parameters.split || b < parameters.split))
                    continue;
                const std::set<std::uint32_t> common = common_of(sets[a], sets[b]);
                double similarity =
                    set_similarity(parameters.measure, sum_of(sets[a], weights),
                                   sum_of(sets[b], weights), sum_of(common, weights));
                if (overlap && by_rarity) similarity /= 65536;
                if (similarity >= parameters.threshold)
                    expected[{a, b}] = {static_cast<std::uint32_t>(common.size()), similarity};
            }
        if (parameters.nearest > 0) expected = nearest_of(expected, parameters.nearest);
        const Result<SimilarPairs> found = similar_sets(collection, parameters, execution);
        ASSERT_TRUE(found.ok()) << found.status().message();
        Pairs pairs;
        for (const SimilarPair& pair : found->pairs)
            EXPECT_TRUE(pairs
                            .insert({{pair.first, pair.second}, {pair.common, pair.similarity}})
                            .second);
        ASSERT_EQ(pairs, expected) << "case " << i;
        EXPECT_EQ(found->count, expected.size());
        EXPECT_TRUE(std::ranges::is_sorted(found->pairs, {}, [&](const SimilarPair& pair) {
            return std::tuple(pair.first, parameters.nearest > 0 ? -pair.similarity : 0, pair.second);
        }));
        if (expected.empty()) continue;
        parameters.most_pairs = expected.size() - 1;
        const Result<SimilarPairs> counted = similar_sets(collection, parameters, execution);
        ASSERT_TRUE(counted.ok());
        EXPECT_TRUE(counted->pairs.empty());
        EXPECT_EQ(counted->count, expected.size());
        parameters.most_pairs = expected.size();
        EXPECT_EQ(similar_sets(collection, parameters, execution)->pairs.size(), expected.size());
    }
}

TEST(SimilarSets, AreTheSameOnAnyNumberOfThreads) {
    RandomNames random;
    Sets sets(5000);
    for (auto& set : sets)
        for (std::size_t n = 3 + random.below(6); n > 0; --n)
            set.insert(static_cast<std::uint32_t>(random.below(1 + random.below(2000))));
    const SetCollection collection = collection_of(sets, true);
    const auto pairs_on = [&](unsigned threads, bool two_tables) {
        Execution execution(threads);
        const SimilarSetsParameters parameters{
            .threshold = 0.4, .two_tables = two_tables, .split = 2000};
        const Result<SimilarPairs> found = similar_sets(collection, parameters, execution);
        EXPECT_TRUE(found.ok());
        Pairs pairs;
        for (const SimilarPair& pair : found->pairs)
            pairs[{pair.first, pair.second}] = {pair.common, pair.similarity};
        return pairs;
    };
    for (const bool two_tables : {false, true}) {
        const Pairs pairs = pairs_on(1, two_tables);
        EXPECT_GT(pairs.size(), 10);
        EXPECT_EQ(pairs_on(4, two_tables), pairs);
    }
}

TEST(SimilarSets, HaveSimilaritiesOfTheirMeasures) {
    EXPECT_EQ(set_similarity(SetMeasure::jaccard, 4, 5, 3), 0.5);
    EXPECT_EQ(set_similarity(SetMeasure::containment, 4, 50, 3), 0.75);
    EXPECT_EQ(set_similarity(SetMeasure::cosine, 4, 9, 3), 0.5);
    EXPECT_EQ(set_similarity(SetMeasure::overlap, 4, 9, 3), 3);
    for (int measure = 0; measure < 4; ++measure)
        EXPECT_EQ(set_similarity(static_cast<SetMeasure>(measure), 0, 5, 0), 0);
}

TEST(SimilarSets, EndWhenStopped) {
    Execution execution(2);
    execution.request_stop();
    EXPECT_EQ(similar_sets(collection_of({{1, 2}, {1, 2}}, false), {}, execution).status().code(),
              ErrorCode::cancelled);
}

double processor_seconds(clockid_t clock) {
    timespec time{};
    clock_gettime(clock, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

/// Processor time of a search, which does not depend on what else runs: of all of it, or from a stop
/// in its last step on.
double seconds_of_search(const SetCollection& sets, const SimilarSetsParameters& parameters,
                         bool stops) {
    Execution execution(1);
    std::atomic<bool> ended{false}, has_begin{false};
    double begin = 0, end = 0;
    std::thread search([&] {
        (void)similar_sets(sets, parameters, execution);
        end = processor_seconds(CLOCK_THREAD_CPUTIME_ID);
        ended = true;
        has_begin.wait(false);
    });
    if (stops) {
        while (!ended && (execution.phase() != std::string("comparing sets") ||
                          execution.done() + 1 < execution.total()))
            std::this_thread::yield();
        execution.request_stop();
        clockid_t clock;
        pthread_getcpuclockid(search.native_handle(), &clock);
        begin = processor_seconds(clock);
    }
    has_begin = true;
    has_begin.notify_all();
    search.join();
    return end - begin;
}

/// The set of the last step has a token in common with each of the others.
TEST(SimilarSets, EndSoonWhenStoppedWhileASetIsCompared) {
    const std::uint32_t others = testing::tests_are_small() ? 4000 : 20000, tokens = 5000;
    SetCollection sets;
    for (std::uint32_t token = 0; token < tokens; ++token) sets.tokens.push_back(token);
    sets.begins.push_back(tokens);
    sets.sizes.push_back(tokens);
    for (std::uint32_t set = 0; set < others; ++set) {
        sets.tokens.push_back(0);
        sets.begins.push_back(sets.tokens.size());
        sets.sizes.push_back(1);
    }
    const SimilarSetsParameters parameters{
        .measure = SetMeasure::overlap, .threshold = 1, .two_tables = true, .split = 1};
    const double whole = seconds_of_search(sets, parameters, false);
    for (int i = 0; i < 3; ++i)
        EXPECT_LT(seconds_of_search(sets, parameters, true), whole / 4);
}

TEST(SimilarSets, TakeNoMoreMemoryThanAllowed) {
    const SetCollection sets = collection_of(Sets(50, {1, 2, 3}), false);
    SimilarSetsParameters parameters;
    Execution execution(1);
    const auto error = [&](std::size_t limit) {
        parameters.memory_limit = limit;
        const Status status = similar_sets(sets, parameters, execution).status();
        EXPECT_EQ(status.code(), ErrorCode::memory_limit);
        return status.message();
    };
    EXPECT_TRUE(error(100).starts_with("the index of sets would take"));
    EXPECT_TRUE(error(10000).starts_with("the pairs of sets would take"));
}

// ---- Shingles ----

TEST(ShingleSets, HaveEachShingleOnce) {
    RandomNames random;
    for (std::size_t i = 0; i < testing::rounds<std::size_t>(300); ++i) {
        std::string bytes;
        std::vector<Extent> extents;
        std::vector<std::string> documents;
        for (std::size_t d = random.below(12); d > 0; --d) {
            std::string document;
            for (std::size_t n = random.below(40); n > 0; --n)
                document += "abc "[random.below(1 + random.below(4))];
            extents.push_back({bytes.size(), document.size()});
            bytes += document;
            documents.push_back(document);
        }
        Execution execution(2);
        PassageTexts texts;
        PassageForm form;
        form.fold_case = random.below(2) == 0;  // wide symbols
        ASSERT_TRUE(texts
                        .set({reinterpret_cast<const std::uint8_t*>(bytes.data()), extents,
                              CharacterLengths::utf8()},
                             form, random.below(2) == 0, execution)
                        .ok());
        const std::size_t length = 1 + random.below(6);
        const SharedWindowsParameters parameters = {
            .length = length,
            .two_tables = random.below(2) == 0,
            .split = documents.empty() ? 0 : random.below(static_cast<unsigned>(documents.size())),
            .memory_limit = 1 << 20};
        SetCollection sets;
        ASSERT_TRUE(shingle_sets(texts, parameters, execution, sets).ok());
        ASSERT_EQ(sets.size(), documents.size());
        std::vector<std::set<std::string>> shingles(documents.size());
        for (std::size_t d = 0; d < documents.size(); ++d)
            for (std::size_t at = 0; at + length <= documents[d].size(); ++at)
                shingles[d].insert(documents[d].substr(at, length));
        for (std::size_t a = 0; a < documents.size(); ++a) {
            EXPECT_EQ(sets.sizes[a], sets[a].empty() ? 0 : shingles[a].size());
            for (std::size_t b = 0; b < documents.size(); ++b) {
                const bool one_table = (a < parameters.split) == (b < parameters.split);
                if (a == b || (parameters.two_tables && one_table)) continue;
                std::size_t expected = 0, common = 0;
                for (const std::string& shingle : shingles[a])
                    expected += shingles[b].count(shingle);
                for (const std::uint32_t token : sets[a])
                    common += std::ranges::count(sets[b], token) > 0;
                EXPECT_EQ(common, expected);
            }
        }
    }
}

/// Of the narrow symbols of these documents.
SetCollection shingles_of(const std::vector<std::string>& documents, std::size_t length) {
    std::string bytes;
    std::vector<Extent> extents;
    for (const std::string& document : documents) {
        extents.push_back({bytes.size(), document.size()});
        bytes += document;
    }
    Execution execution(2);
    PassageTexts texts;
    SetCollection sets;
    EXPECT_TRUE(texts
                    .set({reinterpret_cast<const std::uint8_t*>(bytes.data()), extents,
                          CharacterLengths::utf8()},
                         {}, false, execution)
                    .ok());
    EXPECT_TRUE(shingle_sets(texts, {.length = length, .memory_limit = 1 << 20}, execution, sets).ok());
    return sets;
}

TEST(ShingleSets, TellLongShinglesOfRepetitionsApart) {
    const std::string dashes(5000, '-'), word = "abcabcab";
    const SetCollection sets = shingles_of(
        {dashes, dashes + 'x' + dashes, word + word + word, dashes.substr(0, 999)}, 1000);
    EXPECT_EQ(sets.sizes, (std::vector<std::uint32_t>{1, 1001, 0, 0}));
    const std::string words = word + word + word;
    EXPECT_EQ(shingles_of({words, words}, 12).sizes, (std::vector<std::uint32_t>{8, 8}));
}

TEST(ShingleSets, TakeNoMoreMemoryThanAllowed) {
    const std::string text(100000, '-');
    const auto error = [&](const std::vector<std::string>& documents, std::size_t limit) {
        std::string bytes;
        std::vector<Extent> extents;
        for (const std::string& document : documents) {
            extents.push_back({bytes.size(), document.size()});
            bytes += document;
        }
        Execution execution(1);
        PassageTexts texts;
        SetCollection sets;
        EXPECT_TRUE(texts
                        .set({reinterpret_cast<const std::uint8_t*>(bytes.data()), extents,
                              CharacterLengths::utf8()},
                             {}, false, execution)
                        .ok());
        return shingle_sets(texts, {.length = 90000, .memory_limit = limit}, execution, sets).code();
    };
    // 20,002 shingles that both have, and 200,000 symbols to count
    EXPECT_EQ(error({text, text}, 1 << 18), ErrorCode::memory_limit);
    EXPECT_EQ(error({text, text}, 1 << 20), ErrorCode::memory_limit);
    EXPECT_EQ(error({text, text}, 1 << 23), ErrorCode::ok);
    EXPECT_EQ(error({text, std::string(100000, '=')}, 1 << 10), ErrorCode::ok);
}

TEST(ShingleSets, TellShinglesOfOneHashApart) {
    constexpr std::size_t kLength = 2048;
    const auto [word, other] = testing::words_of_one_hash(kLength);
    const SetCollection sets =
        shingles_of({word + "x" + other + "x" + word, other, word + "y" + other}, kLength);
    EXPECT_EQ(sets.sizes, (std::vector<std::uint32_t>{2 * kLength + 2, 1, kLength + 2}));
    EXPECT_EQ(sets[0].size(), 2u);
    EXPECT_EQ(sets[1].size(), 1u);
    EXPECT_EQ(sets[2].size(), 2u);
    // The shingle before the last one has been there before, and the last symbols are equal.
    const std::string text = "q" + other + "y" + word + "xq" + other + "x";
    std::set<std::string> different;
    for (std::size_t at = 0; at + kLength + 1 <= text.size(); ++at)
        different.insert(text.substr(at, kLength + 1));
    EXPECT_EQ(shingles_of({text, text}, kLength + 1).sizes[0], different.size());
}

}  // namespace
}  // namespace gputext
