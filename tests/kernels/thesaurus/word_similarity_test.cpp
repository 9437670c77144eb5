#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <thread>

#include "cpp/thesaurus/cooccurrences.hpp"
#include "cpp/thesaurus/feature_weights.hpp"
#include "cpp/thesaurus/word_similarity.hpp"
#include "kernels/base/launch.hpp"
#include "kernels/thesaurus/detail/byte_product.hpp"
#include "kernels/thesaurus/detail/cooccurrences.hpp"
#include "kernels/thesaurus/detail/feature_weights.hpp"
#include "kernels/thesaurus/detail/measure.hpp"
#include "kernels/thesaurus/detail/pair_keys.hpp"
#include "kernels/thesaurus/word_similarity.hpp"
#include "tests/support/device_features.hpp"
#include "tests/support/device_fixture.hpp"
#include "tests/support/random_strings.hpp"

namespace gputext {
namespace {

/// Words and where they stand.
struct Texts {
    std::vector<std::uint32_t> words, positions;

    TokenStream stream() const { return {words, positions}; }
};

class RandomTexts {
public:
    RandomTexts()
        : trace_(__FILE__, __LINE__, "GPUTEXT_TEST_SEED=" + std::to_string(testing::seed())) {}

    std::size_t below(std::size_t bound) {
        return std::uniform_int_distribution<std::size_t>(0, bound - 1)(generator_);
    }

    /// The first words are the most frequent. Some words are missing, some have variants, and texts
    /// end.
    Texts texts(std::uint32_t vocabulary, std::size_t size, double power = 3) {
        Texts texts;
        std::uint32_t position = 5;
        std::uniform_real_distribution<> share;
        for (std::size_t i = 0; i < size; ++i) {
            const std::size_t chance = below(100);
            if (chance >= 5) ++position;
            if (chance >= 80) position += static_cast<std::uint32_t>(below(4));
            if (chance == 99) position += 200;
            texts.words.push_back(static_cast<std::uint32_t>(
                std::min(vocabulary - 1.0,
                         std::pow(share(generator_), power) * static_cast<double>(vocabulary))));
            texts.positions.push_back(position);
        }
        return texts;
    }

