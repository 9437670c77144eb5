// bench/word_similarity_bench.cpp - a thesaurus of a file of words on the CPU
//
// Arguments: the file, a line a text, and name=value for
//
//     threads (2), runs (3, of which the best counts)
//     window (3), positions (1), min_count (5), vocabulary (all)
//     weight (lin, ppmi, count), discount (0.95), features (0: all)
//     measure (lin, cosine, jaccard), top (100), memory (1024 MiB), simd (the best)
//     gold    a file of pairs of words and their similarity by people's judgement, between tabs:
//             Spearman's correlation with it, and no thesaurus unless a run is asked for
//     out     a file to write the thesaurus to: word, neighbors and similarities between tabs
//     peer    1: the same by a plain inverted index with sums in float, a row after the other

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <numeric>
#include <string>

#include <sys/resource.h>

#include "bench/expect.hpp"
#include "bench/options.hpp"
#include "bench/stopwatch.hpp"
#include "bench/word_corpus.hpp"
#include "bench/word_judgements.hpp"
#include "cpp/thesaurus/word_similarity.hpp"

using namespace gputext;
using bench::expect;
using bench::Options;

namespace {

double now() {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

void print_phases(const Execution& execution) {
    for (const PhaseTime& phase : execution.phase_times())
        if (phase.seconds >= 0.0005)
            std::printf("    %-22s %8.3f s\n", phase.name.c_str(), phase.seconds);
}

/// The least seconds of `runs`, with the phases of the first; and what the work returns.
template <class Work>
auto best_of(int runs, unsigned threads, const char* what, Work work) {
    decltype(work(std::declval<Execution&>())) answer;
    double best = 1e9, processor = 1e9;
    for (int run = 0; run < runs; ++run) {
        answer = {};
        Execution execution(threads);
        const bench::Stopwatch stopwatch;
        const double begin = now();
        answer = work(execution);
        best = std::min(best, now() - begin);
        processor = std::min(processor, stopwatch.seconds());
        if (run + 1 < runs) continue;
        std::printf("  %-24s %8.3f s, %8.3f s of processors (best of %d); of the last run:\n", what,
                    best, processor, runs);
        print_phases(execution);
    }
    return answer;
}

/// The word with all others by lists of all features, with nothing tiled, dense or symmetric.
Thesaurus plain_index(std::uint32_t top_k, WordMeasure measure, const WordFeatures& features,
                      Execution& execution) {
    struct Posting {
        std::uint32_t word;
        float weight;
    };
    const std::uint32_t words = features.shape.words;
    std::vector<std::uint64_t> begins(features.shape.columns() + 1);
    for (const std::uint32_t column : features.columns) ++begins[column + 1];
    std::partial_sum(begins.begin(), begins.end(), begins.begin());
    std::vector<Posting> postings(features.columns.size());
    std::vector<float> sums(words);
    std::vector<std::uint64_t> next(begins.begin(), begins.end() - 1);
    for (std::uint32_t word = 0; word < words; ++word)
        for (auto i = features.begins[word]; i < features.begins[word + 1]; ++i) {
            const float weight = features.weights[i];
            postings[next[features.columns[i]]++] = {word, weight};
            sums[word] += measure == WordMeasure::lin ? weight : weight * weight;
        }
    execution.begin_phase("plain index", words);
    struct Scratch {
        std::vector<float> sums;
        std::vector<std::pair<float, std::uint32_t>> all;
    };
    std::vector<Scratch> scratch(execution.threads());
    Thesaurus answer;
    answer.neighbors.resize(std::size_t{words} * top_k);
    answer.similarities.resize(std::size_t{words} * top_k);
    (void)execution.parallel_for(words, [&](std::size_t word, unsigned worker) {
        auto& [shared, all] = scratch[worker];
        shared.assign(words, 0);
        for (auto i = features.begins[word]; i < features.begins[word + 1]; ++i) {
            const Posting* p = postings.data() + begins[features.columns[i]];
            const Posting* const end = postings.data() + begins[features.columns[i] + 1];
            const float weight = features.weights[i];
            if (measure == WordMeasure::lin)
                for (; p < end; ++p) shared[p->word] += weight + p->weight;
            else
                for (; p < end; ++p) shared[p->word] += weight * p->weight;
        }
        all.clear();
        for (std::uint32_t other = 0; other < words; ++other) {
            if (shared[other] == 0 || other == word) continue;
            const float size = measure == WordMeasure::lin ? sums[word] + sums[other]
                                                           : std::sqrt(sums[word] * sums[other]);
            all.emplace_back(-shared[other] / size, other);
        }
        const std::size_t kept = std::min<std::size_t>(top_k, all.size());
        std::partial_sort(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(kept), all.end());
        for (std::size_t i = 0; i < kept; ++i) {
            answer.neighbors[word * top_k + i] = all[i].second;
            answer.similarities[word * top_k + i] = -all[i].first;
        }
        return Status();
    });
    return answer;
}

}  // namespace

int main(int count, char** arguments) {
    if (count < 2) return std::fprintf(stderr, "wanted: FILE [name=value ..]\n"), 2;
    const Options options(count, arguments);
    const auto threads = options.whole<unsigned>("threads", 2);
    const std::string gold = options.text("gold");
    const auto runs = options.whole<int>("runs", gold.empty() ? 3 : 0);
    const std::map<std::string, WordWeight> weights{
        {"lin", WordWeight::lin}, {"ppmi", WordWeight::ppmi}, {"count", WordWeight::count}};
    const std::map<std::string, WordMeasure> measures{{"lin", WordMeasure::lin},
                                                      {"cosine", WordMeasure::cosine},
                                                      {"jaccard", WordMeasure::jaccard}};
    CooccurrenceShape shape;
    shape.window = options.whole<std::uint32_t>("window", 3);
    shape.positions = options.whole<int>("positions", 1) != 0;
    const double begin = now();
    const bench::WordCorpus corpus(arguments[1], shape.window,
                                   options.whole<std::uint64_t>("min_count", 5),
                                   options.whole<std::size_t>("vocabulary", UINT32_MAX));
    shape.words = static_cast<std::uint32_t>(corpus.names.size());
    const WeightParameters weighing{weights.at(options.text("weight", "lin")),
                                    options.number("discount", 0.95),
                                    options.whole<std::uint64_t>("features", 0)};
    SimilarityParameters parameters;
    parameters.measure = measures.at(options.text("measure", "lin"));
    parameters.top_k = options.whole<std::uint32_t>("top", 100);
    parameters.memory_limit = options.whole<std::size_t>("memory", 1024) << 20;
    for (const Simd simd : {Simd::portable, Simd::avx2, Simd::avx512})
        if (options.text("simd") == simd_name(simd)) parameters.simd = simd;

    std::printf("measure %s, weight %s, discount %g, window %u, %s, %s columns, %u threads, %s\n",
                options.text("measure", "lin").c_str(), options.text("weight", "lin").c_str(),
                weighing.discount, shape.window, shape.positions ? "positions" : "no positions",
                weighing.features == 0 ? "all" : options.text("features").c_str(), threads,
                simd_name(parameters.simd));
    std::printf("  %zu words, %llu of them in the text, %zu of the vocabulary; reading %.1f s\n",
                corpus.names.size(), static_cast<unsigned long long>(corpus.all),
                corpus.stream().words.size(), now() - begin);

    const int few = std::max(1, runs);
    const auto counts = best_of(few, threads, "counting", [&](Execution& execution) {
        return expect(count_cooccurrences(shape, corpus.stream(), std::size_t{1} << 30, execution));
    });
    const auto features = best_of(few, threads, "weighing", [&](Execution& execution) {
        return expect(weigh_features(weighing, counts, execution));
    });
    std::vector<std::uint64_t> frequencies(shape.columns());
    for (const std::uint32_t column : features.columns) ++frequencies[column];
    double squares = 0;
    for (const std::uint64_t n : frequencies)
        squares += static_cast<double>(n) * static_cast<double>(n);
    std::printf("  %zu counts, %zu features, sum of squares of words a feature %.3g\n",
                counts.stored(), features.columns.size(), squares);
    if (!gold.empty()) {
        const auto agreement =
            bench::judge(bench::read_judgements(gold), parameters.measure, corpus, features);
        std::printf("  Spearman %.3f of %zu of %zu pairs of %s\n", agreement.spearman,
                    agreement.found, agreement.pairs, gold.c_str());
    }
    if (runs == 0) return 0;

    const Thesaurus answer = best_of(runs, threads, "comparing", [&](Execution& execution) {
        return expect(word_similarities(parameters, features, execution));
    });
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    std::printf("  %zu neighbors; at most %ld MiB, of comparing %.0f stated\n",
                answer.neighbors.size(), usage.ru_maxrss / 1024,
                static_cast<double>(similarity_bytes(parameters, shape, features.columns.size())) /
                    1048576);
    if (options.whole<int>("peer", 0) != 0) {
        const Thesaurus plain = best_of(1, threads, "plain index", [&](Execution& execution) {
            return plain_index(parameters.top_k, parameters.measure, features, execution);
        });
        std::size_t different = 0;
        for (std::uint32_t word = 0; word < shape.words; ++word)
            for (auto i = answer.begins[word]; i < answer.begins[word + 1]; ++i)
                different +=
                    answer.neighbors[i] !=
                    plain
                        .neighbors[std::size_t{word} * parameters.top_k + i - answer.begins[word]];
        std::printf("  %zu of its neighbors are others, as floats round\n", different);
    }
    if (options.text("out").empty()) return 0;
    std::ofstream out(options.text("out"));
    for (std::uint32_t word = 0; word < shape.words; ++word) {
        out << corpus.names[word];
        for (auto i = answer.begins[word]; i < answer.begins[word + 1]; ++i)
            out << '\t' << corpus.names[answer.neighbors[i]] << ' ' << answer.similarities[i];
        out << '\n';
    }
}
