#include "cpp/embeddings/sequence_probability.hpp"

#include <algorithm>
#include <limits>

#include "cpp/base/lane_sums.hpp"
#include "cpp/base/natural_functions.hpp"
#include "cpp/base/stoppable.hpp"

namespace gputext {
namespace {

constexpr float kUnit = 0x1p40f;

// ---- Z of a context, for each instruction set ----

/// Numbers from 0 to 2^40 rounded to integers, by the rounding of a sum with 2^52.
[[gnu::always_inline]] inline std::uint64_t rounded(float x) {
    constexpr double shift = 0x1p52;
    return __builtin_bit_cast(std::uint64_t, double{x} + shift) -
           __builtin_bit_cast(std::uint64_t, shift);
}

[[gnu::always_inline]] inline std::uint64_t sum_of_powers_here(const float* dots, std::size_t count,
                                                               float largest) {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < count; ++i) sum += rounded(kUnit * natural_exp(dots[i] - largest));
    return sum;
}

using SumOfPowers = std::uint64_t (*)(const float* dots, std::size_t count, float largest);

std::uint64_t sum_of_powers(const float* dots, std::size_t count, float largest) {
    return sum_of_powers_here(dots, count, largest);
}

#ifdef GPUTEXT_X86
[[gnu::optimize("O3", "no-math-errno", "no-trapping-math")]] GPUTEXT_TARGET_AVX2 std::uint64_t
sum_of_powers_avx2(const float* dots, std::size_t count, float largest) {
    return sum_of_powers_here(dots, count, largest);
}

[[gnu::optimize("O3", "no-math-errno", "no-trapping-math"),
  gnu::target("prefer-vector-width=512")]] GPUTEXT_TARGET_AVX512 std::uint64_t
sum_of_powers_avx512(const float* dots, std::size_t count, float largest) {
    return sum_of_powers_here(dots, count, largest);
}
#endif

SumOfPowers sum_of_powers_by(Simd simd) {
#ifdef GPUTEXT_X86
    if (simd == Simd::avx512) return sum_of_powers_avx512;
    if (simd == Simd::avx2) return sum_of_powers_avx2;
#endif
    (void)simd;
    return sum_of_powers;
}

// ---- Tokens ----

/// Looks tokens up.
class NextWords {
public:
    NextWords(const NextWordModel& model, const TokenSequences& sequences,
              std::span<const ContextSum> sums, Simd simd, SequenceProbabilities& answer)
        : model_(model),
          sequences_(sequences),
          sums_(sums),
          dot_(lane_dot_by(simd)),
          answer_(answer) {}

    Status look_up(Execution& execution);

private:
    double probability(std::uint32_t context, std::uint32_t next) const {
        const float dot =
            dot_(model_.vectors.of(context), model_.outputs.of(next), model_.vectors.dimensions);
        const float power = kUnit * natural_exp(dot - sums_[context].largest);
        return double{power} / static_cast<double>(sums_[context].sum);
    }
    void look_up(std::size_t sequence);

    const NextWordModel& model_;
    const TokenSequences& sequences_;
    std::span<const ContextSum> sums_;  // by word
    LaneSum dot_;
    SequenceProbabilities& answer_;
};

Status NextWords::look_up(Execution& execution) {
    constexpr std::size_t tokens_of_step = 4096;
    constexpr float none = std::numeric_limits<float>::quiet_NaN();
    if (!stoppable_assign(answer_.tokens, sequences_.tokens.size(), none, execution.stop()) ||
        !stoppable_assign(answer_.sequences, sequences_.size(), double{none}, execution.stop()))
        return Status::cancelled();
    // Sequences whose first tokens are in one step.
    const std::size_t steps = sequences_.tokens.size() / tokens_of_step + 1;
    execution.begin_phase("looking up tokens", steps);
    return execution.parallel_for(steps, [&](std::size_t step, unsigned) -> Status {
        const auto& begins = sequences_.begins;
        const auto last = begins.end() - 1;
        auto at = std::lower_bound(begins.begin(), last, step * tokens_of_step);
        const auto end = std::lower_bound(at, last, (step + 1) * tokens_of_step);
        for (; at < end; ++at) {
            if (execution.stop_requested()) return Status::cancelled();
            look_up(static_cast<std::size_t>(at - begins.begin()));
        }
        return {};
    });
}

void NextWords::look_up(std::size_t sequence) {
    const std::uint64_t begin = sequences_.begins[sequence], end = sequences_.begins[sequence + 1];
    if (begin == end) return;
    double sum = 0;
    for (std::uint64_t i = begin + 1; i < end; ++i) {
        const double p = probability(sequences_.tokens[i - 1], sequences_.tokens[i]);
        answer_.tokens[i] = static_cast<float>(p);
        sum += p;
    }
    answer_.sequences[sequence] = sum / static_cast<double>(end - begin);
}

Status broken(const char* what) {
    return {ErrorCode::invalid_argument, what};
}

}  // namespace

