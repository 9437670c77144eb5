// bench/gpu_keyed_knn_bench.cu - nearest neighbors within equal keys on one GPU: pairs a second,
// and what reading each pair's item once takes
//
// Arguments: QUERIES ITEMS DIMENSIONS, or 8,000,000 2,000,000 64. Keys are uniform, or as Zipf's
// law has them, with about eight items a query; k is 1 and 10. The whole call is from vectors in
// the host's memory to the answer there. A sample of queries is compared with the CPU's answer.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "bench/gpu_resources.hpp"
#include "cpp/knn/keyed_knn.hpp"
#include "kernels/knn/keyed_knn.hpp"

using namespace gputext;

namespace {

constexpr double kMemory = 3.0e12;  // bytes/s, device memory of an H100
constexpr double kLink = 50e9;      // bytes/s, from pinned memory

using bench::check;
using bench::Clock;
using bench::every_core;
using bench::ring;

std::uint64_t mix(std::uint64_t x) {
    x += 0x9e3779b97f4a7c15;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
    x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
    return x ^ (x >> 31);
}

double uniform(std::uint64_t seed) {
    return static_cast<double>(mix(seed) >> 11) * 0x1p-53;
}

struct Rows {
    std::vector<float> elements;
    Vectors vectors;

    Rows(std::size_t rows, std::size_t dimensions, std::uint64_t seed)
        : elements(rows * dimensions) {
        check(every_core().parallel_for((rows + 1023) / 1024, [&](std::size_t step, unsigned) {
            const std::size_t end = std::min(elements.size(), (step + 1) * 1024 * dimensions);
            for (std::size_t i = step * 1024 * dimensions; i < end; ++i)
                elements[i] = static_cast<float>(uniform(seed << 40 | i));
            return Status();
        }));
        vectors = {ElementType::float32, rows, dimensions, elements.data(), {}, {}};
    }
};

/// Zipf: each key's rank is the exponential of a uniform number.
std::vector<std::uint32_t> keys_of(std::size_t rows, std::size_t keys, bool zipf,
                                   std::uint64_t seed) {
    std::vector<std::uint32_t> made(rows);
    for (std::size_t row = 0; row < rows; ++row) {
        const double at = uniform(seed << 40 | row), all = static_cast<double>(keys);
        made[row] = static_cast<std::uint32_t>(
            std::min(all - 1, zipf ? std::pow(all + 1, at) - 1 : at * all));
    }
    return made;
}

/// How many of some queries have another answer than the CPU's.
std::size_t differing(const KnnParameters& parameters, const Rows& queries, const Rows& items,
                      std::vector<std::uint32_t> query_keys,
                      const std::vector<std::uint32_t>& item_keys, const Neighbors& found) {
    const std::size_t step = std::max<std::size_t>(1, query_keys.size() / 10007);
    for (std::size_t q = 0; q < query_keys.size(); ++q)
        if (q % step != 0) query_keys[q] = kNoKey;
    const auto wanted = keyed_knn(parameters, queries.vectors, items.vectors,
                                  {query_keys, item_keys}, {}, every_core());
    check(wanted.status());
    std::size_t differ = 0;
    for (std::size_t q = 0; q < query_keys.size(); q += step) {
        const auto begin = wanted->begins[q], count = wanted->begins[q + 1] - begin;
        const auto at = found.begins[q];
        bool same = found.begins[q + 1] - at == count;
        for (std::uint64_t n = 0; same && n < count; ++n)
            same = wanted->items[begin + n] == found.items[at + n] &&
                   std::bit_cast<std::uint64_t>(wanted->distances[begin + n]) ==
                       std::bit_cast<std::uint64_t>(found.distances[at + n]);
        differ += !same;
    }
    return differ;
}

void measure(const Rows& queries, const Rows& items, std::size_t keys, bool zipf, std::size_t k) {
    const auto query_keys = keys_of(queries.vectors.rows, keys, zipf, 3);
    const auto item_keys = keys_of(items.vectors.rows, keys, zipf, 4);
    const Clock grouping;
    const auto groups = group_by_key({query_keys, item_keys}, every_core());
    check(groups.status());
    const double grouped = grouping.seconds();
    std::size_t available = 0, total = 0;
    check(cuda_status(cudaMemGetInfo(&available, &total), "the benchmark"));
    const gpu::DeviceWork work{bench::stream(), total / 4 * 3};
    const KnnParameters parameters{.k = k, .metric = Metric::euclidean};
    gpu::KeyedKnnCounts best;
    double whole = 1e9;
    Neighbors answer;
    for (int pass = 0; pass < 3; ++pass) {
        gpu::KeyedKnnCounts counts;
        const Clock clock;
        auto found = gpu::keyed_knn(parameters, queries.vectors, items.vectors, *groups, {}, work,
                                    ring(), every_core(), &counts);
        check(found.status());
        if (clock.seconds() < whole) {
            whole = clock.seconds();
            best = counts;
        }
        answer = std::move(*found);
    }
    const double row = static_cast<double>(items.vectors.dimensions * sizeof(float));
    const auto pairs = static_cast<double>(best.pairs);
    const double upload =
        row * static_cast<double>(queries.vectors.rows + items.vectors.rows) / kLink;
    const std::size_t differ = differing(parameters, queries, items, query_keys, item_keys, answer);
    std::printf(
        "%zu queries, %zu items, %zu %s keys, k = %zu: %.0f million pairs; grouping %.0f ms; "
        "lists %.1f ms, %.2f billion pairs/s, %.0f GB/s, floor %.1f ms; whole call %.0f ms, floor "
        "of the upload %.0f ms; %llu tiles, %llu ranges, %llu large groups; %zu answers of a "
        "sample differ from the CPU's\n",
        queries.vectors.rows, items.vectors.rows, keys, zipf ? "Zipf" : "uniform", k,
        static_cast<double>(groups->pairs()) / 1e6, grouped * 1e3, best.search_ms,
        pairs / best.search_ms / 1e6, pairs * row / best.search_ms / 1e6,
        pairs * row / kMemory * 1e3, whole * 1e3, upload * 1e3,
        static_cast<unsigned long long>(best.tiles), static_cast<unsigned long long>(best.ranges),
        static_cast<unsigned long long>(best.large_groups), differ);
}

}  // namespace

int main(int argc, char** argv) {
    const auto number = [&](int at, std::size_t otherwise) {
        return argc > at ? static_cast<std::size_t>(std::strtoull(argv[at], nullptr, 10))
                         : otherwise;
    };
    const std::size_t queries = number(1, 8'000'000), items = number(2, 2'000'000);
    const std::size_t dimensions = number(3, 64);
    const Rows of_queries(queries, dimensions, 1), of_items(items, dimensions, 2);
    for (const std::size_t k : {1, 10}) {
        measure(of_queries, of_items, std::max<std::size_t>(1, items / 8), false, k);
        measure(of_queries, of_items, std::max<std::size_t>(1, items / 8), true, k);
    }
}
