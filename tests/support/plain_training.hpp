// tests/support/plain_training.hpp - reference implementation of cpp/embeddings/trainer.hpp

#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "cpp/embeddings/detail/logistic.hpp"
#include "cpp/embeddings/word2vec.hpp"

namespace gputext::testing {

class PlainTraining {
public:
    PlainTraining(const TrainerParameters& parameters, const WordSampling& sampling,
                  const TokenStream& tokens, TrainingModel& model)
        : p_(parameters), sampling_(sampling), tokens_(tokens), model_(model) {}

    void train(const TrainingPart& part) {
        find_entries(part.replica, part.epoch);
        const std::size_t length = (entries_.size() + p_.batch - 1) / p_.batch;
        const std::size_t first = length * part.part / part.parts;
        const std::size_t end = length * (part.part + 1) / part.parts;
        for (std::size_t t = first; t < end; ++t) {
            const double done =
                (part.epoch + static_cast<double>(t) / static_cast<double>(length)) /
                static_cast<double>(p_.epochs);
            rate_ = static_cast<float>(static_cast<double>(p_.learning_rate) *
                                       std::max(1e-4, 1 - done));
            for (std::size_t s = 0; s < p_.batch; ++s)
                if (const std::size_t j = s * length + t; j < entries_.size()) window(part, j);
            apply();
        }
    }

private:
    using Key = std::pair<bool, std::uint32_t>;  // of an output, the word
    struct Sum {
        std::vector<std::uint32_t> steps;
        std::uint32_t count = 0;
    };

    void find_entries(std::uint32_t replica, std::uint32_t epoch) {
        entries_.clear();
        const std::size_t first = tokens_.words.size() * replica / p_.replicas;
        const std::size_t end = tokens_.words.size() * (replica + 1) / p_.replicas;
        const std::uint64_t key = random_key(p_.seed, 1, epoch);
        for (std::size_t i = first; i < end; ++i) {
            if (i != first && tokens_.positions[i] - tokens_.positions[i - 1] > 100)
                entries_.push_back(UINT32_MAX);
            if (random_bits(key, i) >> 32 <= sampling_.keep[tokens_.words[i]])
                entries_.push_back(tokens_.words[i]);
        }
    }

    void window(const TrainingPart& part, std::size_t j) {
        const std::uint32_t word = entries_[j];
        if (word == UINT32_MAX) return;
        const std::uint64_t key =
            random_key(p_.seed, (std::uint64_t{1} << 32) + part.replica, part.epoch);
        const std::uint64_t base = random_bits(key, j);
        const std::size_t b = 1 + ((base >> 32) * p_.window >> 32);
        std::vector<std::uint32_t> before, context, outputs{word};
        for (std::size_t i = j; i-- > 0 && j - i <= b && entries_[i] != UINT32_MAX;)
            before.push_back(entries_[i]);
        context.assign(before.rbegin(), before.rend());
        for (std::size_t i = j + 1; i < entries_.size() && i - j <= b && entries_[i] != UINT32_MAX;
             ++i)
            context.push_back(entries_[i]);
        if (context.empty()) return;
        const std::size_t far = part.farthest.size() / sampling_.keep.size();
        for (std::uint32_t q = 1; q <= p_.negative; ++q) {
            const std::uint64_t bits = random_bits(base, q);
            const std::uint64_t upper = bits >> 32;
            std::uint32_t drawn;
            if (far > 0 && random_bits(base, p_.negative + q) >> 63 == 1) {
                drawn = part.farthest[word * far + (upper * far >> 32)];
            } else {
                const std::uint64_t place = upper * sampling_.own.size() >> 32;
                drawn = static_cast<std::uint32_t>(bits) <= sampling_.own[place]
                            ? static_cast<std::uint32_t>(place)
                            : sampling_.other[place];
            }
            if (drawn != word) outputs.push_back(drawn);
        }
        if (p_.model == WordModel::skipgram)
            skipgram(context, outputs);
        else
            cbow(context, outputs);
    }

    std::vector<float> row(bool output, std::uint32_t word) const {
        const auto& all = output ? model_.outputs : model_.vectors;
        const auto begin = all.begin() + static_cast<std::ptrdiff_t>(word) * p_.dimensions;
        return {begin, begin + p_.dimensions};
    }

