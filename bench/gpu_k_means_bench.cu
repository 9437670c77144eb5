// bench/gpu_k_means_bench.cu - k-means with nearest centroids found on a GPU
//
// Arguments: items, dimensions, k, iterations, clusters of the data (0: one normal distribution),
// and 1 to compare the answer with the CPU's.

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "bench/expect.hpp"
#include "bench/gpu_resources.hpp"
#include "bench/k_means_items.hpp"
#include "kernels/knn/k_means.hpp"

using namespace gputext;

namespace {

constexpr int kTries = 3;

std::size_t bytes_of_device() {
    std::size_t available = 0, total = 0;
    bench::check(cuda_status(cudaMemGetInfo(&available, &total), "the benchmark"));
    return available / 2;
}

}  // namespace

int main(int count, char** arguments) {
    if (count < 6)
        return std::fprintf(stderr, "wanted: items dimensions k iterations clusters [compare]\n"),
               2;
    const auto number = [&](int i) { return static_cast<std::size_t>(std::atoll(arguments[i])); };
    const std::size_t n = number(1), d = number(2);
    const std::vector<float> items = bench::k_means_items(n, d, number(5));
    const Vectors rows{ElementType::float32, n, d, items.data(), {}, {}};
    const KMeansParameters parameters{.k = number(3), .iterations = number(4)};
    const gpu::DeviceWork work{bench::stream(), bytes_of_device()};
    const auto run = [&] {
        return bench::expect(
            gpu::k_means(parameters, rows, work, bench::ring(), bench::every_core()));
    };
    double best = 1e9;
    KMeans answer;
    for (int tries = 0; tries < kTries; ++tries) {
        const bench::Clock clock;
        answer = run();
        best = std::min(best, clock.seconds());
    }
    std::printf(
        "gputext k-means on a GPU: %zu items of %zu clusters, d = %zu, k = %zu, %zu iterations: "
        "%.3f s (best of %d), inertia %.6g, %.1f exact distances an item\n",
        n, number(5), d, parameters.k, answer.iterations, best, kTries, answer.inertia,
        static_cast<double>(answer.rescored) / static_cast<double>(n));
    for (const PhaseTime& phase : bench::every_core().phase_times())
        std::printf("  %-26s %7.3f s (mean)\n", phase.name.c_str(), phase.seconds / kTries);
    if (count < 7 || number(6) == 0) return 0;
    const KMeans wanted = bench::expect(k_means(parameters, rows, bench::every_core()));
    std::size_t differing = 0;
    for (std::size_t i = 0; i < n; ++i)
        differing +=
            answer.clusters[i] != wanted.clusters[i] || answer.distances[i] != wanted.distances[i];
    std::printf("  %zu items and %s centroids differ from the CPU's\n", differing,
                answer.centroids == wanted.centroids ? "no" : "some");
}