    /// Features as no text would have them.
    WordFeatures features(std::uint32_t words, std::uint32_t window, double share,
                          std::uint32_t most_weight) {
        WordFeatures rows;
        rows.shape = {words, window, true};
        rows.begins.push_back(0);
        const std::uint64_t columns = rows.shape.columns();
        std::uniform_real_distribution<> chance;
        for (std::uint32_t word = 0; word < words; ++word) {
            for (std::uint64_t column = 0; column < columns; ++column) {
                // Some columns are of nearly all words, many of few.
                const double wanted = column % 7 == 0 ? 0.9 : share;
                if (chance(generator_) >= wanted) continue;
                rows.columns.push_back(static_cast<std::uint32_t>(column));
                rows.weights.push_back(static_cast<std::uint16_t>(1 + below(most_weight)));
            }
            rows.begins.push_back(rows.columns.size());
        }
        return rows;
    }

private:
    std::mt19937_64 generator_{testing::seed()};
    ::testing::ScopedTrace trace_;
};

Cooccurrences counts_of(const CooccurrenceShape& shape, const Texts& texts) {
    Execution execution(16);
    auto counts = count_cooccurrences(shape, texts.stream(), std::size_t{1} << 30, execution);
    EXPECT_TRUE(counts.ok()) << counts.status().message();
    return std::move(*counts);
}

WordFeatures features_of(const WeightParameters& weights, const Cooccurrences& counts) {
    Execution execution(16);
    auto features = weigh_features(weights, counts, execution);
    EXPECT_TRUE(features.ok()) << features.status().message();
    return std::move(*features);
}

/// Number of words whose neighbors, or the bits of their similarities, differ in two answers.
std::size_t differing(const Thesaurus& a, const Thesaurus& b) {
    if (a.begins.size() != b.begins.size()) return SIZE_MAX;
    std::size_t count = 0;
    for (std::size_t word = 0; word + 1 < a.begins.size(); ++word) {
        const auto size = a.begins[word + 1] - a.begins[word];
        bool same = size == b.begins[word + 1] - b.begins[word];
        for (std::uint64_t i = 0; same && i < size; ++i) {
            const auto x = a.begins[word] + i, y = b.begins[word] + i;
            same = a.neighbors[x] == b.neighbors[y] &&
                   std::bit_cast<std::uint64_t>(a.similarities[x]) ==
                       std::bit_cast<std::uint64_t>(b.similarities[y]);
        }
        count += !same;
    }
    return count;
}

constexpr WordMeasure kMeasures[] = {WordMeasure::lin, WordMeasure::cosine, WordMeasure::jaccard};
constexpr WordWeight kWeights[] = {WordWeight::lin, WordWeight::ppmi, WordWeight::count};

// ---- What the host can test ----

TEST(WordKeys, AreOrderedAndGiveTheWordsBack) {
    RandomTexts random;
    for (const std::uint32_t words : {1u, 2u, 3u, 255u, 256u, 257u, 65535u, 65536u, 65537u, 100000u,
                                      131072u, 131073u, 1000000u, 4000000000u}) {
        const auto keys = gpu::WordKeys::of(words);
        EXPECT_EQ(keys.wide, words > 131072) << words;
        EXPECT_GE(std::uint64_t{keys.ranges} * keys.of_range, words);
        EXPECT_LE(keys.bits, keys.wide ? 64 : 32);
        for (int round = 0; round < 1000; ++round) {
            std::uint64_t last = 0;
            std::pair<std::uint32_t, std::uint32_t> before;
            for (int i = 0; i < 2; ++i) {
                const auto first = static_cast<std::uint32_t>(random.below(words));
                const auto second = static_cast<std::uint32_t>(random.below(words));
                const std::uint32_t range = first / keys.of_range;
                ASSERT_LT(range, keys.ranges);
                ASSERT_TRUE(keys.in_range(range, first));
                ASSERT_FALSE(words < 1u << 31 && keys.in_range(range + 1, first));
                const std::uint64_t key = keys.key(range, first, second);
                ASSERT_TRUE(keys.bits == 64 || key >> keys.bits == 0);
                ASSERT_EQ(keys.first(range, key), first);
                ASSERT_EQ(keys.second(key), second);
                if (i == 1 && before.first / keys.of_range == range) {
                    ASSERT_EQ(last < key, before < std::pair(first, second));
                }
                last = key;
                before = {first, second};
            }
        }
    }
}

TEST(WordPairs, GiveTheCpusCounts) {
    RandomTexts random;
    for (const bool positions : {true, false})
        for (const std::uint32_t window : {1u, 3u, 10u}) {
            const CooccurrenceShape shape{40, window, positions};
            const Texts texts = random.texts(shape.words, 3000);
            std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> found;
            for (std::uint32_t offset = 1; offset <= (positions ? window : 1); ++offset) {
                const gpu::PairsWanted wanted{offset, positions ? offset : window, !positions};
                for (std::size_t at = 0; at < texts.words.size(); ++at)
                    gpu::pairs_of(
                        texts.words.data(), texts.positions.data(), at, texts.words.size(), wanted,
                        [&](std::uint32_t a, std::uint32_t b) {
                            const auto forward = shape.relation_of(static_cast<int>(offset));
                            const auto backward = shape.relation_of(-static_cast<int>(offset));
                            ++found[{a, forward * shape.words + b}];
                            ++found[{b, backward * shape.words + a}];
                        });
            }
            const Cooccurrences wanted = counts_of(shape, texts);
            ASSERT_EQ(found.size(), wanted.stored());
            for (std::uint32_t word = 0; word < shape.words; ++word)
                for (auto i = wanted.begins[word]; i < wanted.begins[word + 1]; ++i)
                    ASSERT_EQ((found[{word, wanted.columns[i]}]), wanted.counts[i]);
        }
}

TEST(WordProduct, BlocksHaveAPlaceForEachByte) {
    std::set<std::size_t> places;
    for (std::uint32_t row = 0; row < 256; ++row)
        for (std::uint32_t column = 0; column < 384; ++column)
            places.insert(gpu::place_in_blocks(row, column, 3));
    EXPECT_EQ(places.size(), 256u * 384u);
    EXPECT_EQ(*places.rbegin(), 256u * 384u - 1);
}

// ---- On a device ----

class WordsOnDevice : public testing::RingTest {
protected:
    void SetUp() override {
        RingTest::SetUp();
        if (IsSkipped() || HasFatalFailure()) return;
        // Memory that is freed stays with the process, as it does in gputextd.
        cudaMemPool_t pool;
        std::uint64_t all = UINT64_MAX;
        ASSERT_EQ(cudaDeviceGetDefaultMemPool(&pool, 0), cudaSuccess);
        ASSERT_EQ(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &all),
                  cudaSuccess);
    }

