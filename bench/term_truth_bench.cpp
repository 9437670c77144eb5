// bench/term_truth_bench.cpp - the nearest texts of a real corpus beside those of brute force
//
// Arguments: documents.bin (bench/README.md), threads, queries, k, and optionally
// min_document_frequency. Words are what lies between bytes that are no letters of ASCII, in lower
// case. The queries are documents at equal distances, each kept from itself. Brute force computes
// every distance in double precision as cpp/terms/knn.hpp defines it, by code of its own, and sorts
// all of them.

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <numeric>
#include <string>
#include <unordered_map>

#include "bench/corpus_reader.hpp"
#include "bench/term_corpus.hpp"
#include "cpp/terms/knn.hpp"
#include "cpp/terms/tfidf.hpp"

using namespace gputext;

namespace {

/// The words of texts, numbered in the order of their first appearance, and how often each text has
/// them.
class WordCounts {
public:
    explicit WordCounts(const std::vector<std::string_view>& texts) {
        for (const std::string_view text : texts) add(text);
    }

    Vectors vectors() const {
        return {ElementType::int32,
                begins_.size() - 1,
                words_.size(),
                counts_.data(),
                begins_,
                columns_};
    }

private:
    void add(std::string_view text) {
        std::map<std::uint32_t, std::int32_t> counts;
        std::string word;
        for (std::size_t i = 0; i <= text.size(); ++i) {
            const char letter = i < text.size() ? static_cast<char>(text[i] | 32) : ' ';
            if (letter >= 'a' && letter <= 'z') {
                word += letter;
            } else if (!word.empty()) {
                const auto number = static_cast<std::uint32_t>(words_.size());
                ++counts[words_.try_emplace(word, number).first->second];
                word.clear();
            }
        }
        for (const auto& [column, count] : counts) {
            columns_.push_back(column);
            counts_.push_back(count);
        }
        begins_.push_back(columns_.size());
    }

    std::unordered_map<std::string, std::uint32_t> words_;
    std::vector<std::uint64_t> begins_{0};
    std::vector<std::uint32_t> columns_;
    std::vector<std::int32_t> counts_;
};

double sum(const double (&partial)[16]) {
    double s[16];
    std::copy(partial, partial + 16, s);
    for (const int width : {8, 4, 2, 1})
        for (int j = 0; j < width; ++j) s[j] += s[j + width];
    return s[0];
}

/// All distances of a query, which is a row of the items.
std::vector<std::pair<double, std::uint32_t>> brute_force(const Vectors& items,
                                                          const std::vector<double>& factors,
                                                          std::uint32_t query) {
    const auto* counts = static_cast<const std::int32_t*>(items.elements);
    std::vector<double> weights(items.dimensions);
    double square[16] = {};
    for (std::uint64_t i = items.row_begins[query]; i < items.row_begins[query + 1]; ++i) {
        const double weight = counts[i] * factors[items.columns[i]];
        weights[items.columns[i]] = weight;
        square[items.columns[i] % 16] += weight * weight;
    }
    const double query_square = sum(square);
    std::vector<std::pair<double, std::uint32_t>> all;
    for (std::uint32_t item = 0; item < items.rows; ++item) {
        if (item == query) continue;
        double squares[16] = {}, products[16] = {};
        bool shared = false;
        for (std::uint64_t i = items.row_begins[item]; i < items.row_begins[item + 1]; ++i) {
            const std::uint32_t term = items.columns[i];
            const double weight = counts[i] * factors[term];
            squares[term % 16] += weight * weight;
            products[term % 16] += weight * weights[term];
            shared |= weight != 0 && weights[term] != 0;
        }
        if (!shared) continue;
        const double cosine = sum(products) / std::sqrt(query_square * sum(squares));
        all.emplace_back(1 - std::clamp(cosine, -1.0, 1.0), item);
    }
    std::sort(all.begin(), all.end());
    return all;
}

}  // namespace

int main(int count, char** arguments) {
    if (count < 5)
        return std::fprintf(stderr, "wanted: documents.bin threads queries k [min_df]\n"), 2;
    const bench::Corpus corpus(arguments[1]);
    const auto threads = static_cast<unsigned>(std::atoi(arguments[2]));
    const WordCounts words(corpus.documents());
    const Vectors items = words.vectors();
    const auto asked = std::min<std::size_t>(items.rows, std::strtoull(arguments[3], nullptr, 10));
    const bench::TermRows questions = bench::TermRows::spread(items, asked);
    std::vector<std::uint32_t> numbers(items.rows);
    std::iota(numbers.begin(), numbers.end(), 0u);
    TermParameters weighting;
    if (count > 5)
        weighting.min_document_frequency = static_cast<std::uint32_t>(std::atoi(arguments[5]));
    TermKnnParameters parameters;
    parameters.k = std::strtoull(arguments[4], nullptr, 10);

    using Clock = std::chrono::steady_clock;
    const auto seconds = [](Clock::time_point from) {
        return std::chrono::duration<double>(Clock::now() - from).count();
    };
    Execution execution(threads);
    auto start = Clock::now();
    const auto factors =
        term_factors(weighting, *document_frequencies(items, execution), items.rows);
    const auto answer = term_knn(parameters, factors, questions.vectors(), items,
                                 {questions.rows(), numbers}, execution);
    const double ours = seconds(start);
    if (!answer.ok()) return std::fprintf(stderr, "%s\n", answer.status().message().c_str()), 1;

    start = Clock::now();
    std::atomic<std::size_t> different{0};
    (void)execution.parallel_for(asked, [&](std::size_t query, unsigned) {
        const auto all = brute_force(items, factors, questions.rows()[query]);
        const std::uint64_t begin = answer->begins[query], end = answer->begins[query + 1];
        bool same = end - begin == std::min(parameters.k, all.size());
        for (std::uint64_t i = begin; i < end && same; ++i)
            same = answer->items[i] == all[i - begin].second &&
                   std::bit_cast<std::uint64_t>(answer->distances[i]) ==
                       std::bit_cast<std::uint64_t>(all[i - begin].first);
        different += !same;
        return Status();
    });
    std::printf(
        "%zu documents, %zu terms, %zu elements, %zu queries, k = %zu: %zu queries differ from "
        "brute force (%.3f s, brute force %.1f s, %u threads; %.1f distances a query)\n",
        items.rows, items.dimensions, items.columns.size(), asked, parameters.k, different.load(),
        ours, seconds(start), threads,
        static_cast<double>(answer->rescored) / static_cast<double>(asked));
    return different == 0 ? 0 : 1;
}
