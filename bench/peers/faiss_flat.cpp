// bench/peers/faiss_flat.cpp - libfaiss's exact search, IndexFlat
//
// Arguments: those of bench/knn_bench.cpp; metrics euclidean and inner_product.

#include <faiss/IndexFlat.h>
#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "bench/stopwatch.hpp"
#include "bench/vector_files.hpp"

int main(int count, char** arguments) {
    if (count < 7) return 2;
    const auto number = [&](int i) { return static_cast<std::size_t>(std::atoll(arguments[i])); };
    const std::size_t n = number(1), q = number(2), d = number(3), k = number(4);
    using gputext::bench::floats;
    const auto items = floats(n * d, 1, count > 8 ? arguments[7] : nullptr);
    const auto queries = floats(q * d, 2, count > 8 ? arguments[8] : nullptr);
    omp_set_num_threads(static_cast<int>(number(6)));
    const bool product = std::strcmp(arguments[5], "inner_product") == 0;
    faiss::IndexFlat index(static_cast<int>(d),
                           product ? faiss::METRIC_INNER_PRODUCT : faiss::METRIC_L2);
    index.add(static_cast<std::int64_t>(n), items.data());
    std::vector<float> distances(q * k);
    std::vector<std::int64_t> found(q * k);
    double best = 1e9, processor = 1e9;
    for (int run = 0; run < 5; ++run) {
        const gputext::bench::Stopwatch stopwatch;
        const auto start = std::chrono::steady_clock::now();
        index.search(static_cast<std::int64_t>(q), queries.data(), static_cast<std::int64_t>(k),
                     distances.data(), found.data());
        const auto end = std::chrono::steady_clock::now();
        best = std::min(best, std::chrono::duration<double>(end - start).count());
        processor = std::min(processor, stopwatch.seconds());
    }
    std::printf(
        "libfaiss %s: %zu items, %zu queries, d = %zu, k = %zu, %zu threads: %.4f s, "
        "%.4f s of processors (best of 5)\n",
        arguments[5], n, q, d, k, number(6), best, processor);
}