    void expect_counts(const CooccurrenceShape& shape, const Texts& texts) {
        Execution execution(4);
        const auto found = gpu::count_cooccurrences(shape, texts.stream(), work, ring(), execution);
        ASSERT_TRUE(found.ok()) << found.status().message();
        const Cooccurrences wanted = counts_of(shape, texts);
        ASSERT_EQ(found->shape, wanted.shape);
        ASSERT_TRUE(found->begins == wanted.begins);
        ASSERT_TRUE(found->columns == wanted.columns);
        ASSERT_TRUE(found->counts == wanted.counts);
    }

    Status upload(const WordFeatures& from, gpu::FeatureRowsMemory& to) {
        GPUTEXT_TRY(to.begins.upload(from.begins, stream()));
        GPUTEXT_TRY(to.columns.upload(from.columns, stream()));
        GPUTEXT_TRY(to.weights.upload(from.weights, stream()));
        to.view = {from.shape, from.columns.size(), to.begins.data(), to.columns.data(),
                   to.weights.data()};
        return cuda_status(cudaStreamSynchronize(stream()), "copying features");
    }

    Result<Thesaurus> compare(const SimilarityParameters& parameters, const WordFeatures& features,
                              const gpu::WordChoices& choices = {}) {
        gpu::FeatureRowsMemory on_device;
        if (Status status = upload(features, on_device); !status.ok()) return status;
        Execution execution(4);
        Thesaurus answer;
        times = {};
        Status status = gpu::word_similarities(parameters, on_device.view, work, execution, &answer,
                                               &times, choices);
        if (!status.ok()) return status;
        return answer;
    }

    /// However it is chosen to be computed.
    void expect_same(const SimilarityParameters& parameters, const WordFeatures& features,
                     const std::vector<gpu::WordChoices>& all_choices = {{}}) {
        Execution execution(16);
        const auto wanted = word_similarities(parameters, features, execution);
        ASSERT_TRUE(wanted.ok()) << wanted.status().message();
        for (const gpu::WordChoices& choices : all_choices) {
            SCOPED_TRACE("measure " + std::to_string(static_cast<int>(parameters.measure)) +
                         ", top_k " + std::to_string(parameters.top_k) + ", words " +
                         std::to_string(parameters.first) + " to " +
                         std::to_string(parameters.end) + ", tile " + std::to_string(choices.tile) +
                         ", share " + std::to_string(choices.dense_share));
            const auto found = compare(parameters, features, choices);
            ASSERT_TRUE(found.ok()) << found.status().message();
            ASSERT_EQ(differing(*found, *wanted), 0u) << "dense: " << times.dense;
        }
    }

