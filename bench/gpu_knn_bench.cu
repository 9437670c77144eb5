// bench/gpu_knn_bench.cu - nearest neighbors on one GPU: measured figure, floor and their ratio
//
// Arguments: what to measure (small, few, large, copies, cosine, lof; all when none is named), and
// a folder if its name has a slash: it has the tables for "real", which bench/csv_vectors makes,
// and "lof" leaves its rows and factors there. Rows are of independent normal numbers from a fixed
// seed, in float32, but for "real" and "copies". With "unmerged" copies are searched like other
// rows. Device figures are between events on the stream, the least of several passes, vectors
// resident; "converted" is what preparing them takes beside. The whole call is from vectors in the
// host's memory to the answer there. bench/peers/torch_knn.py measures PyTorch on rows of the same
// kind.

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "bench/gpu_resources.hpp"
#include "cpp/knn/cosine_similarity.hpp"
#include "cpp/knn/distinct_search.hpp"
#include "cpp/knn/knn.hpp"
#include "cpp/knn/outlier_factor.hpp"
#include "kernels/base/cuda_status.hpp"
#include "kernels/base/device_buffer.hpp"
#include "kernels/base/resident_copies.hpp"
#include "kernels/base/stream_event.hpp"
#include "kernels/knn/cosine_similarity.hpp"
#include "kernels/knn/knn.hpp"

using namespace gputext;

namespace {

constexpr double kHalfOperations = 790e12;  // a second, as cuBLAS reaches them
constexpr double kMemory = 4.3e12;          // bytes/s, device memory

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

/// About normal: the sum of sixteen numbers of four bits, and one of 32 below them.
float normal(std::uint64_t seed) {
    const std::uint64_t bits = mix(seed);
    int sum = -120;
    for (int i = 0; i < 16; ++i) sum += static_cast<int>(bits >> (4 * i) & 15);
    const double below = static_cast<double>(mix(bits) >> 32) * 0x1p-32;
    return static_cast<float>((sum + below - 0.5) / 18.44);
}

struct Rows {
    std::vector<float> elements;
    Vectors vectors;

    Rows(std::size_t rows, std::size_t dimensions, std::uint64_t seed)
        : elements(rows * dimensions) {
        check(every_core().parallel_for(rows, [&](std::size_t row, unsigned) {
            for (std::size_t i = 0; i < dimensions; ++i)
                elements[row * dimensions + i] = normal(seed << 40 | (row * dimensions + i));
            return Status();
        }));
        look_at(rows, dimensions);
    }

    /// Each row so many times.
    Rows(const Rows& distinct, std::size_t copies) {
        const std::size_t dimensions = distinct.vectors.dimensions;
        for (std::size_t row = 0; row < distinct.vectors.rows; ++row)
            for (std::size_t copy = 0; copy < copies; ++copy)
                elements.insert(elements.end(), &distinct.elements[row * dimensions],
                                &distinct.elements[row * dimensions] + dimensions);
        look_at(distinct.vectors.rows * copies, dimensions);
    }

