// bench/lof_bench.cpp - local outlier factors on the CPU
//
// Arguments: items, dimensions, k, threads, and optionally a file of items (float32, row by row) in
// place of random ones, and a file to write the factors to (float64).

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "bench/stopwatch.hpp"
#include "bench/vector_files.hpp"
#include "cpp/knn/outlier_factor.hpp"

using namespace gputext;

int main(int count, char** arguments) {
    if (count < 5)
        return std::fprintf(stderr, "wanted: items dimensions k threads [items.f32 [lof.f64]]\n"),
               2;
    const auto number = [&](int i) { return static_cast<std::size_t>(std::atoll(arguments[i])); };
    const std::size_t n = number(1), d = number(2);
    const auto elements = bench::floats(n * d, 1, count > 5 ? arguments[5] : nullptr);
    const Vectors items{ElementType::float32, n, d, elements.data(), {}, {}};
    double best = 1e9, processor = 1e9;
    std::vector<double> factors;
    for (int run = 0; run < 3; ++run) {
        Execution execution(static_cast<unsigned>(number(4)));
        const bench::Stopwatch stopwatch;
        const auto start = std::chrono::steady_clock::now();
        auto result = local_outlier_factors({number(3)}, items, execution);
        const auto end = std::chrono::steady_clock::now();
        if (!result.ok()) return std::fprintf(stderr, "%s\n", result.status().message().c_str()), 1;
        best = std::min(best, std::chrono::duration<double>(end - start).count());
        processor = std::min(processor, stopwatch.seconds());
        factors = std::move(*result);
    }
    std::printf(
        "gputext lof: %zu items, d = %zu, k = %zu, %zu threads, %s: %.4f s, %.4f s of "
        "processors (best of 3)\n",
        n, d, number(3), number(4), simd_name(best_simd()), best, processor);
    if (count > 6)
        std::ofstream(arguments[6], std::ios::binary)
            .write(reinterpret_cast<const char*>(factors.data()),
                   static_cast<std::streamsize>(factors.size() * sizeof(double)));
}
