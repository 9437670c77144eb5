#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <memory>

#include "cpp/embeddings/sequence_probability.hpp"
#include "cpp/embeddings/word_movers.hpp"
#include "kernels/base/upload_ring.hpp"
#include "kernels/embeddings/sequence_probability.hpp"
#include "kernels/embeddings/word_movers.hpp"
#include "tests/support/device_fixture.hpp"
#include "tests/support/text_pairs.hpp"
#include "tests/support/token_sequences.hpp"

namespace gputext {
namespace {

bool same_bits(double a, double b) {
    return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b) ||
           (std::isnan(a) && std::isnan(b));
}

bool same_bits(float a, float b) {
    return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b) ||
           (std::isnan(a) && std::isnan(b));
}

class ModelsOnDevice : public testing::RingTest {
protected:
    Status move(const MoversParameters& parameters, const WordVectors& vectors,
                const TextPairs& pairs, std::vector<double>& distances) {
        Execution execution(8);
        distances.assign(pairs.size(), -1);
        return gpu::word_movers_distances(parameters, vectors, pairs, work, ring(), execution,
                                          distances);
    }

    /// By either method the CPU's bits.
    void expect_same(const WordVectors& vectors, const TextPairs& pairs) {
        for (const MoversMethod method : {MoversMethod::exact, MoversMethod::relaxed}) {
            MoversParameters parameters;
            parameters.method = method;
            Execution execution(8);
            const auto wanted = word_movers_distances(parameters, vectors, pairs, execution);
            ASSERT_TRUE(wanted.ok()) << wanted.status().message();
            std::vector<double> found;
            const Status status = move(parameters, vectors, pairs, found);
            ASSERT_TRUE(status.ok()) << status.message();
            for (std::size_t i = 0; i < pairs.size(); ++i)
                ASSERT_TRUE(same_bits(found[i], (*wanted)[i]))
                    << "pair " << i << " of " << pairs.side(i, 0).size() << " and "
                    << pairs.side(i, 1).size() << " words: " << found[i] << ", not "
                    << (*wanted)[i];
        }
    }

    void expect_same(const NextWordModel& model, const TokenSequences& sequences) {
        Execution execution(8);
        const auto wanted = sequence_probabilities(model, sequences, best_simd(), execution);
        ASSERT_TRUE(wanted.ok()) << wanted.status().message();
        Execution again(8);
        const auto expect_wanted = [&](std::span<const ContextSum> sums) {
            const auto found =
                gpu::sequence_probabilities(model, sequences, sums, work, ring(), again);
            ASSERT_TRUE(found.ok()) << found.status().message();
            ASSERT_EQ(found->tokens.size(), wanted->tokens.size());
            for (std::size_t i = 0; i < wanted->tokens.size(); ++i)
                ASSERT_TRUE(same_bits(found->tokens[i], wanted->tokens[i]))
                    << "token " << i << ": " << found->tokens[i] << ", not " << wanted->tokens[i];
            for (std::size_t i = 0; i < wanted->sequences.size(); ++i)
                ASSERT_TRUE(same_bits(found->sequences[i], wanted->sequences[i]))
                    << "sequence " << i;
        };
        ASSERT_NO_FATAL_FAILURE(expect_wanted({}));

        const auto contexts = contexts_of(sequences, model.vectors.words, again.stop());
        ASSERT_TRUE(contexts.ok());
        const auto sums = gpu::context_sums(model, *contexts, work, ring(), again);
        const auto wanted_sums = context_sums(model, *contexts, best_simd(), again);
        ASSERT_TRUE(sums.ok() && wanted_sums.ok()) << sums.status().message();
        std::vector<ContextSum> by_word(model.vectors.words);
        for (std::size_t i = 0; i < contexts->size(); ++i) {
            ASSERT_EQ((*sums)[i].largest, (*wanted_sums)[i].largest);
            ASSERT_EQ((*sums)[i].sum, (*wanted_sums)[i].sum);
            by_word[(*contexts)[i]] = (*sums)[i];
        }
        expect_wanted(by_word);
    }

    gpu::DeviceWork work{nullptr, std::size_t{4} << 30};
};

TEST_F(ModelsOnDevice, MoveWordsAsTheCpuDoes) {
    const std::size_t pairs = small() ? 300 : 20'000;
    for (const std::size_t dimensions : {1, 31, 32, 50, 100, 300}) {
        const RandomModel model(500, dimensions, static_cast<unsigned>(dimensions));
        ASSERT_NO_FATAL_FAILURE(expect_same(model.view(), random_pairs(pairs, 500, 36, 1).view()));
    }
}

TEST_F(ModelsOnDevice, MoveManyWordsAsTheCpuDoes) {
    const RandomModel model(3000, 20, 1);
    for (const std::size_t tokens : {40, 75, 110, 190, 400})
        ASSERT_NO_FATAL_FAILURE(
            expect_same(model.view(), random_pairs(small() ? 20 : 300, 3000, tokens, 2).view()));
}

TEST_F(ModelsOnDevice, MoveWordsBetweenTextsOfDifferentLengths) {
    const RandomModel model(1000, 10, 3);
    std::mt19937 random(4);
    PackedPairs pairs;
    for (int i = 0; i < (small() ? 40 : 400); ++i) {
        auto few = random_text(random, 1000, 6), many = random_text(random, 1000, 240);
        if (i % 2 == 0)
            pairs.append(few, many);
        else
            pairs.append(many, few);
    }
    expect_same(model.view(), pairs.view());
}

