#include "cpp/word_similarity.hpp"

#include <algorithm>
#include <cmath>
#include <new>
#include <string>
#include <utility>

#include "cpp/stoppable.hpp"

namespace gputext {
namespace {

Status invalid(std::string message) {
    return {ErrorCode::invalid_argument, std::move(message)};
}

/// What a measure needs to know of each word.
std::uint64_t sum_of_row(WordMeasure measure, const WordFeatures& features, std::uint32_t word) {
    std::uint64_t sum = 0;
    for (auto i = features.begins[word]; i < features.begins[word + 1]; ++i) {
        const std::uint64_t weight = features.weights[i];
        sum += measure == WordMeasure::lin      ? weight
               : measure == WordMeasure::cosine ? weight * weight
                                                : 1;
    }
    return sum;
}

double similarity(WordMeasure measure, std::uint64_t shared, std::uint64_t a, std::uint64_t b) {
    if (shared == 0) return 0;
    const auto numerator = static_cast<double>(shared);
    if (measure == WordMeasure::lin) return numerator / static_cast<double>(a + b);
    if (measure == WordMeasure::jaccard) return numerator / static_cast<double>(a + b - shared);
    return numerator / std::sqrt(static_cast<double>(a) * static_cast<double>(b));
}

std::uint64_t shared_by(WordMeasure measure, std::uint64_t a, std::uint64_t b) {
    return measure == WordMeasure::lin ? a + b : measure == WordMeasure::cosine ? a * b : 1;
}

}  // namespace

double pair_similarity(WordMeasure measure, const WordFeatures& features, std::uint32_t a,
                       std::uint32_t b) {
    std::uint64_t shared = 0;
    auto i = features.begins[a], j = features.begins[b];
    while (i < features.begins[a + 1] && j < features.begins[b + 1]) {
        if (features.columns[i] < features.columns[j])
            ++i;
        else if (features.columns[i] > features.columns[j])
            ++j;
        else
            shared += shared_by(measure, features.weights[i++], features.weights[j++]);
    }
    return similarity(measure, shared, sum_of_row(measure, features, a),
                      sum_of_row(measure, features, b));
}

Result<Thesaurus> word_similarities(const SimilarityParameters& parameters,
                                    const WordFeatures& features, Execution& execution) try {
    const std::uint32_t words = features.shape.words;
    if (parameters.top_k < 1) return invalid("top_k must be at least 1");
    if (features.begins.size() != std::size_t{words} + 1 ||
        features.begins.back() != features.columns.size() ||
        features.weights.size() != features.columns.size())
        return invalid("there must be a row of features for each word");
    std::vector<std::uint64_t> sums(words);
    for (std::uint32_t word = 0; word < words; ++word) {
        sums[word] = sum_of_row(parameters.measure, features, word);
        if (sums[word] >> 53 != 0)
            return invalid("the squares of a word's weights add up to more than 2^53");
    }
    // For each feature the words that have it.
    std::vector<std::uint64_t> begins(features.shape.columns() + 1);
    for (const std::uint32_t column : features.columns) ++begins[column + 1];
    for (std::size_t column = 0; column + 1 < begins.size(); ++column)
        begins[column + 1] += begins[column];
    std::vector<std::pair<std::uint32_t, std::uint16_t>> postings(features.columns.size());
    std::vector<std::uint64_t> next(begins.begin(), begins.end() - 1);
    for (std::uint32_t word = 0; word < words; ++word)
        for (auto i = features.begins[word]; i < features.begins[word + 1]; ++i)
            postings[next[features.columns[i]]++] = {word, features.weights[i]};

    using Neighbour = std::pair<double, std::uint32_t>;
    std::vector<std::vector<Neighbour>> lists(words);
    const std::uint32_t end = std::min(parameters.end, words);
    const std::uint32_t first = std::min(parameters.first, end);
    execution.begin_phase("comparing words", end - first);
    std::vector<std::vector<std::uint64_t>> scratch(execution.threads());
    Status status = execution.parallel_for(end - first, [&](std::size_t task, unsigned worker) {
        const auto word = static_cast<std::uint32_t>(first + task);
        scratch[worker].assign(words, 0);
        for (auto i = features.begins[word]; i < features.begins[word + 1]; ++i)
            for (auto p = begins[features.columns[i]]; p < begins[features.columns[i] + 1]; ++p)
                scratch[worker][postings[p].first] +=
                    shared_by(parameters.measure, features.weights[i], postings[p].second);
        std::vector<Neighbour> all;
        for (std::uint32_t other = 0; other < words; ++other)
            if (other != word && scratch[worker][other] != 0)
                all.emplace_back(
                    similarity(parameters.measure, scratch[worker][other], sums[word], sums[other]),
                    other);
        const auto better = [](const Neighbour& a, const Neighbour& b) {
            return a.first != b.first ? a.first > b.first : a.second < b.second;
        };
        const auto kept = std::min<std::size_t>(parameters.top_k, all.size());
        std::partial_sort(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(kept), all.end(),
                          better);
        lists[word].assign(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(kept));
        return Status();
    });
    if (!status.ok()) return status;
    Thesaurus answer;
    answer.begins.push_back(0);
    for (const auto& list : lists) {
        for (const auto& [value, neighbour] : list) {
            answer.neighbours.push_back(neighbour);
            answer.similarities.push_back(value);
        }
        answer.begins.push_back(answer.neighbours.size());
    }
    return answer;
} catch (const std::bad_alloc&) {
    return Status::out_of_memory();
}

std::uint64_t similarity_bytes(const SimilarityParameters& parameters, std::uint32_t words,
                               std::uint64_t stored) {
    const std::uint64_t rows =
        std::min(parameters.end, words) - std::min({parameters.first, parameters.end, words});
    const std::uint64_t answer = rows * std::min(parameters.top_k, words);
    return 28 * answer + 8 * stored + 16 * std::uint64_t{words};
}

}  // namespace gputext