    /// Reads a file of float32, row by row.
    Rows(std::size_t rows, const std::string& path) {
        std::ifstream file(path, std::ios::binary | std::ios::ate);
        elements.resize(static_cast<std::size_t>(std::max<std::streamoff>(file.tellg(), 0)) /
                        sizeof(float));
        file.seekg(0).read(reinterpret_cast<char*>(elements.data()),
                           static_cast<std::streamsize>(elements.size() * sizeof(float)));
        const std::size_t dimensions = elements.size() / rows;
        if (!file || dimensions == 0 || dimensions * rows != elements.size())
            check({ErrorCode::invalid_argument, path + " is missing or not of that many rows"});
        look_at(rows, dimensions);
    }

private:
    void look_at(std::size_t rows, std::size_t dimensions) {
        vectors.type = ElementType::float32;
        vectors.rows = rows;
        vectors.dimensions = dimensions;
        vectors.elements = elements.data();
    }
};

gpu::DeviceWork device_work() {
    std::size_t available = 0;
    std::size_t total = 0;
    check(cuda_status(cudaMemGetInfo(&available, &total), "the benchmark"));
    return {bench::stream(), std::min<std::size_t>(total / 2, std::size_t{40} << 30)};
}

/// Whether equal rows may be searched once.
bool merging = true;

/// How many of the first queries have another answer than the CPU's.
std::size_t differing(const KnnParameters& parameters, const Rows& queries, const Rows& items,
                      const Neighbors& found, std::size_t checked) {
    Vectors some = queries.vectors;
    some.rows = std::min(checked, some.rows);
    const auto wanted = knn(parameters, some, items.vectors, {}, every_core());
    check(wanted.status());
    std::size_t differ = 0;
    for (std::size_t q = 0; q < some.rows; ++q) {
        bool same = wanted->begins[q + 1] == found.begins[q + 1];
        for (auto i = wanted->begins[q]; same && i < wanted->begins[q + 1]; ++i)
            same = wanted->items[i] == found.items[i] &&
                   std::bit_cast<std::uint64_t>(wanted->distances[i]) ==
                       std::bit_cast<std::uint64_t>(found.distances[i]);
        differ += !same;
    }
    return differ;
}

void measure_knn(const char* what, const Rows& items, const Rows& queries, std::size_t k,
                 Metric metric, int passes, std::size_t checked) {
    const std::size_t items_count = items.vectors.rows;
    const std::size_t query_count = queries.vectors.rows;
    const std::size_t dimensions = items.vectors.dimensions;
    const KnnParameters parameters{.k = k, .metric = metric};
    gpu::KnnCounts best;
    best.search_ms = best.prepare_ms = 1e9;
    double whole = 1e9;
    Neighbors answer;
    for (int pass = 0; pass < passes; ++pass) {
        gpu::KnnCounts counts;
        const auto search = [&](const KnnParameters& wanted, const Vectors& of,
                                const Vectors& among, const RowKeys& keys) {
            return gpu::knn(wanted, of, among, keys, device_work(), ring(), every_core(), &counts);
        };
        const Clock clock;
        auto found = merging ? search_distinct_if_it_pays(parameters, queries.vectors,
                                                          items.vectors, {}, search, every_core())
                             : search(parameters, queries.vectors, items.vectors, {});
        whole = std::min(whole, clock.seconds());
        check(found.status());
        answer = std::move(*found);
        best.search_ms = std::min(best.search_ms, counts.search_ms);
        best.prepare_ms = std::min(best.prepare_ms, counts.prepare_ms);
        best.escalated = counts.escalated;
        best.rescored = counts.rescored;
    }
    const double pairs = static_cast<double>(items_count) * static_cast<double>(query_count);
    const double padded = static_cast<double>((dimensions + 15) / 16 * 16);
    const double floor =
        std::max(pairs * 2 * padded / kHalfOperations,
                 static_cast<double>(items_count + query_count) * padded * 2 / kMemory);
    std::printf(
        "%s, metric %d, %zu x %zu x %zu, k = %zu: %.1f us on the device; floor %.1f us; ratio "
        "%.2f; %.0f GFLOP/s of differences, squares and sums; converted %.1f us; whole call %.1f "
        "ms; rescored %.1f a query, escalated %llu; "
        "%zu of %zu differ from the CPU\n",
        what, static_cast<int>(metric), items_count, query_count, dimensions, k,
        best.search_ms * 1e3, floor * 1e6, best.search_ms * 1e-3 / floor,
        pairs * 3 * static_cast<double>(dimensions) / best.search_ms * 1e-6, best.prepare_ms * 1e3,
        whole * 1e3, static_cast<double>(best.rescored) / static_cast<double>(query_count),
        static_cast<unsigned long long>(best.escalated),
        differing(parameters, queries, items, answer, checked), std::min(checked, query_count));
    std::fflush(stdout);
}

void measure_knn(std::size_t items_count, std::size_t query_count, std::size_t dimensions,
                 std::size_t k, Metric metric, int passes, std::size_t checked) {
    measure_knn("normal", Rows(items_count, dimensions, 1), Rows(query_count, dimensions, 2), k,
                metric, passes, checked);
}

/// Few queries among items that stay on the device, with what searches have made of them.
void measure_kept(std::size_t items_count, std::size_t dimensions) {
    const Rows items(items_count, dimensions, 1), all_queries(1000, dimensions, 2);
    const auto ranges = std::make_shared<ResidentRanges>();
    ranges->add({1, reinterpret_cast<const std::uint8_t*>(items.elements.data()),
                 items.elements.size() * sizeof(float)});
    gpu::ResidentCopies copies(ranges, 0);
    gpu::ItemCache kept(std::uint64_t{8} << 30);
    ring().use(&copies);
    const double row_bytes = static_cast<double>(items_count * dimensions);
    for (const std::size_t k : {10, 100})
        for (const std::size_t count : {1, 16, 64, 1000}) {
            Vectors queries = all_queries.vectors;
            queries.rows = count;
            const KnnParameters parameters{.k = k, .metric = Metric::cosine};
            double first = 0, best = 1e9, whole = 1e9;
            Neighbors answer;
            for (int pass = 0; pass < 12; ++pass) {
                check(cuda_status(cudaStreamSynchronize(ring().stream()), "the benchmark"));
                const gpu::DeviceWork work = device_work();
                check(copies.begin_job(work.bytes));
                gpu::KnnCounts counts;
                const Clock clock;
                auto found = gpu::knn(parameters, queries, items.vectors, {}, work, ring(),
                                      every_core(), &counts, &kept);
                whole = std::min(whole, clock.seconds());
                check(found.status());
                answer = std::move(*found);
                const double milliseconds = counts.prepare_ms + counts.search_ms;
                if (pass == 0) first = milliseconds;
                best = std::min(best, milliseconds);
            }
            Rows some(count, dimensions, 2);
            std::printf(
                "kept, %zu x %zu x %zu, k = %zu: %.3f ms on the device, %.3f ms at first, whole "
                "call %.3f ms; floors: reading binary32 %.3f ms, halves %.3f ms; %zu of %zu differ "
                "from the CPU\n",
                items_count, count, dimensions, k, best, first, whole * 1e3,
                4 * row_bytes / kMemory * 1e3, 2 * row_bytes / kMemory * 1e3,
                differing(parameters, some, items, answer, 16), std::min<std::size_t>(16, count));
            std::fflush(stdout);
        }
    check(cuda_status(cudaDeviceSynchronize(), "the benchmark"));
    ring().use(nullptr);
}

/// Tables of the size that Tian, Hua and Lu measured in 2015.
void measure_real(const std::string& folder) {
    for (const char* const name : {"kdd", "poker", "covertype"}) {
        const Rows items(20000, folder + name + ".items.f32");
        const Rows queries(5000, folder + name + ".queries.f32");
        for (const std::size_t k : {20, 40, 80, 100})
            measure_knn(name, items, queries, k, Metric::euclidean, 10, 5000);
    }
}

/// All rows equal, and each of some thousands with many more.
void measure_copies() {
    for (const std::size_t rows : {30000, 60000}) {
        const Rows equal(Rows(1, 2, 1), rows);
        measure_knn("equal", equal, equal, 10, Metric::euclidean, 3, 1000);
    }
    const Rows items(Rows(2000, 41, 1), 50);
    measure_knn("fifty of each", items, Rows(5000, 41, 2), 100, Metric::euclidean, 3, 1000);
}

/// One vector beside many: bytes read a second, against the measured rate of a copy.
void measure_cosines(std::size_t rows, std::size_t dimensions) {
    const Rows items(rows, dimensions, 1);
    const Rows query(1, dimensions, 2);
    const gpu::DeviceWork work = device_work();
    const std::size_t bytes = items.elements.size() * sizeof(float);
    DeviceBuffer<float> device_items, copy, device_query;
    DeviceBuffer<double> elements, square, similarities;
    check(device_items.upload(items.elements, work.stream));
    check(device_query.upload(query.elements, work.stream));
    check(copy.allocate(items.elements.size(), work.stream));
    check(elements.allocate(dimensions, work.stream));
    check(square.allocate(1, work.stream));
    check(similarities.allocate(rows, work.stream));
    const auto width = static_cast<std::uint32_t>(dimensions);
    const gpu::DeviceRows device_rows{ElementType::float32, device_items.data(),
                                      static_cast<std::uint32_t>(rows), width};
    check(gpu::prepare_queries(Metric::cosine,
                               {ElementType::float32, device_query.data(), 1, width},
                               elements.data(), square.data(), work.stream));
    double best = 1e9;
    double copied = 1e9;
    gpu::DeviceRows others = device_rows;
    others.elements = copy.data();
    const gpu::DeviceQueries device_queries{1, width, elements.data(), square.data(), nullptr};
    for (int pass = 0; pass < 10; ++pass) {
        gpu::StreamTimer copy_timer(true, work.stream), timer(true, work.stream);
        copy_timer.begin();
        check(cuda_status(cudaMemcpyAsync(copy.data(), device_items.data(), bytes,
                                          cudaMemcpyDeviceToDevice, work.stream),
                          "the benchmark"));
        copy_timer.end();
        // Other rows leave the caches without any of these, and with nothing to be written back.
        check(
            gpu::run_cosine_similarities(device_queries, others, similarities.data(), work.stream));
        timer.begin();
        check(gpu::run_cosine_similarities(device_queries, device_rows, similarities.data(),
                                           work.stream));
        timer.end();
        check(cuda_status(cudaStreamSynchronize(work.stream), "the benchmark"));
        best = std::min(best, timer.milliseconds());
        copied = std::min(copied, copy_timer.milliseconds());
    }
    const double rate = static_cast<double>(bytes) / best * 1e3;
    const double copy_rate = 2 * static_cast<double>(bytes) / copied * 1e3;
    const Clock clock;
    const auto whole =
        gpu::cosine_similarities(query.vectors, items.vectors, work, ring(), every_core());
    const double seconds = clock.seconds();
    check(whole.status());
    const auto expected =
        cosine_similarities(query.vectors, items.vectors, best_simd(), every_core());
    check(expected.status());
    std::printf(
        "cosine 1 x %zu x %zu: %.1f us on the device, %.2f TB/s; a copy %.2f TB/s; ratio %.2f; "
        "whole call %.1f ms; %s\n",
        rows, dimensions, best * 1e3, rate * 1e-12, copy_rate * 1e-12, rate / copy_rate,
        seconds * 1e3, *whole == *expected ? "the CPU's bits" : "OTHER BITS");
}

template <typename T>
void write(const std::string& path, const std::vector<T>& elements) {
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(elements.data()),
               static_cast<std::streamsize>(elements.size() * sizeof(T)));
}

