// bench/word_movers_bench.cpp - Word Mover's Distances and sequences' probabilities on the CPU
//
// Arguments: pairs, words, dimensions, threads, and optionally a directory to write the pairs and
// their distances to, for bench/peers/pot_movers.py and scipy_movers.py. Pairs are of up to so many
// different words on each side, with counts of 1 to 3, over a model of random vectors; as many
// mutants of small programs follow.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "bench/movers_corpus.hpp"
#include "cpp/embeddings/sequence_probability.hpp"
#include "cpp/embeddings/word_movers.hpp"

using namespace gputext;

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

[[noreturn]] void give_up(const Status& status) {
    std::fprintf(stderr, "%s\n", status.message().c_str());
    std::exit(1);
}

/// The distances, and the best of three runs.
std::vector<double> measure(const MoversParameters& parameters, const WordVectors& vectors,
                            const TextPairs& pairs, unsigned threads, double& best) {
    std::vector<double> distances;
    best = 1e9;
    for (int run = 0; run < 3; ++run) {
        Execution execution(threads);
        const auto start = Clock::now();
        auto found = word_movers_distances(parameters, vectors, pairs, execution);
        best = std::min(best, seconds_since(start));
        if (!found.ok()) give_up(found.status());
        distances = std::move(*found);
    }
    return distances;
}

void move_words(std::size_t count, std::uint32_t words, std::size_t dimensions, unsigned threads,
                const char* directory) {
    const auto elements = bench::random_vectors(bench::kVocabulary, dimensions, 1);
    const WordVectors vectors{elements.data(), bench::kVocabulary, dimensions};
    const bench::Pairs pairs = bench::random_pairs(count, words, 1);
    MoversParameters parameters;
    double exact = 0, relaxed = 0;
    const auto distances = measure(parameters, vectors, pairs.view(), threads, exact);
    parameters.method = MoversMethod::relaxed;
    const auto bounds = measure(parameters, vectors, pairs.view(), threads, relaxed);
    std::size_t above = 0;
    for (std::size_t i = 0; i < count; ++i) above += bounds[i] > distances[i];
    std::printf(
        "gputext word movers: %zu pairs of up to %u words, d = %zu, %u threads, %s: exact %.2f us "
        "a "
        "pair, relaxed %.2f us (best of 3); %zu bounds above the distance\n",
        count, words, dimensions, threads, simd_name(best_simd()),
        1e6 * exact / static_cast<double>(count), 1e6 * relaxed / static_cast<double>(count),
        above);
    if (directory != nullptr) bench::write_pairs(directory, vectors, pairs.view(), distances);
}

void score_mutants(std::size_t count, unsigned threads) {
    const auto vectors = bench::random_vectors(bench::kLines, bench::kLineDimensions, 0.3f);
    const WordVectors view{vectors.data(), bench::kLines, bench::kLineDimensions};
    std::mt19937 random(5);
    std::vector<std::uint64_t> begins{0};
    std::vector<std::uint32_t> tokens;
    bench::Pairs pairs;
    for (std::size_t i = 0; i < count; ++i) {
        auto reference = bench::random_program(random);
        auto mutant = reference;
        bench::mutate(mutant, random);
        tokens.insert(tokens.end(), mutant.begin(), mutant.end());
        begins.push_back(tokens.size());
        pairs.append(mutant, reference);
    }
    double moved = 0, likely = 1e9;
    measure({}, view, pairs.view(), threads, moved);
    for (int run = 0; run < 3; ++run) {
        Execution execution(threads);
        const auto start = Clock::now();
        const auto found =
            sequence_probabilities({view, view}, {begins, tokens}, best_simd(), execution);
        likely = std::min(likely, seconds_since(start));
        if (!found.ok()) give_up(found.status());
    }
    std::printf("%zu mutants, %u lines, d = %zu: Prob %.1f ms, Dist %.1f ms (best of 3)\n", count,
                bench::kLines, bench::kLineDimensions, 1e3 * likely, 1e3 * moved);
}

}  // namespace

int main(int count, char** arguments) {
    if (count < 5)
        return std::fprintf(stderr, "wanted: pairs words dimensions threads [directory]\n"), 2;
    const auto number = [&](int i) { return static_cast<std::size_t>(std::atoll(arguments[i])); };
    const auto threads = static_cast<unsigned>(number(4));
    move_words(number(1), static_cast<std::uint32_t>(number(2)), number(3), threads,
               count > 5 ? arguments[5] : nullptr);
    score_mutants(number(1), threads);
}
