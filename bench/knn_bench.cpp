// bench/knn_bench.cpp - exact nearest neighbors on the CPU
//
// Arguments: items, queries, dimensions, k, metric (euclidean, cosine, inner_product, manhattan),
// threads, and optionally files of items and queries (float32, row by row) in place of random ones,
// and a file to write the items' numbers to (int64, k for each query). SIMD in the environment is
// the instruction set to take: portable, avx2, avx512 or amx in place of the best one.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "bench/stopwatch.hpp"
#include "bench/vector_files.hpp"
#include "cpp/knn/knn.hpp"

using namespace gputext;

namespace {

Metric metric_named(const char* name) {
    if (std::strcmp(name, "euclidean") == 0) return Metric::euclidean;
    if (std::strcmp(name, "cosine") == 0) return Metric::cosine;
    if (std::strcmp(name, "manhattan") == 0) return Metric::manhattan;
    return Metric::inner_product;
}

Simd simd_from_environment() {
    const char* wanted = std::getenv("SIMD");
    for (const Simd simd : {Simd::portable, Simd::avx2, Simd::avx512, Simd::bfloat16, Simd::amx})
        if (wanted != nullptr && std::strcmp(wanted, simd_name(simd)) == 0 && simd_available(simd))
            return simd;
    return best_simd_with_bfloat16();
}

}  // namespace

int main(int count, char** arguments) {
    if (count < 7)
        return std::fprintf(stderr,
                            "wanted: items queries dimensions k metric threads "
                            "[items.f32 queries.f32 [answer.i64]]\n"),
               2;
    const auto number = [&](int i) { return static_cast<std::size_t>(std::atoll(arguments[i])); };
    const std::size_t n = number(1), q = number(2), d = number(3), k = number(4);
    const std::vector<float> items = bench::floats(n * d, 1, count > 8 ? arguments[7] : nullptr);
    const std::vector<float> queries = bench::floats(q * d, 2, count > 8 ? arguments[8] : nullptr);
    const Vectors item_rows{ElementType::float32, n, d, items.data(), {}, {}};
    const Vectors query_rows{ElementType::float32, q, d, queries.data(), {}, {}};
    const KnnParameters parameters{
        .k = k, .metric = metric_named(arguments[5]), .simd = simd_from_environment()};

    double best = 1e9, processor = 1e9;
    Neighbors answer;
    std::vector<PhaseTime> phases;
    for (int run = 0; run < 5; ++run) {
        Execution execution(static_cast<unsigned>(number(6)));
        const bench::Stopwatch stopwatch;
        const auto start = std::chrono::steady_clock::now();
        auto result = knn(parameters, query_rows, item_rows, {}, execution);
        const double seconds =
            std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        processor = std::min(processor, stopwatch.seconds());
        if (!result.ok()) return std::fprintf(stderr, "%s\n", result.status().message().c_str()), 1;
        if (seconds >= best) continue;
        best = seconds;
        phases = execution.phase_times();
        answer = std::move(*result);
    }
    std::printf(
        "gputext %s: %zu items, %zu queries, d = %zu, k = %zu, %zu threads, %s: %.4f s, "
        "%.4f s of processors (best of 5), %.1f GFLOP/s, %.1f distances a query, %llu queries "
        "escalated\n",
        arguments[5], n, q, d, k, number(6), simd_name(parameters.simd), best, processor,
        2e-9 * static_cast<double>(n * q * d) / best,
        static_cast<double>(answer.rescored) / static_cast<double>(q),
        static_cast<unsigned long long>(answer.escalated));
    for (const auto& [phase, seconds] : phases)
        std::printf("  %-22s %7.3f s\n", phase.c_str(), seconds);
    if (count < 10) return 0;
    const std::vector<std::int64_t> wide(answer.items.begin(), answer.items.end());
    std::ofstream(arguments[9], std::ios::binary)
        .write(reinterpret_cast<const char*>(wide.data()),
               static_cast<std::streamsize>(wide.size() * sizeof(std::int64_t)));
}
