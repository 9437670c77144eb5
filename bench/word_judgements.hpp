// bench/word_judgements.hpp - how a thesaurus agrees with people's judgement of pairs of words

#pragma once

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <numeric>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/word_corpus.hpp"
#include "cpp/thesaurus/word_similarity.hpp"

namespace gputext::bench {

struct Judgement {
    std::string a, b;  // in lower case
    double score;
};

/// Reads a file with two words and a number a line, between tabs. Throws std::runtime_error when
/// there is no such file, or a line is not like that.
inline std::vector<Judgement> read_judgements(const std::string& name) {
    std::ifstream file(name);
    if (!file) throw std::runtime_error("cannot read: " + name);
    std::vector<Judgement> judgements;
    for (std::string line; std::getline(file, line);) {
        std::istringstream fields(line);
        Judgement judgement;
        if (!(fields >> judgement.a >> judgement.b >> judgement.score))
            throw std::runtime_error("not two words and a number: " + line);
        for (std::string* word : {&judgement.a, &judgement.b})
            for (char& letter : *word)
                letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
        judgements.push_back(judgement);
    }
    return judgements;
}

/// Ranks from 0; equal values share the mean of theirs.
inline std::vector<double> ranks(const std::vector<double>& values) {
    std::vector<std::size_t> order(values.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(),
              [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
    std::vector<double> ranks(values.size());
    for (std::size_t i = 0, end = 0; i < order.size(); i = end) {
        while (end < order.size() && values[order[end]] == values[order[i]]) ++end;
        for (std::size_t j = i; j < end; ++j)
            ranks[order[j]] = static_cast<double>(i + end - 1) / 2;
    }
    return ranks;
}

/// Pearson's correlation; of ranks it is Spearman's.
inline double correlation(const std::vector<double>& a, const std::vector<double>& b) {
    const auto n = static_cast<double>(a.size());
    const double mean_a = std::accumulate(a.begin(), a.end(), 0.0) / n;
    const double mean_b = std::accumulate(b.begin(), b.end(), 0.0) / n;
    double ab = 0, aa = 0, bb = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        ab += (a[i] - mean_a) * (b[i] - mean_b);
        aa += (a[i] - mean_a) * (a[i] - mean_a);
        bb += (b[i] - mean_b) * (b[i] - mean_b);
    }
    return ab / std::sqrt(aa * bb);
}

struct Agreement {
    double spearman;
    std::size_t found;  // pairs with both words in the vocabulary
    std::size_t pairs;
};

/// What cpp/thesaurus/word_similarity.hpp says of two words, without the search: 0 if they share no
/// feature.
inline double pair_similarity(WordMeasure measure, const WordFeatures& features, std::uint32_t a,
                              std::uint32_t b) {
    const auto term = [measure](std::uint64_t x, std::uint64_t y) {
        return measure == WordMeasure::lin ? x + y : measure == WordMeasure::cosine ? x * y : 1;
    };
    // A word's features against themselves, lin's counting twice.
    const auto own = [&](std::uint32_t word) {
        std::uint64_t sum = 0;
        for (auto i = features.begins[word]; i < features.begins[word + 1]; ++i)
            sum += term(features.weights[i], features.weights[i]);
        return static_cast<double>(sum);
    };
    std::uint64_t sum = 0;
    for (auto i = features.begins[a], j = features.begins[b];
         i < features.begins[a + 1] && j < features.begins[b + 1];) {
        const std::uint32_t x = features.columns[i], y = features.columns[j];
        if (x == y) sum += term(features.weights[i], features.weights[j]);
        i += x <= y;
        j += y <= x;
    }
    if (sum == 0) return 0;
    const auto shared = static_cast<double>(sum);
    if (measure == WordMeasure::cosine) return shared / std::sqrt(own(a) * own(b));
    if (measure == WordMeasure::lin) return 2 * shared / (own(a) + own(b));
    return shared / (own(a) + own(b) - shared);
}

inline Agreement judge(const std::vector<Judgement>& judgements, WordMeasure measure,
                       const WordCorpus& corpus, const WordFeatures& features) {
    std::vector<double> wanted, found;
    for (const Judgement& judgement : judgements) {
        const std::uint32_t x = corpus.number_of(judgement.a), y = corpus.number_of(judgement.b);
        if (x == UINT32_MAX || y == UINT32_MAX) continue;
        wanted.push_back(judgement.score);
        found.push_back(pair_similarity(measure, features, x, y));
    }
    return {correlation(ranks(wanted), ranks(found)), wanted.size(), judgements.size()};
}

}  // namespace gputext::bench
