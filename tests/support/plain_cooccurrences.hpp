// tests/support/plain_cooccurrences.hpp - random texts, and their co-occurrences, weights and
// similarities as cpp/thesaurus/cooccurrences.hpp, cpp/thesaurus/feature_weights.hpp and
// cpp/thesaurus/word_similarity.hpp define them, word by word

#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <random>
#include <tuple>
#include <utility>
#include <vector>

#include "cpp/thesaurus/word_similarity.hpp"
#include "tests/support/random_strings.hpp"

namespace gputext::testing {

/// Texts one behind the other, as a TokenStream has them.
struct PlainStream {
    std::vector<std::uint32_t> words, positions;

    TokenStream view() const { return {words, positions}; }

    /// A text of words, of which those that are not of the vocabulary keep their places.
    void add_text(const std::vector<std::uint32_t>& text, const CooccurrenceShape& shape) {
        for (const std::uint32_t word : text) {
            if (word < shape.words) add_word(word);
            ++next_position;
        }
        next_position += shape.window;
    }
    void add_word(std::uint32_t word) {
        words.push_back(word);
        positions.push_back(next_position);
    }

    std::uint32_t next_position = 0;
};

/// About so many words, by Zipf's law, in texts of many lengths; some are of no vocabulary, some
/// have variants. Words stand beside words of their own kind, so that similarities differ.
inline PlainStream random_stream(RandomStrings& random, const CooccurrenceShape& shape,
                                 std::size_t size) {
    PlainStream stream;
    const auto zipf = [&] {
        const double at = static_cast<double>(random.below(1 << 20)) / (1 << 20);
        return static_cast<std::uint32_t>(std::pow(shape.words + 1.0, at)) - 1;
    };
    while (stream.words.size() < size && shape.words > 0) {
        const std::size_t length = random.below(8) == 0 ? 1 : 1 + random.below(40);
        std::uint32_t last = 0;
        for (std::size_t i = 0; i < length; ++i, ++stream.next_position) {
            if (random.below(8) == 0) continue;  // of no vocabulary
            std::uint32_t word = random.below(3) == 0 ? last + 1 : zipf();
            if (word >= shape.words) word = 0;
            stream.add_word(word);
            if (random.below(16) == 0 && word > 0) stream.add_word(word - 1);
            last = word;
        }
        stream.next_position += shape.window;
    }
    return stream;
}

/// By <word, relation, neighbor>.
using PlainCounts =
    std::map<std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>, std::uint64_t>;

inline PlainCounts plain_counts(const CooccurrenceShape& shape, const PlainStream& stream) {
    PlainCounts counts;
    for (std::size_t i = 0; i < stream.words.size(); ++i)
        for (std::size_t j = 0; j < stream.words.size(); ++j) {
            const auto offset = static_cast<std::int64_t>(stream.positions[j]) -
                                static_cast<std::int64_t>(stream.positions[i]);
            if (offset == 0 || std::abs(offset) > shape.window) continue;
            const std::int64_t relation =
                !shape.positions ? 0 : offset + shape.window - (offset > 0 ? 1 : 0);
            ++counts[{stream.words[i], static_cast<std::uint32_t>(relation), stream.words[j]}];
        }
    return counts;
}

inline PlainCounts plain_counts(const Cooccurrences& counts) {
    PlainCounts plain;
    for (std::uint32_t word = 0; word < counts.shape.words; ++word)
        for (auto i = counts.begins[word]; i < counts.begins[word + 1]; ++i)
            plain[{word, counts.columns[i] / counts.shape.words,
                   counts.columns[i] % counts.shape.words}] = counts.counts[i];
    return plain;
}

/// The thesis's equation 3.7 and its variants, in the order of the counts. Not cut off at 0.
inline std::vector<long double> plain_weights(const WeightParameters& parameters,
                                              const PlainCounts& counts) {
    std::map<std::pair<std::uint32_t, std::uint32_t>, long double> of_word, of_neighbor;
    std::map<std::uint32_t, long double> of_relation, of_word_alone;
    long double all = 0;
    for (const auto& [triple, count] : counts) {
        const auto& [word, relation, neighbor] = triple;
        const auto c = static_cast<long double>(count);
        of_word[{word, relation}] += c;
        of_word_alone[word] += c;
        of_neighbor[{relation, neighbor}] += c;
        of_relation[relation] += c;
        all += c;
    }
    std::vector<long double> weights;
    for (const auto& [triple, count] : counts) {
        const auto& [word, relation, neighbor] = triple;
        const long double joint = static_cast<long double>(count) - parameters.discount;
        const long double chance = of_neighbor[{relation, neighbor}];
        if (parameters.weight == WordWeight::count)
            weights.push_back(joint);
        else if (joint <= 0)
            weights.push_back(-1e9L);
        else if (parameters.weight == WordWeight::lin)
            weights.push_back(
                std::log(joint * of_relation[relation] / (of_word[{word, relation}] * chance)));
        else
            weights.push_back(std::log(joint * all / (of_word_alone[word] * chance)));
    }
    return weights;
}

/// A word's neighbors, best first.
using PlainList = std::vector<std::pair<std::uint32_t, double>>;

/// All of a word, by the definition.
inline PlainList plain_neighbors(WordMeasure measure, const WordFeatures& features,
                                  std::uint32_t word, std::size_t top_k) {
    using Wide = unsigned __int128;
    std::map<std::uint32_t, std::uint64_t> mine;
    for (auto i = features.begins[word]; i < features.begins[word + 1]; ++i)
        mine[features.columns[i]] = features.weights[i];
    Wide a = 0, squares_a = 0;
    for (const auto& [feature, weight] : mine) a += weight, squares_a += Wide{weight} * weight;
    PlainList all;
    for (std::uint32_t other = 0; other < features.shape.words; ++other) {
        if (other == word) continue;
        Wide shared = 0, b = 0, both = 0, squares_b = 0, products = 0;
        for (auto i = features.begins[other]; i < features.begins[other + 1]; ++i) {
            const std::uint64_t weight = features.weights[i];
            b += weight, squares_b += Wide{weight} * weight;
            const auto found = mine.find(features.columns[i]);
            if (found == mine.end()) continue;
            ++both;
            shared += weight + found->second;
            products += Wide{weight} * found->second;
        }
        if (both == 0) continue;
        const auto number = [](Wide value) {
            return static_cast<double>(static_cast<std::uint64_t>(value));
        };
        double similarity = 0;
        if (measure == WordMeasure::lin)
            similarity = number(shared) / number(a + b);
        else if (measure == WordMeasure::cosine)
            similarity = number(products) / std::sqrt(number(squares_a) * number(squares_b));
        else
            similarity = number(both) / number(mine.size() + features.begins[other + 1] -
                                               features.begins[other] - both);
        all.emplace_back(other, similarity);
    }
    std::stable_sort(all.begin(), all.end(),
                     [](const auto& x, const auto& y) { return x.second > y.second; });
    all.resize(std::min(top_k, all.size()));
    return all;
}

inline PlainList list_of(const Thesaurus& thesaurus, std::uint32_t word) {
    PlainList list;
    for (auto i = thesaurus.begins[word]; i < thesaurus.begins[word + 1]; ++i)
        list.emplace_back(thesaurus.neighbors[i], thesaurus.similarities[i]);
    return list;
}

}  // namespace gputext::testing
