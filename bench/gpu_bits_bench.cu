// bench/gpu_bits_bench.cu - nearest rows of bits on one GPU: pairs a second of the whole call, from
// bits in the host's memory to the answer there
//
// Arguments: QUERIES ITEMS BITS, or 1,000,000 1,000,000 256. Bits are random, as those of unrelated
// embeddings are; k is 1, 10 and 100, and a radius finds about ten items a query. A sample of
// queries is compared with the CPU's answer.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <utility>
#include <vector>

#include "bench/gpu_resources.hpp"
#include "kernels/bits/nearest_bits.hpp"

using namespace gputext;

namespace {

using bench::check;
using bench::Clock;
using bench::every_core;
using bench::ring;

struct Rows {
    std::vector<std::uint64_t> words;
    Vectors vectors;

    Rows(std::size_t rows, std::size_t bits, std::uint64_t seed) : words(rows * bits / 64) {
        std::uint64_t state = seed;
        for (std::uint64_t& word : words) {
            std::uint64_t x = state += 0x9e3779b97f4a7c15;
            x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
            x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
            word = x ^ (x >> 31);
        }
        vectors = {ElementType::bit, rows, bits, words.data(), {}, {}};
    }
};

/// How many of some queries have another answer than the CPU's.
std::size_t differing(const NearestBitsParameters& parameters, const Vectors& queries,
                      const Vectors& items, const Neighbors& found) {
    constexpr std::size_t sample = 200;
    std::size_t differ = 0;
    const std::size_t count = std::min(sample, queries.rows);
    const RowRange some(queries, 0, count);
    const auto wanted = nearest_bits(parameters, some.vectors(), items, {}, {}, every_core());
    check(wanted.status());
    for (std::size_t query = 0; query < count; ++query) {
        const auto begin = found.begins[query], end = found.begins[query + 1];
        bool same = begin == wanted->begins[query] && end == wanted->begins[query + 1];
        for (auto i = begin; same && i < end; ++i)
            same = found.items[i] == wanted->items[i] &&
                   found.distances[i] == wanted->distances[i];
        differ += !same;
    }
    return differ;
}

void measure(const NearestBitsParameters& parameters, const char* what, const Vectors& queries,
             const Vectors& items) {
    std::size_t available = 0, total = 0;
    check(cuda_status(cudaMemGetInfo(&available, &total), "the benchmark"));
    const gpu::DeviceWork work{bench::stream(), total / 4 * 3};
    double whole = 1e9;
    std::vector<PhaseTime> phases;
    Neighbors answer;
    for (int pass = 0; pass < 3; ++pass) {
        Execution execution(every_core().threads());
        const Clock clock;
        auto found =
            gpu::nearest_bits(parameters, queries, items, {}, work, ring(), execution);
        check(found.status());
        if (clock.seconds() < whole) {
            whole = clock.seconds();
            phases = execution.phase_times();
        }
        answer = std::move(*found);
    }
    const double pairs = static_cast<double>(queries.rows) * static_cast<double>(items.rows);
    double comparing = 0;
    for (const PhaseTime& phase : phases)
        if (phase.name == "comparing bits") comparing = phase.seconds;
    std::printf(
        "%zu queries, %zu items of %zu bits, %s, %s: whole call %.1f ms, %.3f trillion pairs/s; "
        "comparing %.1f ms, %.3f trillion pairs/s; %zu neighbors; %zu answers of a sample differ "
        "from the CPU's\n",
        queries.rows, items.rows, items.dimensions,
        parameters.metric == BitMetric::hamming ? "hamming" : "jaccard", what, whole * 1e3,
        pairs / whole / 1e12, comparing * 1e3, pairs / comparing / 1e12, answer.items.size(),
        differing(parameters, queries, items, answer));
    for (const PhaseTime& phase : phases)
        std::printf("    %s: %.1f ms\n", phase.name.c_str(), phase.seconds * 1e3);
}

}  // namespace

int main(int argc, char** argv) {
    const auto number = [&](int at, std::size_t otherwise) {
        return argc > at ? static_cast<std::size_t>(std::strtoull(argv[at], nullptr, 10))
                         : otherwise;
    };
    const std::size_t bits = number(3, 256);
    const Rows queries(number(1, 1'000'000), bits, 1), items(number(2, 1'000'000), bits, 2);
    NearestBitsParameters parameters;
    for (const BitMetric metric : {BitMetric::hamming, BitMetric::jaccard}) {
        parameters.metric = metric;
        for (const std::size_t k : {1, 10, 100}) {
            parameters.k = k;
            char what[32];
            std::snprintf(what, sizeof what, "k = %zu", k);
            measure(parameters, what, queries.vectors, items.vectors);
        }
    }
    parameters.metric = BitMetric::hamming;
    parameters.k = KnnParameters::all_items;
    // Ten of a million lie 4.26 standard deviations below the mean.
    const auto all = static_cast<double>(bits);
    parameters.radius = std::floor(all / 2 - 4.26 * std::sqrt(all) / 2);
    measure(parameters, "radius", queries.vectors, items.vectors);
}
