#include "cpp/embeddings/sequence_probability.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

#include "cpp/base/lane_sums.hpp"
#include "cpp/base/natural_functions.hpp"
#include "tests/support/text_pairs.hpp"
#include "tests/support/token_sequences.hpp"

namespace gputext {
namespace {

TEST(NaturalExp, IsThatOfTheLibraryNearly) {
    EXPECT_EQ(natural_exp(0), 1);
    EXPECT_EQ(natural_exp(-87.0001f), 0);
    EXPECT_EQ(natural_exp(-1e30f), 0);
    EXPECT_EQ(natural_exp(-INFINITY), 0);
    EXPECT_GT(natural_exp(-87), 0);
    double worst = 0;
    for (float y = 0; y >= -87; y -= 0x1.3p-10f) {
        const double wanted = std::exp(double{y});
        worst = std::max(worst, std::abs(natural_exp(y) - wanted) / wanted);
    }
    EXPECT_LT(worst, 0x1p-23);
}

TEST(NaturalExp, HasItsBits) {
    // Values by the definition, computed once in Python with exact fractions, and rounded.
    const auto bits = [](float y) { return std::bit_cast<std::uint32_t>(natural_exp(y)); };
    EXPECT_EQ(bits(-0.5f), 0x3f1b4598u);
    EXPECT_EQ(bits(-1.0f), 0x3ebc5ab2u);
    EXPECT_EQ(bits(-10.3f), 0x380d1141u);
    EXPECT_EQ(bits(-86.9f), 0x00c60f89u);
}

/// In doubles, by the formula alone.
double plain_probability(const NextWordModel& model, std::uint32_t a, std::uint32_t b) {
    const auto dot = [&](std::uint32_t next) {
        double sum = 0;
        for (std::size_t i = 0; i < model.vectors.dimensions; ++i)
            sum += double{model.vectors.of(a)[i]} * double{model.outputs.of(next)[i]};
        return sum;
    };
    double all = 0;
    for (std::uint32_t next = 0; next < model.outputs.words; ++next)
        all += std::exp(dot(next) - dot(b));
    return 1 / all;
}

std::uint64_t bits(double x) {
    return std::bit_cast<std::uint64_t>(x);
}
std::uint32_t bits(float x) {
    return std::bit_cast<std::uint32_t>(x);
}

TEST(SequenceProbability, IsTheSoftmaxByAnyInstructionSetAndNumberOfThreads) {
    const RandomModel vectors(90, 50, 1, 0.6f), outputs(90, 50, 2, 0.6f);
    const NextWordModel model{vectors.view(), outputs.view()};
    const PackedSequences sequences = random_sequences(400, 90, 30, 3);
    const auto view = sequences.view();
    Execution execution(1);
    const auto first = sequence_probabilities(model, view, Simd::portable, execution);
    ASSERT_TRUE(first.ok());
    ASSERT_EQ(first->sequences.size(), 400u);
    ASSERT_EQ(first->tokens.size(), view.tokens.size());
    for (std::size_t s = 0; s < view.size(); ++s) {
        const std::uint64_t begin = view.begins[s], end = view.begins[s + 1];
        if (begin == end) {
            EXPECT_TRUE(std::isnan(first->sequences[s]));
            continue;
        }
        EXPECT_TRUE(std::isnan(first->tokens[begin]));
        double sum = 0;
        for (std::uint64_t i = begin + 1; i < end; ++i) {
            const double p = plain_probability(model, view.tokens[i - 1], view.tokens[i]);
            EXPECT_NEAR(first->tokens[i], p, 1e-5 * p);
            sum += p;
        }
        EXPECT_NEAR(first->sequences[s], sum / static_cast<double>(end - begin), 1e-6);
        if (end - begin == 1) {
            EXPECT_EQ(first->sequences[s], 0);
        }
    }
    for (const Simd simd : {Simd::avx2, Simd::avx512}) {
        if (!simd_available(simd)) continue;
        Execution more(3);
        const auto found = sequence_probabilities(model, view, simd, more);
        ASSERT_TRUE(found.ok());
        for (std::size_t s = 0; s < view.size(); ++s)
            ASSERT_EQ(bits(found->sequences[s]), bits(first->sequences[s])) << simd_name(simd);
        for (std::size_t i = 0; i < view.tokens.size(); ++i)
            ASSERT_EQ(bits(found->tokens[i]), bits(first->tokens[i])) << simd_name(simd);
    }
}

TEST(SequenceProbability, HasTheBitsOfItsDefinition) {
    const RandomModel vectors(33, 7, 4), outputs(33, 7, 5);
    const NextWordModel model{vectors.view(), outputs.view()};
    PackedSequences sequences;
    sequences.append({4, 9, 4, 30});
    Execution execution(1);
    const auto found = sequence_probabilities(model, sequences.view(), best_simd(), execution);
    ASSERT_TRUE(found.ok());
    const LaneSum dot = lane_dot_by(best_simd());
    double sum = 0;
    for (std::size_t i = 1; i < 4; ++i) {
        const float* const v = vectors.view().of(sequences.view().tokens[i - 1]);
        float largest = -INFINITY;
        for (std::uint32_t x = 0; x < 33; ++x)
            largest = std::max(largest, dot(v, outputs.view().of(x), 7));
        std::uint64_t all = 0;
        for (std::uint32_t x = 0; x < 33; ++x)
            all += static_cast<std::uint64_t>(std::nearbyint(
                0x1p40 * double{natural_exp(dot(v, outputs.view().of(x), 7) - largest)}));
        const double p = 0x1p40 *
                         double{natural_exp(
                             dot(v, outputs.view().of(sequences.view().tokens[i]), 7) - largest)} /
                         static_cast<double>(all);
        EXPECT_EQ(bits(found->tokens[i]), bits(static_cast<float>(p)));
        sum += p;
    }
    EXPECT_EQ(bits(found->sequences[0]), bits(sum / 4));
}

/// Also of contexts in parts, as several devices find them.
TEST(SequenceProbability, IsTheSameWithSumsThatAreKnown) {
    const RandomModel vectors(90, 20, 1, 0.6f), outputs(90, 20, 2, 0.6f);
    const NextWordModel model{vectors.view(), outputs.view()};
    const PackedSequences sequences = random_sequences(300, 90, 30, 3);
    Execution execution(2);
    const auto wanted = sequence_probabilities(model, sequences.view(), best_simd(), execution);
    const auto contexts = contexts_of(sequences.view(), 90, execution.stop());
    ASSERT_TRUE(wanted.ok() && contexts.ok());
    std::vector<ContextSum> by_word(90);
    for (const std::size_t part : {0, 1}) {
        const std::size_t begin = part * 40, end = part == 0 ? 40 : contexts->size();
        const auto own = std::span(*contexts).subspan(begin, end - begin);
        const auto sums = context_sums(model, own, best_simd(), execution);
        ASSERT_TRUE(sums.ok());
        ASSERT_EQ(sums->size(), own.size());
        for (std::size_t i = 0; i < own.size(); ++i) by_word[own[i]] = (*sums)[i];
    }
    const auto found =
        sequence_probabilities(model, sequences.view(), by_word, best_simd(), execution);
    ASSERT_TRUE(found.ok());
    ASSERT_EQ(found->tokens.size(), wanted->tokens.size());
    for (std::size_t i = 0; i < wanted->tokens.size(); ++i)
        ASSERT_EQ(bits(found->tokens[i]), bits(wanted->tokens[i]));
    for (std::size_t s = 0; s < wanted->sequences.size(); ++s)
        ASSERT_EQ(bits(found->sequences[s]), bits(wanted->sequences[s]));
}

TEST(SequenceProbability, IsOneInAVocabularyOfOneWord) {
    const RandomModel vectors(1, 3, 6);
    PackedSequences sequences;
    sequences.append({0, 0, 0, 0});
    Execution execution(1);
    const auto found = sequence_probabilities({vectors.view(), vectors.view()}, sequences.view(),
                                              best_simd(), execution);
    ASSERT_TRUE(found.ok());
    EXPECT_EQ(found->tokens[3], 1);
    EXPECT_EQ(found->sequences[0], 0.75);
}

TEST(SequenceProbability, StandsVectorsThatAreFarApart) {
    const std::vector<float> v = {0x1p39f, -0x1p39f, 0};
    PackedSequences sequences;
    sequences.append({0, 1, 0, 0, 2, 1});
    Execution execution(1);
    const auto found = sequence_probabilities({{v.data(), 3, 1}, {v.data(), 3, 1}},
                                              sequences.view(), best_simd(), execution);
    ASSERT_TRUE(found.ok());
    EXPECT_EQ(found->tokens[1], 0);
    EXPECT_EQ(found->tokens[3], 1);
    EXPECT_NEAR(found->tokens[5], 1.0 / 3, 1e-7);
}

TEST(SequenceProbability, RefusesWhatCannotBe) {
    const std::vector<float> good = {1, 2}, long_one = {1, 0x1p41f};
    PackedSequences sequences;
    sequences.append({0, 1});
    for (const bool output : {false, true}) {
        Execution execution(1);
        const WordVectors bad{long_one.data(), 2, 1}, fine{good.data(), 2, 1};
        EXPECT_EQ(sequence_probabilities({output ? fine : bad, output ? bad : fine},
                                         sequences.view(), best_simd(), execution)
                      .status()
                      .code(),
                  ErrorCode::invalid_argument);
    }
    const auto check = [](std::vector<std::uint64_t> begins, std::vector<std::uint32_t> tokens) {
        return check_sequences({begins, tokens}, 5, {}).code();
    };
    EXPECT_EQ(check({0, 2, 2, 3}, {0, 4, 1}), ErrorCode::ok);
    EXPECT_EQ(check({0}, {}), ErrorCode::ok);
    EXPECT_EQ(check({}, {}), ErrorCode::invalid_argument);
    EXPECT_EQ(check({0, 2}, {0, 4, 1}), ErrorCode::invalid_argument);
    EXPECT_EQ(check({0, 3, 2, 3}, {0, 4, 1}), ErrorCode::invalid_argument);
    EXPECT_EQ(check({0, 3}, {0, 5, 1}), ErrorCode::invalid_argument);
}

TEST(SequenceProbability, EndsWhenStopped) {
    const RandomModel vectors(90, 50, 1);
    const PackedSequences sequences = random_sequences(400, 90, 30, 3);
    Execution execution(1);
    execution.request_stop();
    EXPECT_EQ(sequence_probabilities({vectors.view(), vectors.view()}, sequences.view(),
                                     best_simd(), execution)
                  .status()
                  .code(),
              ErrorCode::cancelled);
}

}  // namespace
}  // namespace gputext