    gpu::WordTimes times;

private:
};

TEST_F(WordsOnDevice, CountAsTheCpuDoes) {
    RandomTexts random;
    for (const std::uint32_t words : {1u, 2u, 50u, 3000u, 70000u, 140000u})
        for (const std::uint32_t window : {1u, 3u, 8u})
            for (const bool positions : {true, false})
                for (const std::size_t size : {0, 1, 2, 100, 5000, 60000}) {
                    if (small() && (size > 5000 || window == 8)) continue;
                    SCOPED_TRACE(std::to_string(words) + " words, window " +
                                 std::to_string(window) + ", positions " +
                                 std::to_string(positions) + ", size " + std::to_string(size));
                    ASSERT_NO_FATAL_FAILURE(
                        expect_counts({words, window, positions}, random.texts(words, size)));
                }
}

TEST_F(WordsOnDevice, CountInChunks) {
    RandomTexts random;
    const Texts texts = random.texts(300, static_cast<std::size_t>(testing::rounds(2000000)));
    for (const bool positions : {true, false}) {
        const CooccurrenceShape shape{300, 3, positions};
        const auto bytes = gpu::cooccurrence_bytes(shape, texts.words.size());
        for (const std::uint64_t memory : {bytes.least + (std::uint64_t{14} << 20),
                                           bytes.least + (std::uint64_t{30} << 20), bytes.good}) {
            work.bytes = memory;
            ASSERT_NO_FATAL_FAILURE(expect_counts(shape, texts));
        }
        work.bytes = bytes.least - 1;
        Execution execution(1);
        const auto refused =
            gpu::count_cooccurrences(shape, texts.stream(), work, ring(), execution);
        ASSERT_FALSE(refused.ok());
        EXPECT_EQ(refused.status().code(), ErrorCode::out_of_memory);
    }
}

TEST_F(WordsOnDevice, ManyVariantsOfAWord) {
    Texts texts;
    for (std::uint32_t i = 0; i < 20000; ++i) {
        texts.words.push_back(i % 700);
        texts.positions.push_back(i / 60);
    }
    for (const bool positions : {true, false})
        ASSERT_NO_FATAL_FAILURE(expect_counts({700, 2, positions}, texts));
}

TEST_F(WordsOnDevice, RefuseWrongTexts) {
    const auto refused = [&](Texts texts) {
        Execution execution(1);
        const auto found =
            gpu::count_cooccurrences({10, 3, true}, texts.stream(), work, ring(), execution);
        return !found.ok() && found.status().code() == ErrorCode::invalid_argument;
    };
    EXPECT_TRUE(refused({{1, 10, 2}, {1, 2, 3}}));
    EXPECT_TRUE(refused({{1, 9, 2}, {1, 3, 2}}));
    EXPECT_TRUE(refused({{1, 9, 2}, {1, 3}}));
    EXPECT_FALSE(refused({{1, 9, 2}, {1, 3, 3}}));
}

TEST_F(WordsOnDevice, WeighAsTheCpuDoes) {
    RandomTexts random;
    for (const bool positions : {true, false}) {
        const Texts texts = random.texts(900, static_cast<std::size_t>(testing::rounds(100000)));
        const Cooccurrences counts = counts_of({900, 3, positions}, texts);
        for (const WordWeight weight : kWeights)
            for (const double discount : {0.0, 0.5, 0.95, 3.0})
                for (const std::uint64_t features : {0, 1, 100, 1000, 100000})
                    for (const bool symmetric : {true, false}) {
                        const WeightParameters parameters{weight, discount, features};
                        Execution execution(4);
                        gpu::CountRowsMemory rows;
                        ASSERT_TRUE(gpu::upload_counts(counts, work, ring(), execution, rows).ok());
                        rows.view.symmetric = symmetric;
                        gpu::FeatureRowsMemory found;
                        const Status status =
                            gpu::weigh_features(parameters, rows.view, work, execution, found);
                        ASSERT_TRUE(status.ok()) << status.message();
                        const auto here = testing::download_features(found.view, stream());
                        ASSERT_TRUE(here.ok());
                        const WordFeatures wanted = features_of(parameters, counts);
                        ASSERT_TRUE(here->begins == wanted.begins);
                        ASSERT_TRUE(here->columns == wanted.columns);
                        ASSERT_TRUE(here->weights == wanted.weights);
                    }
    }
}

/// Texts to neighbors, by lists alone and with dense features.
TEST_F(WordsOnDevice, CompareAsTheCpuDoes) {
    RandomTexts random;
    const auto size = static_cast<std::size_t>(testing::rounds(120000));
    for (const bool positions : {true, false}) {
        const std::uint32_t words = small() ? 300 : 1300;
        const Cooccurrences counts = counts_of({words, 3, positions}, random.texts(words, size));
        const std::vector<gpu::WordChoices> choices = {
            {},
            {.dense_share = 0.03, .tile = 300},
            {.dense_share = 0.2},
            {.tile = 100, .no_product = true},
            {.dense_share = 0.05, .tile = 500, .divided = 100},
            {.no_product = true, .divided = 300}};
        for (const WordWeight weight : kWeights)
            for (const WeightParameters& weights :
                 {WeightParameters{weight, 0, 0}, WeightParameters{weight, 0.95, 600}}) {
                if (small() && weights.features == 0) continue;
                const WordFeatures features = features_of(weights, counts);
                for (const WordMeasure measure : kMeasures)
                    for (const std::uint32_t top_k : {20u, 2000u})
                        ASSERT_NO_FATAL_FAILURE(
                            expect_same({.measure = measure, .top_k = top_k}, features, choices));
            }
        const WordFeatures features = features_of({}, counts);
        for (const std::uint32_t top_k : {1u, 256u, 257u, 1024u, 1025u})
            ASSERT_NO_FATAL_FAILURE(expect_same({.top_k = top_k}, features, choices));
    }
}

TEST_F(WordsOnDevice, SomeWordsOnly) {
    RandomTexts random;
    const std::uint32_t words = 1500;
    const WordFeatures features = features_of(
        {}, counts_of({words, 2, true},
                      random.texts(words, static_cast<std::size_t>(testing::rounds(60000)))));
    for (const WordMeasure measure : kMeasures)
        for (const auto& [first, end] : std::vector<std::pair<std::uint32_t, std::uint32_t>>{
                 {0, 1}, {0, 700}, {1, 2}, {333, 1100}, {1499, 1500}, {1400, 9999}, {600, 600}})
            for (const std::uint32_t top_k : {30u, 1100u})
                ASSERT_NO_FATAL_FAILURE(expect_same(
                    {.measure = measure, .top_k = top_k, .first = first, .end = end}, features,
                    {{.tile = 512, .divided = 50}, {.dense_share = 0.02, .tile = 512}}));
}

TEST_F(WordsOnDevice, LittleMemoryGivesTheSameAnswer) {
    RandomTexts random;
    const std::uint32_t words = 3000;
    const WordFeatures features = features_of(
        {}, counts_of({words, 3, true},
                      random.texts(words, static_cast<std::size_t>(testing::rounds(200000)))));
    gpu::FeatureRowsMemory on_device;
    ASSERT_TRUE(upload(features, on_device).ok());
    for (const std::uint32_t top_k : {50u, 1500u}) {
        const SimilarityParameters parameters{.top_k = top_k};
        const auto bytes = gpu::word_similarity_bytes(parameters, on_device.view);
        for (const std::uint64_t memory : {bytes.least, bytes.least + (std::uint64_t{3} << 20),
                                           bytes.least + (std::uint64_t{40} << 20), bytes.good}) {
            work.bytes = memory;
            ASSERT_NO_FATAL_FAILURE(expect_same(parameters, features));
        }
        work.bytes = bytes.least - 1;
        const auto refused = compare(parameters, features);
        ASSERT_FALSE(refused.ok());
        EXPECT_EQ(refused.status().code(), ErrorCode::out_of_memory);
    }
}

/// Sums that need all of their bits, and sums that are equal.
TEST_F(WordsOnDevice, LargeAndEqualSums) {
    RandomTexts random;
    for (const WordMeasure measure : kMeasures) {
        const WordFeatures large = random.features(24, small() ? 20 : 100, 0.5, 65535);
        ASSERT_NO_FATAL_FAILURE(
            expect_same({.measure = measure, .top_k = 10}, large, {{}, {.dense_share = 0.7}}));
        WordFeatures divided = random.features(3, 1, 1, 1);
        divided.shape = {30000, 1, true};
        divided.begins.assign(1, 0);
        divided.columns.clear();
        divided.weights.clear();
        for (std::uint32_t word = 0; word < 30000; ++word) {
            for (std::uint32_t column = 0; word < 3 && column < 45000; ++column) {
                divided.columns.push_back(column + word);
                divided.weights.push_back(65535);
            }
            divided.begins.push_back(divided.columns.size());
        }
        ASSERT_NO_FATAL_FAILURE(expect_same({.measure = measure, .top_k = 10}, divided,
                                            {{}, {.dense_share = 0.00005}}));
        const WordFeatures equal = random.features(small() ? 300 : 2000, 1, 0.003, 1);
        for (const std::uint32_t top_k : {1u, 7u, 1000u})
            ASSERT_NO_FATAL_FAILURE(
                expect_same({.measure = measure, .top_k = top_k}, equal,
                            {{.tile = 700}, {.dense_share = 0.5, .tile = 700}}));
    }
}

/// As many words as need tiles of full size.
TEST_F(WordsOnDevice, ManyWords) {
    if (small()) GTEST_SKIP() << "slow";
    RandomTexts random;
    const std::uint32_t words = 60000;
    const WordFeatures features =
        features_of({}, counts_of({words, 3, true}, random.texts(words, 400000)));
    for (const WordMeasure measure : kMeasures) {
        // Some of the words, for the CPU's sake.
        const SimilarityParameters parameters{
            .measure = measure, .top_k = 100, .first = 24000, .end = 28000};
        ASSERT_NO_FATAL_FAILURE(expect_same(parameters, features, {{.dense_share = 0.004}}));
        EXPECT_EQ(times.dense > 0, gpu::has_word_product());
    }
}

TEST_F(WordsOnDevice, OfTextsAndOfCounts) {
    RandomTexts random;
    const CooccurrenceShape shape{800, 3, true};
    const Texts texts = random.texts(800, static_cast<std::size_t>(testing::rounds(80000)));
    const Cooccurrences counts = counts_of(shape, texts);
    Execution execution(4);
    for (const WordWeight weight : kWeights)
        for (const WordMeasure measure : kMeasures) {
            const WeightParameters weights{weight, 0.95, 0};
            const SimilarityParameters parameters{.measure = measure};
            const auto wanted =
                word_similarities(parameters, features_of(weights, counts), execution);
            ASSERT_TRUE(wanted.ok());
            const auto of_texts = gpu::word_similarities(parameters, weights, shape, texts.stream(),
                                                         work, ring(), execution);
            ASSERT_TRUE(of_texts.ok()) << of_texts.status().message();
            const auto of_counts =
                gpu::word_similarities(parameters, weights, counts, work, ring(), execution);
            ASSERT_TRUE(of_counts.ok()) << of_counts.status().message();
            EXPECT_EQ(differing(*of_texts, *wanted), 0u);
            EXPECT_EQ(differing(*of_counts, *wanted), 0u);
        }
}

TEST_F(WordsOnDevice, Stop) {
    RandomTexts random;
    const Texts texts = random.texts(20000, small() ? 50000 : 1000000);
    Execution execution(4);
    execution.request_stop();
    const auto stopped =
        gpu::word_similarities({.measure = WordMeasure::cosine}, {}, {20000, 5, true},
                               texts.stream(), work, ring(), execution);
    ASSERT_FALSE(stopped.ok());
    EXPECT_EQ(stopped.status().code(), ErrorCode::cancelled);
    if (small()) return;
    for (const int milliseconds : {5, 20, 50, 100}) {
        Execution another(4);
        std::chrono::steady_clock::time_point asked;
        std::thread stopper([&] {
            std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
            asked = std::chrono::steady_clock::now();
            another.request_stop();
        });
        const auto answer =
            gpu::word_similarities({.measure = WordMeasure::cosine, .top_k = 2000}, {},
                                   {20000, 5, true}, texts.stream(), work, ring(), another);
        stopper.join();
        const std::chrono::duration<double> late = std::chrono::steady_clock::now() - asked;
        if (!answer.ok()) {
            EXPECT_EQ(answer.status().code(), ErrorCode::cancelled);
            EXPECT_LT(late.count(), 0.15);
        }
    }
}

}  // namespace
}  // namespace gputext
