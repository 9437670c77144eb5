// bench/dbscan_bench.cpp - clusters by distance (DBSCAN) on the CPU
//
// Arguments: rows, dimensions, epsilon, min_points, metric (euclidean, cosine, manhattan), threads,
// rows in a group, spread of a group, and optionally files to write the rows to (float32, row by
// row) and their clusters (int32, -1 for noise). The rows are those of bench/grouped_rows.hpp.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <vector>

#include "bench/expect.hpp"
#include "bench/grouped_rows.hpp"
#include "bench/stopwatch.hpp"
#include "cpp/knn/dbscan.hpp"

using namespace gputext;

namespace {

constexpr int kRuns = 3;

template <class T>
void write_all(const char* file, const std::vector<T>& values) {
    std::ofstream(file, std::ios::binary)
        .write(reinterpret_cast<const char*>(values.data()),
               static_cast<std::streamsize>(values.size() * sizeof(T)));
}

Metric metric_named(const char* name) {
    if (std::strcmp(name, "cosine") == 0) return Metric::cosine;
    return std::strcmp(name, "manhattan") == 0 ? Metric::manhattan : Metric::euclidean;
}

}  // namespace

int main(int count, char** arguments) {
    if (count < 9)
        return std::fprintf(stderr,
                            "wanted: rows dimensions epsilon min_points metric threads per_group "
                            "spread [rows.f32 clusters.i32]\n"),
               2;
    const auto number = [&](int i) { return static_cast<std::size_t>(std::atoll(arguments[i])); };
    const std::size_t n = number(1), d = number(2);
    const auto threads = static_cast<unsigned>(number(6));
    const std::vector<float> elements =
        bench::grouped_rows(n, d, number(7), std::strtof(arguments[8], nullptr), threads);
    const Vectors rows{ElementType::float32, n, d, elements.data(), {}, {}};
    const DbscanParameters parameters{std::atof(arguments[3]), number(4),
                                      metric_named(arguments[5])};
    double best = 1e9, processor = 1e9;
    DbscanClusters answer;
    std::vector<PhaseTime> phases;
    for (int run = 0; run < kRuns; ++run) {
        Execution execution(threads);
        const bench::Stopwatch stopwatch;
        const auto start = std::chrono::steady_clock::now();
        answer = bench::expect(dbscan(parameters, rows, execution));
        const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
        if (elapsed.count() < best) phases = execution.phase_times();
        best = std::min(best, elapsed.count());
        processor = std::min(processor, stopwatch.seconds());
    }
    const auto noise = std::count(answer.clusters.begin(), answer.clusters.end(),
                                  DbscanClusters::kNoise);
    const auto core = std::count(answer.core.begin(), answer.core.end(), 1);
    std::printf(
        "gputext dbscan: %zu rows, d = %zu, epsilon = %g, min_points = %zu, %s, %u threads, %s: "
        "%u clusters, %td core, %td noise: %.4f s, %.4f s of processors (best of %d)\n",
        n, d, parameters.epsilon, parameters.min_points, arguments[5], threads,
        simd_name(parameters.simd), answer.count, core, noise, best, processor, kRuns);
    for (const PhaseTime& phase : phases)
        std::printf("  %-26s %9.2f ms\n", phase.name.c_str(), 1e3 * phase.seconds);
    if (count < 11) return 0;
    write_all(arguments[9], elements);
    // Noise, the largest number, becomes -1.
    write_all(arguments[10], answer.clusters);
}