Status check_sequences(const TokenSequences& sequences, std::size_t words, Stop stop) {
    if (sequences.begins.empty() || sequences.begins.front() != 0 ||
        sequences.begins.back() != sequences.tokens.size())
        return broken("tokens outside the sequences");
    for (std::size_t i = 0; i < sequences.size(); ++i) {
        if (i % kLookEvery == 0 && stop()) return Status::cancelled();
        if (sequences.begins[i] > sequences.begins[i + 1])
            return broken("a sequence that ends before it begins");
    }
    for (std::size_t i = 0; i < sequences.tokens.size(); ++i) {
        if (i % kLookEvery == 0 && stop()) return Status::cancelled();
        if (sequences.tokens[i] >= words) return broken("a token that is no word of the model");
    }
    return {};
}

Status check_next_word_model(const NextWordModel& model, Execution& execution) {
    if (model.vectors.words > kMostNextWords)
        return {ErrorCode::invalid_argument, "the model has more than 16777215 words"};
    auto longest = longest_vector(model.vectors, execution);
    if (longest.ok()) longest = longest_vector(model.outputs, execution);
    return longest.status();
}

Result<std::vector<std::uint32_t>> contexts_of(const TokenSequences& sequences, std::size_t words,
                                               Stop stop) {
    std::vector<std::uint8_t> followed;
    if (!stoppable_assign(followed, words, std::uint8_t{0}, stop)) return Status::cancelled();
    std::size_t since_look = 0;
    for (std::size_t s = 0; s < sequences.size(); ++s) {
        for (std::uint64_t i = sequences.begins[s]; i + 1 < sequences.begins[s + 1]; ++i)
            followed[sequences.tokens[i]] = 1;
        since_look += sequences.begins[s + 1] - sequences.begins[s] + 1;
        if (since_look < kLookEvery) continue;
        since_look = 0;
        if (stop()) return Status::cancelled();
    }
    std::vector<std::uint32_t> contexts;
    for (std::uint32_t word = 0; word < words; ++word)
        if (followed[word] != 0) contexts.push_back(word);
    return contexts;
}

Result<std::vector<ContextSum>> context_sums(const NextWordModel& model,
                                             std::span<const std::uint32_t> contexts, Simd simd,
                                             Execution& execution) {
    GPUTEXT_TRY(check_next_word_model(model, execution));
    const LaneSum dot = lane_dot_by(simd);
    const SumOfPowers sum_of_powers = sum_of_powers_by(simd);
    const std::size_t words = model.vectors.words;
    std::vector<ContextSum> sums(contexts.size());
    std::vector<std::vector<float>> dots_of(execution.threads());
    execution.begin_phase("summing over words", contexts.size());
    GPUTEXT_TRY(
        execution.parallel_for(contexts.size(), [&](std::size_t i, unsigned worker) -> Status {
            constexpr std::size_t step = std::size_t{1} << 15;
            std::vector<float>& dots = dots_of[worker];
            dots.resize(words);
            const float* const context = model.vectors.of(contexts[i]);
            for (std::size_t begin = 0; begin < words; begin += step) {
                if (execution.stop_requested()) return Status::cancelled();
                for (std::size_t next = begin; next < std::min(words, begin + step); ++next)
                    dots[next] = dot(context, model.outputs.of(static_cast<std::uint32_t>(next)),
                                     model.vectors.dimensions);
            }
            sums[i].largest = *std::max_element(dots.begin(), dots.end());
            sums[i].sum = sum_of_powers(dots.data(), words, sums[i].largest);
            return {};
        }));
    return sums;
}

Result<SequenceProbabilities> sequence_probabilities(const NextWordModel& model,
                                                     const TokenSequences& sequences,
                                                     std::span<const ContextSum> sums, Simd simd,
                                                     Execution& execution) {
    GPUTEXT_TRY(check_next_word_model(model, execution));
    SequenceProbabilities answer;
    GPUTEXT_TRY(NextWords(model, sequences, sums, simd, answer).look_up(execution));
    return answer;
}

Result<SequenceProbabilities> sequence_probabilities(const NextWordModel& model,
                                                     const TokenSequences& sequences, Simd simd,
                                                     Execution& execution) {
    const std::size_t words = model.vectors.words;
    const auto contexts = contexts_of(sequences, words, execution.stop());
    if (!contexts.ok()) return contexts.status();
    const auto sums = context_sums(model, *contexts, simd, execution);
    if (!sums.ok()) return sums.status();
    std::vector<ContextSum> by_word(words);
    for (std::size_t i = 0; i < contexts->size(); ++i) by_word[(*contexts)[i]] = (*sums)[i];
    return sequence_probabilities(model, sequences, by_word, simd, execution);
}

}  // namespace gputext
