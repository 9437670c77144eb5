// bench/term_knn_bench.cpp - the nearest texts by tf-idf on the CPU
//
// Arguments: the shape (medline, pubmed), threads, queries, k, and optionally a factor of the size
// (1), and a directory to write the matrices to for the peers, with the answer's distances.
// The queries are documents of the corpus at equal distances, each kept from itself.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <numeric>
#include <string>

#include "bench/stopwatch.hpp"
#include "bench/term_corpus.hpp"
#include "cpp/terms/knn.hpp"
#include "cpp/terms/tfidf.hpp"

using namespace gputext;

namespace {

template <class T>
void write(const std::string& path, std::span<const T> values) {
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(values.data()),
               static_cast<std::streamsize>(values.size_bytes()));
}

void write(const std::string& prefix, const Vectors& counts) {
    const std::uint64_t stored = counts.row_begins.back();
    write<std::uint64_t>(prefix + ".begins", counts.row_begins);
    write<std::uint32_t>(prefix + ".columns", counts.columns);
    write<std::int32_t>(prefix + ".counts",
                        {static_cast<const std::int32_t*>(counts.elements), stored});
}

double since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

int main(int count, char** arguments) {
    bench::TermShape shape = count < 5 ? bench::TermShape{} : bench::term_shape_named(arguments[1]);
    if (shape.documents == 0)
        return std::fprintf(stderr, "wanted: medline|pubmed threads queries k [factor [dir]]\n"), 2;
    if (count > 5) shape = shape.scaled(std::atof(arguments[5]));
    const auto threads = static_cast<unsigned>(std::atoi(arguments[2]));
    const auto asked = static_cast<std::size_t>(std::atoll(arguments[3]));

    const bench::TermCorpus corpus(shape, threads);
    const Vectors items = corpus.vectors();
    const bench::TermRows questions = bench::TermRows::spread(items, asked);
    const Vectors queries = questions.vectors();
    std::vector<std::uint32_t> item_keys(items.rows);
    std::iota(item_keys.begin(), item_keys.end(), 0u);
    const RowKeys keys{questions.rows(), item_keys};
    TermKnnParameters parameters;
    parameters.k = static_cast<std::size_t>(std::atoll(arguments[4]));

    double best = 1e9, processor = 1e9, weighing = 1e9;
    Neighbors answer;
    std::vector<double> factors;
    std::vector<PhaseTime> phases;
    for (int run = 0; run < 3; ++run) {
        Execution execution(threads);
        const bench::Stopwatch stopwatch;
        const auto start = std::chrono::steady_clock::now();
        const auto frequencies = document_frequencies(items, execution);
        factors = term_factors({}, *frequencies, items.rows);
        weighing = std::min(weighing, since(start));
        auto result = term_knn(parameters, factors, queries, items, keys, execution);
        const double seconds = since(start);
        processor = std::min(processor, stopwatch.seconds());
        if (!result.ok()) return std::fprintf(stderr, "%s\n", result.status().message().c_str()), 1;
        if (seconds >= best) continue;
        best = seconds;
        phases = execution.phase_times();
        answer = std::move(*result);
    }
    std::printf(
        "gputext %s: %zu documents, %zu terms, %zu elements, %zu queries, k = %zu, %u threads, "
        "%s: %.3f s, %.3f s of processors (best of 3), %.1f distances a query\n",
        arguments[1], shape.documents, shape.terms, shape.stored, asked, parameters.k, threads,
        simd_name(best_simd()), best, processor,
        static_cast<double>(answer.rescored) / static_cast<double>(asked));
    for (const PhaseTime& phase : phases)
        if (phase.seconds >= 0.0005)
            std::printf("  %-22s %8.3f s, %10.1f us a query\n", phase.name.c_str(), phase.seconds,
                        1e6 * phase.seconds / static_cast<double>(asked));
    if (count < 7) return 0;
    const std::string directory = arguments[6];
    write(directory + "/items", items);
    write(directory + "/queries", queries);
    write<std::uint32_t>(directory + "/rows", questions.rows());
    write<double>(directory + "/factors", factors);
    write<double>(directory + "/distances", answer.distances);
}
