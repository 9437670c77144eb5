// bench/gpu_words_bench.cu - a thesaurus on one GPU: figures by phase, floor, comparison
//
// usage: gpu_words_bench corpus FILE CPU [DIRECTORY]
//        gpu_words_bench stream WORDS TOKENS
//        gpu_words_bench dense WORDS COLUMNS SHARE
//        gpu_words_bench sparse WORDS FEATURES COLUMNS [DIRECTORY]
//
// corpus: FILE has texts as bench/word_corpus.hpp reads them, or, if its name ends in .u16, what
// bench/word_numbers made of them. With CPU 1 all answers are held against the CPU's.
//
// stream: counting a generated text, word n as often as 1 / n, texts of 18 words.
//
// dense: words that have each of the columns by chance, all of them multiplied by the tensor cores.
//
// sparse: words with about so many features each, column n as often as 1 / n but at most 9 in 10.
//
// With a DIRECTORY the features are written there for bench/peers/cupy_words.py. Times are the
// device's, between events on the stream, the least of some passes, with everything on the device;
// the last lines of corpus are whole calls from the host's memory and back.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include <cub/device/device_scan.cuh>

#include "bench/gpu_resources.hpp"
#include "bench/word_corpus.hpp"
#include "cpp/thesaurus/word_similarity.hpp"
#include "kernels/base/launch.hpp"
#include "kernels/base/stream_event.hpp"
#include "kernels/thesaurus/detail/cooccurrences.hpp"
#include "kernels/thesaurus/detail/feature_weights.hpp"
#include "kernels/thesaurus/word_similarity.hpp"
#include "tests/support/device_features.hpp"

using namespace gputext;
using bench::check;
using bench::Clock;
using bench::every_core;
using bench::ring;
using bench::stream;
using bench::wait;