void measure_outliers(std::size_t rows, std::size_t dimensions, std::size_t k,
                      const std::string& folder) {
    const Rows items(rows, dimensions, 1);
    const OutlierParameters parameters{.k = k};
    double best = 1e9;
    std::vector<double> found;
    for (int pass = 0; pass < 3; ++pass) {
        const Clock clock;
        OutlierSearch search;
        check(search.set(parameters, items.vectors, every_core()));
        const auto neighbors = gpu::knn(search.parameters(), search.rows(), search.rows(),
                                         search.keys(), device_work(), ring(), every_core());
        check(neighbors.status());
        auto factors = search.factors({&*neighbors, 1}, every_core());
        best = std::min(best, clock.seconds());
        check(factors.status());
        found = std::move(*factors);
    }
    const auto expected = local_outlier_factors(parameters, items.vectors, every_core());
    check(expected.status());
    std::printf("LOF %zu x %zu, k = %zu: whole call %.1f ms; %s\n", rows, dimensions, k, best * 1e3,
                found == *expected ? "the CPU's bits" : "OTHER BITS");
    if (folder.empty()) return;
    write(folder + "lof.items.f32", items.elements);
    write(folder + "lof.f64", found);
}

}  // namespace

int main(int argc, char** argv) {
    std::vector<std::string> names;
    std::string folder;
    for (int i = 1; i < argc; ++i) {
        const std::string name = argv[i];
        if (name == "unmerged")
            merging = false;
        else if (name.find('/') == std::string::npos)
            names.push_back(name);
        else
            folder = name + '/';
    }
    const auto wanted = [&](const char* name) {
        return names.empty() || std::find(names.begin(), names.end(), name) != names.end();
    };
    if (wanted("small")) {
        for (const std::size_t k : {20, 100})
            measure_knn(20000, 5000, 41, k, Metric::euclidean, 10, 5000);
        measure_knn(20000, 5000, 41, 100, Metric::cosine, 10, 5000);
        measure_knn(20000, 5000, 10, 100, Metric::euclidean, 10, 5000);
    }
    if (wanted("few"))
        for (const std::size_t queries : {1, 16})
            measure_knn(1000000, queries, 768, 100, Metric::cosine, 3, 16);
    if (wanted("kept")) measure_kept(1000000, 768);
    if (wanted("large")) measure_knn(1000000, 10000, 768, 100, Metric::cosine, 3, 32);
    if (wanted("copies")) measure_copies();
    if (wanted("cosine")) measure_cosines(100000, 1000);
    if (!folder.empty() && wanted("real")) measure_real(folder);
    if (wanted("lof")) {
        measure_knn(100000, 100000, 16, 20, Metric::euclidean, 3, 1000);
        measure_outliers(100000, 16, 20, folder);
    }
}
