// Which jobs go to a device. The constants may change; what must hold whatever they are is here.

#include "cpp/link/device_choice.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace gputext {
namespace {

double seconds_of(NearDuplicateMode mode, std::uint64_t documents, std::uint64_t bytes_each,
                  bool signatures_given, unsigned threads) {
    const std::vector<Extent> extents(documents, {0, bytes_each});
    return near_duplicates_cpu_seconds(
        mode, estimate_near_duplicates(extents, 0.05, signatures_given), threads);
}

bool worth(NearDuplicateMode mode, std::uint64_t documents, std::uint64_t bytes_each,
           unsigned threads = 1) {
    return worth_a_device({documents, documents * bytes_each,
                           seconds_of(mode, documents, bytes_each, false, threads)});
}

TEST(DeviceChoice, SmallJobsStayOnTheCpu) {
    for (const auto mode : {NearDuplicateMode::ctph, NearDuplicateMode::exact})
        for (const std::uint64_t documents : {0, 1, 2, 100})
            EXPECT_FALSE(worth(mode, documents, 1000)) << documents;
}

TEST(DeviceChoice, LargeJobsGoToADevice) {
    for (const auto mode : {NearDuplicateMode::ctph, NearDuplicateMode::exact}) {
        EXPECT_TRUE(worth(mode, 20'000, 10'000));
        EXPECT_TRUE(worth(mode, 2'000'000, 100, 64)) << "many short documents";
        EXPECT_TRUE(worth(mode, 2, 500'000'000)) << "few long documents";
    }
}

/// A search between documents of a size, for pairs or for groups.
bool worth_between(std::uint32_t first, std::uint32_t second, std::uint64_t bytes_each,
                   double threshold, unsigned threads,
                   double NearDuplicateSeconds::* device = &NearDuplicateSeconds::device) {
    const std::vector<Extent> extents(first + second, {0, bytes_each});
    const NearDuplicateSeconds seconds = estimate_near_duplicates(extents, threshold, false, first);
    return worth_a_device({extents.size(), extents.size() * bytes_each,
                           near_duplicates_cpu_seconds(NearDuplicateMode::exact, seconds, threads),
                           seconds.*device});
}

// As measured on an H100 with 16 processors.
TEST(DeviceChoice, ShortDocumentsGoWhereTheyAreComparedSooner) {
    EXPECT_TRUE(worth_between(10'000, 1'000'000, 24, 0.1, 16));
    EXPECT_TRUE(worth_between(10'000, 10'000, 24, 0.2, 16));
    EXPECT_TRUE(worth_between(100'000, 100'000, 24, 0.2, 16));
    for (const unsigned threads : {1u, 2u, 16u}) {
        EXPECT_TRUE(worth_between(1'000'000, 1'000'000, 24, 0.1, threads));
        for (const double threshold : {0.05, 0.1, 0.2}) {
            EXPECT_TRUE(worth_between(10'000, 100'000, 1'000, threshold, threads)) << threshold;
            EXPECT_TRUE(worth_between(10'000, 100'000, 10'000, threshold, threads)) << threshold;
        }
        EXPECT_FALSE(worth_between(10'000, 100'000, 24, 0.1, threads,
                                   &NearDuplicateSeconds::device_groups))
            << "groups have no search of short documents";
    }
    // The long documents of a table are looked at as if they were alone.
    std::vector<Extent> mixed(20'000, {0, 10'000});
    mixed.resize(21'000, {0, 24});
    const NearDuplicateSeconds seconds = estimate_near_duplicates(mixed, 0.1, false);
    EXPECT_TRUE(worth_a_device({mixed.size(), 200'024'000,
                                near_duplicates_cpu_seconds(NearDuplicateMode::exact, seconds, 16),
                                seconds.device}));
}

TEST(DeviceChoice, OnceWorthItMoreIsWorthItToo) {
    for (const auto mode : {NearDuplicateMode::ctph, NearDuplicateMode::exact})
        for (const std::uint64_t bytes_each : {10, 1000, 100'000}) {
            bool before = false;
            for (std::uint64_t documents = 1; documents < 2'000'000; documents *= 2) {
                const bool now = worth(mode, documents, bytes_each, 2);
                EXPECT_TRUE(now || !before) << documents << " of " << bytes_each;
                before = now;
            }
        }
}

TEST(DeviceChoice, MoreThreadsAndGivenSignaturesSpeakForTheCpu) {
    const auto seconds = [](bool given, unsigned threads) {
        return seconds_of(NearDuplicateMode::ctph, 20'000, 10'000, given, threads);
    };
    EXPECT_GT(seconds(false, 1), 1.9 * seconds(false, 2));
    EXPECT_GT(seconds(false, 1), seconds(true, 1));
    // The job that docs/benchmarks.md measures.
    EXPECT_NEAR(seconds(false, 1), 1.0, 0.5);
}

Vectors matrix(std::size_t rows, std::size_t dimensions) {
    return {ElementType::float32, rows, dimensions, nullptr, {}, {}};
}

bool worth(std::size_t queries, std::size_t items, std::size_t dimensions, unsigned threads = 1) {
    const Vectors query_rows = matrix(queries, dimensions), item_rows = matrix(items, dimensions);
    return worth_a_device({queries + items, 4 * (queries + items) * dimensions,
                           knn_cpu_seconds(query_rows, item_rows, threads)});
}

/// The same where gputextd keeps the items.
bool worth_among_kept(std::size_t queries, std::size_t items, std::size_t dimensions,
                      unsigned threads) {
    return worth_a_device(
        {queries + items, 4 * (queries + items) * dimensions,
         knn_cpu_seconds(matrix(queries, dimensions), matrix(items, dimensions), threads), 0,
         4 * items * dimensions});
}

TEST(DeviceChoice, LargeSearchesGoToADevice) {
    EXPECT_FALSE(worth(0, 0, 0));
    EXPECT_FALSE(worth(10, 1000, 16));
    EXPECT_TRUE(worth(5'000, 20'000, 41));
    EXPECT_TRUE(worth(10'000, 1'000'000, 768, 64));
    // One query is answered sooner than its items are copied, but not than they are searched where
    // they are already.
    EXPECT_FALSE(worth(1, 1'000'000, 768, 16));
    EXPECT_TRUE(worth_among_kept(1, 1'000'000, 768, 16));
    // Nor does a job on kept items take long to begin.
    EXPECT_TRUE(worth_among_kept(1, 30'000, 768, 16));
    EXPECT_FALSE(worth_among_kept(1, 5'000, 768, 16));
    EXPECT_TRUE(worth_among_kept(1, 5'000, 768, 1));
    EXPECT_FALSE(worth(1, 5'000, 768, 1));
    // What was read for the first time goes there, too, where many queries come.
    EXPECT_TRUE(worth(100, 1'000'000, 768, 16));
    EXPECT_GT(knn_cpu_seconds(matrix(100, 16), matrix(100'000, 16), 1),
              1.9 * knn_cpu_seconds(matrix(100, 16), matrix(100'000, 16), 2));
}

TEST(DeviceChoice, CountsTheStoredElementsOfSparseVectors) {
    const std::vector<std::uint64_t> few{0, 1, 2}, many{0, 50'000, 100'000};
    const auto seconds = [](const std::vector<std::uint64_t>& begins) {
        const Vectors items{ElementType::float32, 2, 1'000'000, nullptr, begins, {}};
        return knn_cpu_seconds(items, items, 1);
    };
    EXPECT_LT(seconds(few), 1e-6);
    EXPECT_GT(seconds(many), 1000 * seconds(few));
    EXPECT_GT(similarities_cpu_seconds(matrix(1000, 100), 1),
              similarities_cpu_seconds(matrix(1000, 10), 1));
}

bool worth_words(std::uint64_t words, std::uint64_t dictionary_bytes, unsigned threads) {
    return worth_a_device({words, words * 18 + dictionary_bytes,
                           word_lookup_cpu_seconds(words, dictionary_bytes, threads)});
}

TEST(DeviceChoice, ManyWordsGoToADevice) {
    constexpr std::uint64_t dictionary = 45'000'000;
    for (const unsigned threads : {1u, 16u}) {
        EXPECT_FALSE(worth_words(0, dictionary, threads));
        EXPECT_FALSE(worth_words(10'000, dictionary, threads)) << "less than the dictionary";
        EXPECT_FALSE(worth_words(10'000, 1'000, threads));
        EXPECT_TRUE(worth_words(10'000'000, dictionary, threads));
        EXPECT_TRUE(worth_words(10'000'000, 1'000, threads));
    }
    EXPECT_GT(word_lookup_cpu_seconds(1000, 1 << 26, 1), word_lookup_cpu_seconds(1000, 1 << 20, 1));
    EXPECT_EQ(word_lookup_cpu_seconds(1000, 1 << 10, 1), word_lookup_cpu_seconds(1000, 0, 1));
}

TEST(DeviceChoice, ManyWordsAreMadeADictionaryByADevice) {
    const auto worth_building = [](std::uint64_t words, unsigned threads) {
        return worth_a_device(
            {words, words * 18, trie_build_cpu_seconds(words, words * 10, threads)});
    };
    for (const unsigned threads : {1u, 16u}) {
        EXPECT_FALSE(worth_building(0, threads));
        EXPECT_FALSE(worth_building(1'000, threads));
        EXPECT_TRUE(worth_building(1'000'000, threads));
    }
    EXPECT_GT(trie_build_cpu_seconds(1000, 10'000, 1),
              1.9 * trie_build_cpu_seconds(1000, 10'000, 2));
}

TEST(DeviceChoice, LargeThesauriAreWorthADevice) {
    const auto worth = [](std::uint64_t tokens, std::uint32_t window, unsigned threads) {
        return worth_a_device(
            {tokens, tokens * 8, word_similarity_cpu_seconds(tokens, {1000, window}, threads)});
    };
    for (const unsigned threads : {1u, 16u}) {
        EXPECT_FALSE(worth(0, 3, threads));
        EXPECT_FALSE(worth(5'000, 3, threads));
        EXPECT_TRUE(worth(1'000'000, 3, threads));
    }
    EXPECT_FALSE(worth(20'000, 1, 1));
    EXPECT_TRUE(worth(20'000, 50, 1));
    EXPECT_FALSE(worth_a_device({1'000, 24'000, counted_similarity_cpu_seconds(1'000, 1)}));
    EXPECT_TRUE(
        worth_a_device({1'000'000, 24'000'000, counted_similarity_cpu_seconds(1'000'000, 16)}));
}

TEST(DeviceChoice, TrainsOnAtLeastSomeThousandTokensOnADevice) {
    TrainerParameters parameters;
    const auto worth = [&](std::uint64_t tokens, unsigned threads) {
        return worth_a_device({tokens, 8 * tokens,
                               word2vec_cpu_seconds(parameters, tokens, threads),
                               word2vec_device_seconds(parameters, tokens)});
    };
    EXPECT_FALSE(worth(100, 1));
    EXPECT_TRUE(worth(10'000, 1));
    EXPECT_TRUE(worth(100'000, 16));
    // Steps of few windows keep no device busy, and no threads.
    EXPECT_LT(word2vec_cpu_seconds(parameters, 100'000, 16),
              word2vec_cpu_seconds(parameters, 100'000, 1) / 8);
    parameters.batch = 10;
    EXPECT_FALSE(worth(100'000, 16));
    EXPECT_EQ(word2vec_cpu_seconds(parameters, 100'000, 16),
              word2vec_cpu_seconds(parameters, 100'000, 1));
    const double skipgram = word2vec_cpu_seconds(parameters, 1000, 1);
    parameters.model = WordModel::cbow;
    EXPECT_LT(word2vec_cpu_seconds(parameters, 1000, 1), 0.7 * skipgram);
}

/// So many rows of `width` columns, from 0 on, each row further by `step`.
struct Texts {
    Texts(std::size_t rows, std::size_t width, std::size_t step) {
        for (std::size_t row = 0; row < rows; ++row) {
            for (std::size_t i = 0; i < width; ++i)
                columns.push_back(static_cast<std::uint32_t>(row * step + i));
            begins.push_back(columns.size());
        }
    }
    Vectors vectors() const {
        return {ElementType::int32, begins.size() - 1, 1'000'000, nullptr, begins, columns};
    }
    std::vector<std::uint64_t> begins{0};
    std::vector<std::uint32_t> columns;
};

TEST(DeviceChoice, CountsTheTermsThatTextsShare) {
    const Texts same(5'000, 20, 0), apart(5'000, 20, 20), few(5, 20, 0);
    const auto seconds = [](const Texts& queries, const Texts& items, unsigned threads = 1) {
        return term_knn_cpu_seconds(queries.vectors(), items.vectors(), threads);
    };
    EXPECT_GT(seconds(same, same), 5 * seconds(apart, apart));
    EXPECT_GT(seconds(same, same), 20 * seconds(few, same));
    EXPECT_GT(seconds(same, same), 1.9 * seconds(same, same, 2));
    const Texts none(0, 0, 0);
    EXPECT_LT(seconds(none, none), 1e-6);
    EXPECT_FALSE(worth_a_device({205, 16'400, seconds(few, Texts(200, 20, 1))}));
    EXPECT_TRUE(worth_a_device({10'000, 800'000, seconds(same, same)}));
}

TEST(DeviceChoice, ManyPairsOfTextsAndSequencesGoToADevice) {
    const auto pairs_seconds = [](std::size_t pairs, std::size_t words, MoversMethod method) {
        std::vector<std::uint64_t> begins{0};
        for (std::size_t i = 0; i < 2 * pairs; ++i) begins.push_back(begins.back() + words);
        const std::vector<WordMass> masses(begins.back());
        const std::vector<std::uint32_t> totals(pairs, 1);
        return word_movers_cpu_seconds(method, {begins, masses, totals}, 100, 16);
    };
    const double many = pairs_seconds(100'000, 32, MoversMethod::exact);
    EXPECT_TRUE(worth_a_device({100'000, 50'000'000, many}));
    EXPECT_FALSE(worth_a_device({100, 50'000, pairs_seconds(100, 16, MoversMethod::exact)}));
    EXPECT_LT(pairs_seconds(100'000, 32, MoversMethod::relaxed), many);
    EXPECT_EQ(pairs_seconds(0, 32, MoversMethod::exact), 0);

    EXPECT_TRUE(worth_a_device({1000, 2'000'000, sequence_cpu_seconds(20'000, 20'000, 100, 16)}));
    EXPECT_FALSE(worth_a_device({100, 2'000'000, sequence_cpu_seconds(1000, 500, 50, 16)}));
}

}  // namespace
}  // namespace gputext