    static float dot(const std::vector<float>& a, const std::vector<float>& b) {
        float lanes[32] = {};
        for (std::size_t i = 0; i < a.size(); ++i)
            lanes[i % 32] = std::fma(a[i], b[i], lanes[i % 32]);
        for (std::size_t half = 16; half > 0; half /= 2)
            for (std::size_t l = 0; l < half; ++l) lanes[l] += lanes[l + half];
        return lanes[0];
    }

    float step(const std::vector<float>& x, const std::vector<float>& y, bool label) const {
        return ((label ? 1.0f : 0.0f) - logistic(dot(x, y))) * rate_;
    }

    static void add_to(std::vector<float>& sum, float weight, const std::vector<float>& row) {
        for (std::size_t e = 0; e < sum.size(); ++e) sum[e] = std::fma(weight, row[e], sum[e]);
    }

    void add(bool output, std::uint32_t word, const std::vector<float>& step, std::size_t count) {
        Sum& sum = sums_[{output, word}];
        sum.steps.resize(step.size());
        for (std::size_t e = 0; e < step.size(); ++e) {
            const float units = step[e] * 0x1p22f;
            const float within = std::max(-0x1p28f, std::min(0x1p28f, units));
            sum.steps[e] += static_cast<std::uint32_t>(std::lrint(within));
        }
        sum.count += static_cast<std::uint32_t>(count);
    }

    void skipgram(const std::vector<std::uint32_t>& context,
                  const std::vector<std::uint32_t>& outputs) {
        std::vector<std::vector<float>> dy(outputs.size(), std::vector<float>(p_.dimensions));
        for (const std::uint32_t c : context) {
            const auto x = row(false, c);
            std::vector<float> dx(p_.dimensions);
            for (std::size_t q = 0; q < outputs.size(); ++q) {
                const auto y = row(true, outputs[q]);
                const float g = step(x, y, q == 0);
                add_to(dx, g, y);
                add_to(dy[q], g, x);
            }
            add(false, c, dx, outputs.size());
        }
        for (std::size_t q = 0; q < outputs.size(); ++q)
            add(true, outputs[q], dy[q], context.size());
    }

    void cbow(const std::vector<std::uint32_t>& context,
              const std::vector<std::uint32_t>& outputs) {
        std::vector<float> h(p_.dimensions), dx(p_.dimensions);
        for (const std::uint32_t c : context) add_to(h, 1, row(false, c));
        for (float& element : h) element *= 1 / static_cast<float>(context.size());
        for (std::size_t q = 0; q < outputs.size(); ++q) {
            const auto y = row(true, outputs[q]);
            const float g = step(h, y, q == 0);
            add_to(dx, g, y);
            std::vector<float> dy(p_.dimensions);
            add_to(dy, g, h);
            add(true, outputs[q], dy, 1);
        }
        for (const std::uint32_t c : context) add(false, c, dx, 1);
    }

    void apply() {
        for (const auto& [key, sum] : sums_) {
            const float quotient =
                1 / std::fma(rate_ * p_.damping, static_cast<float>(sum.count), 1.0f);
            auto& all = key.first ? model_.outputs : model_.vectors;
            for (std::size_t e = 0; e < p_.dimensions; ++e) {
                float& element = all[key.second * std::size_t{p_.dimensions} + e];
                const auto units = static_cast<std::int32_t>(sum.steps[e]);
                element = std::fma(static_cast<float>(units) * 0x1p-22f, quotient, element);
            }
        }
        sums_.clear();
    }

    const TrainerParameters p_;
    const WordSampling& sampling_;
    const TokenStream tokens_;
    TrainingModel& model_;
    float rate_ = 0;
    std::vector<std::uint32_t> entries_;
    std::map<Key, Sum> sums_;
};

/// Texts of random words, the first ones far more frequent, with their counts.
struct RandomCorpus {
    RandomCorpus(std::uint64_t seed, std::uint32_t words, std::size_t tokens,
                 std::uint64_t mean_text = 20)
        : counts(words) {
        std::uint32_t position = 0;
        for (std::size_t i = 0; i < tokens; ++i) {
            const std::uint64_t bits = mix_bits(seed * 0x10001 + i + 1);
            const double u = static_cast<double>(bits >> 11) * 0x1p-53;
            const auto word = static_cast<std::uint32_t>(u * u * u * words);
            position += mix_bits(bits) % mean_text == 0 ? 101 : 1;
            numbers.push_back(word);
            positions.push_back(position);
            ++counts[word];
        }
    }
    TokenStream stream() const { return {numbers, positions}; }

    std::vector<std::uint32_t> numbers, positions;
    std::vector<std::uint64_t> counts;
};

}  // namespace gputext::testing
