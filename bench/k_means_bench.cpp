// bench/k_means_bench.cpp - k-means on the CPU
//
// Arguments: items, dimensions, k, iterations, threads, clusters of the data (0: one normal
// distribution), and optionally a file to write the items to (float32, row by row).

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "bench/expect.hpp"
#include "bench/k_means_items.hpp"
#include "bench/stopwatch.hpp"
#include "cpp/knn/k_means.hpp"

using namespace gputext;

int main(int count, char** arguments) {
    if (count < 7)
        return std::fprintf(stderr,
                            "wanted: items dimensions k iterations threads clusters [items.f32]\n"),
               2;
    const auto number = [&](int i) { return static_cast<std::size_t>(std::atoll(arguments[i])); };
    const std::size_t n = number(1), d = number(2);
    const std::vector<float> items = bench::k_means_items(n, d, number(6));
    if (count > 7)
        std::ofstream(arguments[7], std::ios::binary)
            .write(reinterpret_cast<const char*>(items.data()),
                   static_cast<std::streamsize>(items.size() * sizeof(float)));
    const Vectors rows{ElementType::float32, n, d, items.data(), {}, {}};
    const KMeansParameters parameters{.k = number(3), .iterations = number(4)};
    Execution execution(static_cast<unsigned>(number(5)));
    const bench::Stopwatch stopwatch;
    const auto start = std::chrono::steady_clock::now();
    const KMeans answer = bench::expect(k_means(parameters, rows, execution));
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    const double processor = stopwatch.seconds();
    std::printf(
        "gputext k-means: %zu items of %zu clusters, d = %zu, k = %zu, %zu iterations, %u threads, "
        "%s: %.3f s, %.3f s of processors, inertia %.6g, %.1f exact distances an item\n",
        n, number(6), d, parameters.k, answer.iterations, execution.threads(),
        simd_name(best_simd()), seconds, processor, answer.inertia,
        static_cast<double>(answer.rescored) / static_cast<double>(n));
    for (const PhaseTime& phase : execution.phase_times())
        std::printf("  %-26s %7.3f s\n", phase.name.c_str(), phase.seconds);
}
