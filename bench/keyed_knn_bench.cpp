// bench/keyed_knn_bench.cpp - exact nearest neighbors within equal keys on the CPU
//
// Arguments: items, queries, keys, skew, dimensions, k, metric (euclidean, cosine, inner_product,
// manhattan), threads. A row's key is keys * u^skew for a uniform u: skew 1 is uniform, 2 gives the
// first keys most rows. Random rows and keys, from fixed seeds.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>

#include "bench/stopwatch.hpp"
#include "bench/vector_files.hpp"
#include "cpp/knn/keyed_knn.hpp"

using namespace gputext;

namespace {

Metric metric_named(const char* name) {
    if (std::strcmp(name, "euclidean") == 0) return Metric::euclidean;
    if (std::strcmp(name, "cosine") == 0) return Metric::cosine;
    if (std::strcmp(name, "manhattan") == 0) return Metric::manhattan;
    return Metric::inner_product;
}

std::vector<std::uint32_t> random_keys(std::size_t rows, double keys, double skew, unsigned seed) {
    std::mt19937_64 generator(seed);
    std::uniform_real_distribution<double> uniform;
    std::vector<std::uint32_t> numbers(rows);
    for (std::uint32_t& number : numbers)
        number = static_cast<std::uint32_t>(keys * std::pow(uniform(generator), skew));
    return numbers;
}

}  // namespace

int main(int count, char** arguments) {
    if (count != 9)
        return std::fprintf(stderr,
                            "wanted: items queries keys skew dimensions k metric threads\n"),
               2;
    const auto number = [&](int i) { return static_cast<std::size_t>(std::atoll(arguments[i])); };
    const std::size_t n = number(1), q = number(2), d = number(5), k = number(6);
    const double keys = std::atof(arguments[3]), skew = std::atof(arguments[4]);
    const std::vector<float> items = bench::floats(n * d, 1, nullptr);
    const std::vector<float> queries = bench::floats(q * d, 2, nullptr);
    const auto item_keys = random_keys(n, keys, skew, 3),
               query_keys = random_keys(q, keys, skew, 4);
    const Vectors item_rows{ElementType::float32, n, d, items.data(), {}, {}};
    const Vectors query_rows{ElementType::float32, q, d, queries.data(), {}, {}};
    KnnParameters parameters;
    parameters.k = k;
    parameters.metric = metric_named(arguments[7]);

    double best = 1e9, processor = 1e9;
    std::size_t neighbors = 0;
    std::uint64_t rescored = 0;
    std::vector<PhaseTime> phases;
    for (int run = 0; run < 3; ++run) {
        Execution execution(static_cast<unsigned>(number(8)));
        const bench::Stopwatch stopwatch;
        const auto start = std::chrono::steady_clock::now();
        const auto found =
            keyed_knn(parameters, query_rows, item_rows, {query_keys, item_keys}, {}, execution);
        const double seconds =
            std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        processor = std::min(processor, stopwatch.seconds());
        if (!found.ok()) return std::fprintf(stderr, "%s\n", found.status().message().c_str()), 1;
        neighbors = found->items.size();
        rescored = found->rescored;
        if (seconds >= best) continue;
        best = seconds;
        phases = execution.phase_times();
    }
    Execution execution(static_cast<unsigned>(number(8)));
    const auto groups = group_by_key({query_keys, item_keys}, execution);
    if (!groups.ok()) return 1;
    std::printf(
        "gputext %s: %zu items, %zu queries, %zu keys on both sides, %llu pairs, d = %zu, k = %zu, "
        "%zu threads: %.4f s, %.4f s of processors (best of 3), %zu neighbors, %llu exact "
        "distances\n",
        arguments[7], n, q, groups->size(), static_cast<unsigned long long>(groups->pairs()), d, k,
        number(8), best, processor, neighbors, static_cast<unsigned long long>(rescored));
    for (const auto& [phase, seconds] : phases)
        std::printf("  %-22s %7.3f s\n", phase.c_str(), seconds);
}