namespace {

// Measured ceilings of one H200.
constexpr double kProducts = 976e12;   // operations/s of cuBLAS on bytes
constexpr double kAdditions = 2.3e12;  // additions/s to random places of shared memory
constexpr double kMemory = 4.3e12;     // bytes/s

constexpr std::uint32_t kTop = 100;

gpu::DeviceWork work() {
    return {stream(), std::size_t{110} << 30};
}

struct Texts {
    std::vector<std::uint32_t> words, positions;
    std::uint32_t vocabulary = 0;
};

/// Words that are there less than five times are not counted.
Texts read_texts(const std::string& name) {
    Texts texts;
    if (!name.ends_with(".u16")) {
        const bench::WordCorpus corpus(name, CooccurrenceShape::kMostWindow, 5, UINT32_MAX);
        const TokenStream words = corpus.stream();
        texts.words.assign(words.words.begin(), words.words.end());
        texts.positions.assign(words.positions.begin(), words.positions.end());
        texts.vocabulary = static_cast<std::uint32_t>(corpus.names.size());
        return texts;
    }
    std::ifstream file(name, std::ios::binary | std::ios::ate);
    std::vector<std::uint16_t> numbers(static_cast<std::size_t>(file.tellg()) / 2);
    file.seekg(0);
    file.read(reinterpret_cast<char*>(numbers.data()),
              static_cast<std::streamsize>(numbers.size() * 2));
    std::uint32_t position = 0;
    for (const std::uint16_t number : numbers) {
        ++position;
        if (number == 65534) position += CooccurrenceShape::kMostWindow;
        if (number >= 65534) continue;
        texts.words.push_back(number);
        texts.positions.push_back(position);
        texts.vocabulary = std::max<std::uint32_t>(texts.vocabulary, number + 1);
    }
    return texts;
}

void measure_counting(const CooccurrenceShape& shape, const gpu::DeviceTokens& tokens,
                      std::uint64_t places, gpu::CountRowsMemory& rows) {
    double best = 1e300;
    gpu::CooccurrenceTimes times;
    for (int pass = 0; pass < 5; ++pass) {
        rows = {};
        gpu::StreamTimer timer(true, stream());
        timer.begin();
        check(gpu::count_words(shape, tokens, work(), every_core(), rows));
        timer.end();
        wait();
        best = std::min(best, timer.milliseconds());
    }
    rows = {};
    check(gpu::count_words(shape, tokens, work(), every_core(), rows, &times));
    const double key_bytes = shape.words <= 1u << 17 ? 4 : 8;
    const double bits = shape.words <= 1u << 17 ? 32 : 2 * std::bit_width(shape.words - 1);
    const double floor =
        static_cast<double>(times.keys) * key_bytes * (2 * std::ceil(bits / 8) + 1) / kMemory;
    std::printf(
        "counting %llu words of %llu places, %u different: %.2f ms, %.3g places/s; keys %llu, "
        "counts %llu, chunks %llu; emit %.2f, sort %.2f (floor %.2f), runs %.2f, merge %.2f, "
        "transpose %.2f, rows %.2f\n",
        static_cast<unsigned long long>(tokens.size), static_cast<unsigned long long>(places),
        shape.words, best, static_cast<double>(places) / best * 1e3,
        static_cast<unsigned long long>(times.keys),
        static_cast<unsigned long long>(rows.view.stored),
        static_cast<unsigned long long>(times.chunks), times.emit_ms, times.sort_ms, floor * 1e3,
        times.runs_ms, times.merge_ms, times.transpose_ms, times.rows_ms);
    std::fflush(stdout);
}

double measure_search(const char* what, const SimilarityParameters& parameters,
                      const gpu::FeatureRows& features, const gpu::WordChoices& choices = {},
                      int passes = 2) {
    double best = 1e300;
    gpu::WordTimes times;
    for (int pass = 0; pass <= passes; ++pass) {
        gpu::StreamTimer timer(true, stream());
        gpu::WordTimes some;
        timer.begin();
        check(gpu::word_similarities(parameters, features, work(), every_core(), nullptr, &some,
                                     choices));
        timer.end();
        wait();
        if (timer.milliseconds() >= best) continue;
        best = timer.milliseconds();
        times = some;
    }
    const double additions = times.facts.cold_work;
    std::printf(
        "%s: %u words, %llu features, top %u: %.2f ms; index %.2f, products %.2f (%u dense "
        "columns, %.3g operations at %.3g/s, floor %.2f), lists and nearest %.2f (%.3g additions "
        "at %.3g/s, floor %.2f); %u divided words, %u tiles\n",
        what, features.shape.words, static_cast<unsigned long long>(features.stored),
        parameters.top_k, best, times.index_ms, times.product_ms, times.dense,
        times.product_operations,
        times.product_ms > 0 ? times.product_operations / times.product_ms * 1e3 : 0.0,
        times.product_operations / kProducts * 1e3, times.score_ms, additions,
        times.score_ms > 0 ? additions / times.score_ms * 1e3 : 0.0, additions / kAdditions * 1e3,
        times.divided, times.tiles);
    std::fflush(stdout);
    return best;
}

/// Words whose neighbors differ, or their similarities in any bit.
std::size_t differing(const Thesaurus& a, const Thesaurus& b) {
    std::size_t count = 0;
    for (std::size_t word = 0; word + 1 < a.begins.size(); ++word) {
        const std::uint64_t x = a.begins[word], y = b.begins[word], size = a.begins[word + 1] - x;
        const bool same =
            size == b.begins[word + 1] - y &&
            std::equal(&a.neighbors[x], &a.neighbors[x] + size, &b.neighbors[y]) &&
            std::memcmp(&a.similarities[x], &b.similarities[y], size * sizeof(double)) == 0;
        count += !same;
    }
    return count;
}

template <class T>
void write(const std::string& name, const T* data, std::size_t count) {
    std::ofstream(name, std::ios::binary)
        .write(reinterpret_cast<const char*>(data),
               static_cast<std::streamsize>(count * sizeof(T)));
}

void write_features(const std::string& directory, const gpu::FeatureRows& features) {
    const auto rows = testing::download_features(features, stream());
    check(rows.status());
    write(directory + "/begins.u64", rows->begins.data(), rows->begins.size());
    write(directory + "/columns.u32", rows->columns.data(), rows->columns.size());
    write(directory + "/weights.u16", rows->weights.data(), rows->weights.size());
    const std::uint64_t sizes[] = {features.shape.words, features.shape.columns(), features.stored};
    write(directory + "/sizes.u64", sizes, 3);
}

void measure_corpus(const char* name, bool cpu, const char* directory) {
    const Texts texts = read_texts(name);
    const CooccurrenceShape shape{texts.vocabulary, 3, true};
    const std::size_t places = texts.words.size();
    gpu::FeatureRowsMemory features;
    {
        DeviceBuffer<std::uint32_t> words, positions;
        check(words.upload(texts.words, stream()));
        check(positions.upload(texts.positions, stream()));
        gpu::CountRowsMemory counts;
        measure_counting(shape, {words.data(), positions.data(), places}, places, counts);
        for (const double discount : {0.95, 0.0}) {
            double best = 1e300;
            for (int pass = 0; pass < 3; ++pass) {
                features = {};
                gpu::StreamTimer timer(true, stream());
                timer.begin();
                check(gpu::weigh_features({WordWeight::lin, discount}, counts.view, work(),
                                          every_core(), features));
                timer.end();
                wait();
                best = std::min(best, timer.milliseconds());
            }
            std::printf("weights, discount %.2f: %.2f ms for %llu counts\n", discount, best,
                        static_cast<unsigned long long>(counts.view.stored));
            measure_search(discount == 0 ? "lin, discount 0" : "lin, discount 0.95",
                           {.top_k = kTop}, features.view);
        }
    }
    measure_search("jaccard", {.measure = WordMeasure::jaccard, .top_k = kTop}, features.view);
    measure_search("cosine", {.measure = WordMeasure::cosine, .top_k = kTop}, features.view, {}, 1);
    for (const double share : {0.03, 0.065})
        measure_search(("lin, dense from " + std::to_string(share)).c_str(), {.top_k = kTop},
                       features.view, {.dense_share = share}, 1);
    if (directory != nullptr) write_features(directory, features.view);

    const TokenStream stream_of{texts.words, texts.positions};
    const WeightParameters weights{WordWeight::lin, 0};
    double best = 1e300;
    Thesaurus found;
    for (int pass = 0; pass < 3; ++pass) {
        const Clock clock;
        auto answer = gpu::word_similarities({.top_k = kTop}, weights, shape, stream_of, work(),
                                             ring(), every_core());
        check(answer.status());
        best = std::min(best, clock.seconds());
        found = std::move(*answer);
    }
    std::printf("whole call, texts to neighbors, discount 0: %.1f ms\n", best * 1e3);
    std::fflush(stdout);
    if (!cpu) return;
    const auto rows = testing::download_features(features.view, stream());
    check(rows.status());
    const Clock clock;
    const auto wanted = word_similarities({.top_k = kTop, .memory_limit = std::size_t{32} << 30},
                                          *rows, every_core());
    check(wanted.status());
    std::printf("the CPU, %u threads: %.2f s; %zu of %u words' neighbors differ\n",
                every_core().threads(), clock.seconds(), differing(found, *wanted), shape.words);
}

__device__ std::uint32_t hash(std::uint64_t a) {
    a ^= a >> 33;
    a *= 0xff51afd7ed558ccdull;
    a ^= a >> 33;
    a *= 0xc4ceb9fe1a85ec53ull;
    return static_cast<std::uint32_t>(a >> 32);
}

__global__ void make_stream(std::uint32_t vocabulary, std::uint64_t size, std::uint32_t* words,
                            std::uint32_t* positions) {
    const std::uint64_t at = std::uint64_t{blockIdx.x} * blockDim.x + threadIdx.x;
    if (at >= size) return;
    const float chance = static_cast<float>(hash(at * 2 + 1)) * 0x1p-32f;
    const float word = powf(static_cast<float>(vocabulary), chance) - 1;
    words[at] = min(vocabulary - 1, static_cast<std::uint32_t>(word));
    positions[at] = static_cast<std::uint32_t>(at + at / 18 * 4);
}

void measure_stream(std::uint32_t vocabulary, std::uint64_t size) {
    DeviceBuffer<std::uint32_t> words, positions;
    check(words.allocate(size, stream()));
    check(positions.allocate(size, stream()));
    make_stream<<<gpu::blocks_for(size, 256), 256, 0, stream()>>>(vocabulary, size, words.data(),
                                                                  positions.data());
    check(gpu::launched("the benchmark"));
    gpu::CountRowsMemory rows;
    measure_counting({vocabulary, 3, true}, {words.data(), positions.data(), size}, size, rows);
}

/// A warp for each word. With `columns` null features are counted.
__global__ void make_features(std::uint32_t words, std::uint32_t columns_in_all,
                              const std::uint32_t* chances, std::uint64_t* begins,
                              std::uint32_t* columns, std::uint16_t* weights) {
    const std::uint32_t word = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    const unsigned lane = threadIdx.x % 32;
    if (word >= words) return;
    std::uint64_t next = columns == nullptr ? 0 : begins[word];
    for (std::uint32_t base = 0; base < columns_in_all; base += 32) {
        const std::uint32_t column = base + lane;
        const std::uint64_t cell = std::uint64_t{word} * columns_in_all + column;
        const bool has = column < columns_in_all && hash(cell) < chances[column];
        const unsigned all = __ballot_sync(~0u, has);
        if (has && columns != nullptr) {
            const std::uint64_t at = next + __popc(all & ((1u << lane) - 1));
            columns[at] = column;
            weights[at] = static_cast<std::uint16_t>(1 + hash(~cell) % 13000);
        }
        next += __popc(all);
    }
    if (lane == 0 && columns == nullptr) begins[word] = next;
}

void generate(std::uint32_t words, const std::vector<double>& shares,
              gpu::FeatureRowsMemory& features) {
    std::vector<std::uint32_t> chances;
    for (const double share : shares)
        chances.push_back(static_cast<std::uint32_t>(std::min(share * 0x1p32, 0x1p32 - 1)));
    DeviceBuffer<std::uint32_t> on_device;
    DeviceBuffer<std::uint8_t> scratch;
    check(on_device.upload(chances, stream()));
    check(features.begins.allocate(words + 1, stream()));
    check(cuda_status(cudaMemsetAsync(features.begins.data() + words, 0, 8, stream()),
                      "the benchmark"));
    const auto columns = static_cast<std::uint32_t>(shares.size());
    const unsigned blocks = gpu::blocks_for(words, 8);
    make_features<<<blocks, 256, 0, stream()>>>(words, columns, on_device.data(),
                                                features.begins.data(), nullptr, nullptr);
    check(gpu::launched("the benchmark"));
    check(gpu::with_scratch(scratch, stream(), [&](void* space, std::size_t& bytes) {
        return cub::DeviceScan::ExclusiveSum(space, bytes, features.begins.data(),
                                             features.begins.data(), words + 1, stream());
    }));
    std::uint64_t stored = 0;
    check(gpu::download_value(features.begins.data() + words, stored, stream(), "the benchmark"));
    check(features.columns.allocate(stored, stream()));
    check(features.weights.allocate(stored, stream()));
    make_features<<<blocks, 256, 0, stream()>>>(words, columns, on_device.data(),
                                                features.begins.data(), features.columns.data(),
                                                features.weights.data());
    check(gpu::launched("the benchmark"));
    // As many columns as the window makes.
    std::uint32_t window = 1;
    while (2ull * window * words < columns) ++window;
    features.view = {{words, window, true},
                     stored,
                     features.begins.data(),
                     features.columns.data(),
                     features.weights.data()};
    wait();
}

void measure_dense(std::uint32_t words, std::uint32_t columns, double share) {
    gpu::FeatureRowsMemory features;
    generate(words, std::vector<double>(columns, share), features);
    const std::string what =
        "dense, " + std::to_string(columns) + " columns, share " + std::to_string(share);
    measure_search(what.c_str(), {.top_k = kTop}, features.view, {.dense_share = 1e-9}, 1);
}

void measure_sparse(std::uint32_t words, double wanted, std::uint32_t columns,
                    const char* directory) {
    std::vector<double> shares(columns);
    double low = 0, high = columns;
    for (int step = 0; step < 100; ++step) {
        const double middle = (low + high) / 2;
        double sum = 0;
        for (std::uint32_t c = 0; c < columns; ++c)
            sum += shares[c] = std::min(0.9, middle / (c + 1.0));
        (sum < wanted ? low : high) = middle;
    }
    double squares = 0;
    for (const double share : shares) squares += share * words * share * words;
    gpu::FeatureRowsMemory features;
    generate(words, shares, features);
    std::printf("sparse: squares of lists add up to %.3g\n", squares);
    if (directory != nullptr) write_features(directory, features.view);
    for (const double share : {0.0, 0.06})
        measure_search(share == 0 ? "sparse" : ("sparse, from " + std::to_string(share)).c_str(),
                       {.top_k = kTop}, features.view, {.dense_share = share}, 1);
}

}  // namespace

int main(int argc, char** argv) {
    const std::string mode = argc > 1 ? argv[1] : "";
    const auto number = [&](int i) { return argc > i ? std::atof(argv[i]) : 0.0; };
    if (mode == "corpus" && argc > 3)
        measure_corpus(argv[2], number(3) != 0, argc > 4 ? argv[4] : nullptr);
    else if (mode == "stream" && argc > 3)
        measure_stream(static_cast<std::uint32_t>(number(2)),
                       static_cast<std::uint64_t>(number(3)));
    else if (mode == "dense" && argc > 4)
        measure_dense(static_cast<std::uint32_t>(number(2)), static_cast<std::uint32_t>(number(3)),
                      number(4));
    else if (mode == "sparse" && argc > 4)
        measure_sparse(static_cast<std::uint32_t>(number(2)), number(3),
                       static_cast<std::uint32_t>(number(4)), argc > 5 ? argv[5] : nullptr);
    else
        return std::fprintf(stderr, "see the first lines of bench/gpu_words_bench.cu\n"), 2;
    return 0;
}