TEST_F(ModelsOnDevice, MoveWordsAtEqualCosts) {
    // A grid: many costs are the same, and many are 0.
    std::vector<float> elements;
    for (int i = 0; i < 200; ++i) {
        elements.push_back(static_cast<float>(i % 5));
        elements.push_back(static_cast<float>(i / 5 % 4));
    }
    expect_same({elements.data(), 200, 2}, random_pairs(2000, 200, 60, 5).view());
}

TEST_F(ModelsOnDevice, MoveNothing) {
    const RandomModel model(10, 4, 6);
    expect_same(model.view(), PackedPairs().view());
    PackedPairs pairs;
    pairs.append({}, {});
    pairs.append({1}, {});
    pairs.append({1, 2}, {2, 1});
    expect_same(model.view(), pairs.view());
    PackedPairs without;
    without.append({}, {});
    expect_same({nullptr, 0, 0}, without.view());
}

TEST_F(ModelsOnDevice, DoNotFreeWhatIsBeingCopiedTo) {
    const RandomModel model(10, 4, 6);
    testing::hold_up(ring().stream());
    std::vector<double> found;
    EXPECT_TRUE(move({}, model.view(), PackedPairs().view(), found).ok());
    EXPECT_EQ(cudaStreamSynchronize(work.stream), cudaSuccess);
    EXPECT_EQ(cudaStreamQuery(ring().stream()), cudaSuccess);
}

TEST_F(ModelsOnDevice, MoveWordsInParts) {
    const RandomModel model(300, 16, 7);
    const PackedPairs pairs = random_pairs(3000, 300, 30, 8);
    work.bytes = 300 * 16 * sizeof(float) + 20'000;
    ASSERT_NO_FATAL_FAILURE(expect_same(model.view(), pairs.view()));
    work.bytes = 300 * 16 * sizeof(float) + 64;
    std::vector<double> found;
    EXPECT_EQ(move({}, model.view(), pairs.view(), found).code(), ErrorCode::out_of_memory);
}

TEST_F(ModelsOnDevice, MoveWordsOfTheLongestAndShortestModels) {
    for (const float length : {0x1p-39f, 0x1p38f}) {
        RandomModel model(100, 6, 9);
        for (float& x : model.elements()) x *= length / 4;
        ASSERT_NO_FATAL_FAILURE(expect_same(model.view(), random_pairs(200, 100, 20, 10).view()));
    }
    RandomModel model(100, 6, 9);
    model.elements()[7] = NAN;
    std::vector<double> found;
    EXPECT_EQ(move({}, model.view(), random_pairs(2, 100, 20, 10).view(), found).code(),
              ErrorCode::invalid_argument);
}

TEST_F(ModelsOnDevice, MoveNoWordsWhenStopped) {
    const RandomModel model(100, 6, 9);
    const PackedPairs pairs = random_pairs(200, 100, 20, 10);
    Execution execution(2);
    execution.request_stop();
    std::vector<double> found(200);
    EXPECT_EQ(
        gpu::word_movers_distances({}, model.view(), pairs.view(), work, ring(), execution, found)
            .code(),
        ErrorCode::cancelled);
}

TEST_F(ModelsOnDevice, KnowSequencesAsTheCpuDoes) {
    for (const std::size_t dimensions : {1, 5, 32, 50, 100, 300, 992})
        for (const std::size_t words : {1, 63, 64, 65, 700}) {
            if (small() && words * dimensions > 5000) continue;
            const RandomModel vectors(words, dimensions, 1, 0.3f),
                outputs(words, dimensions, 2, 0.3f);
            ASSERT_NO_FATAL_FAILURE(expect_same({vectors.view(), outputs.view()},
                                                random_sequences(300, words, 30, 3).view()))
                << words << " words of " << dimensions << " dimensions";
        }
}

TEST_F(ModelsOnDevice, KnowSequencesOfVectorsThatAreFarApart) {
    const RandomModel vectors(200, 40, 1, 30.0f), outputs(200, 40, 2, 30.0f);
    expect_same({vectors.view(), outputs.view()}, random_sequences(300, 200, 30, 3).view());
}

TEST_F(ModelsOnDevice, KnowSequencesInParts) {
    const RandomModel vectors(400, 50, 1, 0.3f), outputs(400, 50, 2, 0.3f);
    const PackedSequences sequences = random_sequences(2000, 400, 40, 3);
    work.bytes = gpu::ResidentNextWords::bytes(400, 50) + 10'000;
    ASSERT_NO_FATAL_FAILURE(expect_same({vectors.view(), outputs.view()}, sequences.view()));
    work.bytes -= 10'000;
    Execution execution(2);
    EXPECT_EQ(gpu::sequence_probabilities({vectors.view(), outputs.view()}, sequences.view(), {},
                                          work, ring(), execution)
                  .status()
                  .code(),
              ErrorCode::out_of_memory);
}

TEST_F(ModelsOnDevice, KnowNothing) {
    const RandomModel model(3, 4, 1);
    expect_same({model.view(), model.view()}, PackedSequences().view());
    PackedSequences empty;
    empty.append({});
    empty.append({2});
    empty.append({});
    expect_same({model.view(), model.view()}, empty.view());
    PackedSequences none;
    none.append({});
    expect_same({{nullptr, 0, 0}, {nullptr, 0, 0}}, none.view());
}

}  // namespace
}  // namespace gputext
