// bench/gpu_trie_bench.cu - dictionaries on one GPU: lookup, memory and construction, with peers
//
// usage: gpu_trie_bench FILE STAGE...
//
// FILE has a word a line, of which what follows a tab is ignored. Words are drawn from a model of
// order three of it (bench/markov_words.hpp), of which a set of V different ones is a vocabulary.
// Stages:
//   floor               random reads of 64 bytes
//   V[:Q[:STRUCTURES]]  Q lookups (100 million) in a vocabulary of V, uniform and by frequency
//                       (Zipf, exponent 1), resident and from the host's memory, with the memory
//                       each structure takes. STRUCTURES is letters: f, x (xbw), t (transition
//                       table), h (hash table); fth by default
//   buildN              construction of N million words by phase, each of two of the
//                       model's when N is above 20
// Every code is checked. Resident times are the device's, the least of four.

#include <cub/device/device_scan.cuh>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "bench/gpu_resources.hpp"
#include "bench/gpu_trie_peers.cuh"
#include "bench/markov_words.hpp"
#include "bench/word_bench.hpp"
#include "kernels/base/stream_event.hpp"
#include "kernels/trie/detail/trie_lookup.hpp"
#include "kernels/trie/resident_trie.hpp"
#include "kernels/trie/trie_build.hpp"
#include "kernels/trie/word_lookup.hpp"

using namespace gputext;
using bench::check;
using bench::Clock;
using bench::every_core;
using bench::OwnWords;
using bench::ring;
using bench::stream;
using bench::wait;

namespace {

constexpr std::size_t kMemory = std::size_t{60} << 30;

/// Milliseconds on the device, the least of four.
double device_ms(const std::function<void()>& work) {
    double best = 1e300;
    for (int pass = 0; pass < 4; ++pass) {
        gpu::StreamTimer timer(true, stream());
        timer.begin();
        work();
        timer.end();
        wait();
        best = std::min(best, timer.milliseconds());
    }
    return best;
}

/// Words on the device.
struct DeviceList {
    DeviceBuffer<std::uint8_t> bytes;
    DeviceBuffer<std::uint64_t> begins;
    std::uint64_t byte_count = 0;
    std::uint32_t count = 0;

    gpu::DeviceWords view() const { return {bytes.data(), begins.data(), 0, count}; }
    Status upload(const Words& words) {
        count = static_cast<std::uint32_t>(words.size());
        byte_count = words.byte_count();
        GPUTEXT_TRY(bytes.allocate(byte_count + gpu::kWordSlack, stream()));
        GPUTEXT_TRY(bytes.upload({words.bytes, byte_count}, stream()));
        return begins.upload({words.begins, words.size() + 1}, stream());
    }
};

// ---- Questions ----

__device__ std::uint64_t mixed(std::uint64_t z) {
    z = (z + 0x9e3779b97f4a7c15) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

/// Without a table: uniform. Slots of the table are ranks; a fixed shuffle gives a rank its word.
__global__ void draw(const std::uint32_t* limits, const std::uint32_t* others,
                     const std::uint32_t* word_of_rank, gpu::DeviceWords words, std::uint32_t count,
                     std::uint32_t* drawn, std::uint64_t* lengths) {
    for (std::uint64_t i = blockIdx.x * 256 + threadIdx.x; i < count; i += gridDim.x * 256) {
        const std::uint64_t random = mixed(i), other = mixed(random ^ 0x1234567);
        auto slot = static_cast<std::uint32_t>((random >> 32) * words.count >> 32);
        if (limits != nullptr) {
            if (static_cast<std::uint32_t>(other) >= limits[slot]) slot = others[slot];
            slot = word_of_rank[slot];
        }
        drawn[i] = slot;
        lengths[i] = words.length(slot);
    }
}

__global__ void write_text(gpu::DeviceWords words, const std::uint32_t* drawn, std::uint32_t count,
                           const std::uint64_t* begins, std::uint8_t* text) {
    for (std::uint64_t i = blockIdx.x * 256 + threadIdx.x; i < count; i += gridDim.x * 256) {
        const std::uint8_t* const word = words.begin(drawn[i]);
        const std::uint64_t length = words.length(drawn[i]);
        for (std::uint64_t at = 0; at < length; ++at) text[begins[i] + at] = word[at];
    }
}

__global__ void count_wrong(const std::uint32_t* codes, const std::uint32_t* wanted,
                            std::uint32_t count, unsigned long long* wrong) {
    for (std::uint64_t i = blockIdx.x * 256 + threadIdx.x; i < count; i += gridDim.x * 256)
        if (codes[i] != wanted[i]) atomicAdd(wrong, 1ull);
}

/// Words drawn from a vocabulary, and their numbers in it, which are their codes.
class Questions {
public:
    Questions(const DeviceList& vocabulary, std::uint32_t count, bool zipf) {
        const std::uint32_t words = vocabulary.count;
        DeviceBuffer<std::uint32_t> limits, others, word_of_rank;
        if (zipf) {
            std::vector<double> weights(words);
            for (std::uint32_t i = 0; i < words; ++i) weights[i] = 1.0 / (i + 1);
            const bench::AliasTable table(weights);
            std::vector<std::uint32_t> shuffle(words);
            for (std::uint32_t i = 0; i < words; ++i) shuffle[i] = i;
            bench::SplitMix random(7);
            for (std::uint32_t i = words; i > 1; --i)
                std::swap(shuffle[i - 1], shuffle[random.below(i)]);
            check(limits.upload(table.limits, stream()));
            check(others.upload(table.others, stream()));
            check(word_of_rank.upload(shuffle, stream()));
            wait();
        }
        check(drawn_.allocate(count, stream()));
        check(list_.begins.allocate(std::size_t{count} + 1, stream()));
        check(cuda_status(cudaMemsetAsync(list_.begins.data() + count, 0, 8, stream()),
                          "the benchmark"));
        draw<<<4096, 256, 0, stream()>>>(limits.data(), others.data(), word_of_rank.data(),
                                         vocabulary.view(), count, drawn_.data(),
                                         list_.begins.data());
        DeviceBuffer<std::uint8_t> scratch;
        check(gpu::with_scratch(scratch, stream(), [&](void* space, std::size_t& bytes) {
            return cub::DeviceScan::ExclusiveSum(space, bytes, list_.begins.data(),
                                                 list_.begins.data(), std::int64_t{count} + 1,
                                                 stream());
        }));
        check(gpu::download_value(list_.begins.data() + count, list_.byte_count, stream(),
                                  "the benchmark"));
        list_.count = count;
        check(list_.bytes.allocate(list_.byte_count + gpu::kWordSlack, stream()));
        write_text<<<4096, 256, 0, stream()>>>(vocabulary.view(), drawn_.data(), count,
                                               list_.begins.data(), list_.bytes.data());
        check(gpu::launched("the benchmark"));
        check(codes_.allocate(std::size_t{count} + 1, stream()));
    }

    gpu::DeviceWords words() const { return list_.view(); }
    std::uint32_t* codes() const { return codes_.data(); }
    std::uint32_t* too_long() const { return codes_.data() + list_.count; }
    unsigned long long wrong() const {
        DeviceBuffer<unsigned long long> count;
        check(count.allocate(1, stream()));
        check(cuda_status(cudaMemsetAsync(count.data(), 0, 8, stream()), "the benchmark"));
        count_wrong<<<4096, 256, 0, stream()>>>(codes_.data(), drawn_.data(), list_.count,
                                                count.data());
        unsigned long long found = 0;
        check(gpu::download_value(count.data(), found, stream(), "the benchmark"));
        return found;
    }
    unsigned long long wrong(const std::vector<std::uint32_t>& codes) {
        check(codes_.upload(codes, stream()));
        return wrong();
    }

    OwnWords on_host() const {
        OwnWords words;
        words.bytes.resize(list_.byte_count);
        words.begins.resize(std::size_t{list_.count} + 1);
        check(ring().copy_back(words.bytes, list_.bytes.data(), stream(), every_core()));
        check(ring().copy_back(
            {reinterpret_cast<std::uint8_t*>(words.begins.data()), words.begins.size() * 8},
            reinterpret_cast<const std::uint8_t*>(list_.begins.data()), stream(), every_core()));
        return words;
    }

private:
    DeviceList list_;
    DeviceBuffer<std::uint32_t> drawn_, codes_;
};

// ---- Lookup ----

void report(const char* name, std::uint32_t vocabulary, double bytes, const Questions& questions,
            const char* kind, double ms) {
    std::printf(
        "%9u words  %-12s %9.1f MB %8.1f bits/word  %-8s %6.2f e9/s  %7.2f ms, %llu wrong\n",
        vocabulary, name, bytes / 1e6, 8 * bytes / vocabulary, kind,
        questions.words().count / ms * 1e-6, ms, questions.wrong());
    std::fflush(stdout);
}

void measure_from_host(const std::vector<std::uint8_t>& image, Questions& questions,
                       const char* kind, std::uint32_t vocabulary) {
    const OwnWords words = questions.on_host();
    std::vector<std::uint32_t> codes(words.size());
    gpu::ResidentTries tries(kMemory);
    double best = 1e300;
    double first = 0;
    for (int pass = 0; pass < 4; ++pass) {
        const Clock clock;
        check(gpu::lookup_words(image, words.view(), tries, {stream(), kMemory}, ring(),
                                every_core(), codes));
        wait();
        (pass == 0 ? first : best) = std::min(pass == 0 ? 1e300 : best, clock.seconds());
    }
    std::printf(
        "%9u words  from the host's memory, %-8s %6.2f e9/s  %7.2f ms, %.2f GB/s in; "
        "with the dictionary %.2f ms; %llu wrong\n",
        vocabulary, kind, static_cast<double>(codes.size()) / best * 1e-9, best * 1e3,
        (static_cast<double>(words.bytes.size()) + 8.0 * static_cast<double>(words.size())) / best *
            1e-9,
        first * 1e3, questions.wrong(codes));
    std::fflush(stdout);
}

struct LookupStage {
    std::uint32_t words = 0, questions = 100000000;
    std::string structures = "fth";

    explicit LookupStage(const char* text) {
        char* end = nullptr;
        words = static_cast<std::uint32_t>(std::strtoul(text, &end, 10));
        if (*end == ':') questions = static_cast<std::uint32_t>(std::strtoul(end + 1, &end, 10));
        if (*end == ':') structures = end + 1;
    }
    bool has(char letter) const { return structures.find(letter) != std::string::npos; }
};

void measure_lookup(const LookupStage& stage, const OwnWords& sorted) {
    OwnWords vocabulary;
    for (std::uint64_t i = 0; i < stage.words; ++i) {
        const std::string_view word = sorted.view()[i * sorted.size() / stage.words];
        vocabulary.add(word);
    }
    DeviceList words;
    check(words.upload(vocabulary.view()));
    wait();
    std::unique_ptr<gpu::ResidentTrie> front, xbw;
    std::vector<std::uint8_t> image;
    const auto load = [&](TrieStructure structure) {
        auto built = gpu::build_trie(structure, vocabulary.view(), {stream(), kMemory}, ring(),
                                     every_core());
        check(built.status());
        auto loaded = gpu::ResidentTrie::load(*built, 0, stream(), ring(), every_core());
        check(loaded.status());
        if (structure == TrieStructure::front) image = std::move(*built);
        return std::move(*loaded);
    };
    if (stage.has('f')) front = load(TrieStructure::front);
    if (stage.has('x')) {
        const Clock clock;
        xbw = load(TrieStructure::xbw);
        std::printf("%9u words  xbw built on the host in %.2f s\n", stage.words, clock.seconds());
    }
    std::unique_ptr<bench::TransitionTable> table;
    std::unique_ptr<bench::HashTable> hash;
    if (stage.has('t'))
        table = std::make_unique<bench::TransitionTable>(vocabulary.view(), stream());
    if (stage.has('h'))
        hash = std::make_unique<bench::HashTable>(words.view(), words.byte_count, stream());
    for (const bool zipf : {false, true}) {
        Questions questions(words, stage.questions, zipf);
        const char* const kind = zipf ? "zipf" : "uniform";
        const auto measure = [&](const char* name, double bytes, const auto& look_up) {
            const double ms = device_ms([&] { look_up(); });
            report(name, stage.words, bytes, questions, kind, ms);
        };
        if (front)
            for (const bool lines : {true, false}) {
                // Without them every word of a bucket is read, of the image alone.
                gpu::FrontCodedDictionary dictionary = front->front();
                if (!lines) dictionary.lines = nullptr;
                measure(lines ? "front" : "front, image",
                        static_cast<double>(lines ? front->bytes() : front->stats().bytes), [&] {
                            check(gpu::look_up(dictionary, questions.words(), questions.codes(),
                                               questions.too_long(), stream()));
                        });
            }
        if (xbw)
            measure("xbw", static_cast<double>(xbw->bytes()), [&] {
                check(gpu::look_up(xbw->xbw(), questions.words(), questions.codes(),
                                   questions.too_long(), stream()));
            });
        if (table && table->fits())
            measure("transitions", static_cast<double>(table->bytes()),
                    [&] { table->look_up(questions.words(), questions.codes()); });
        else if (table)
            std::printf("%9u words  transitions would take %.1f GB\n", stage.words,
                        static_cast<double>(table->bytes()) * 1e-9);
        if (hash)
            measure("hash", static_cast<double>(hash->bytes()),
                    [&] { hash->look_up(questions.words(), questions.codes()); });
        if (front && stage.questions >= 100000000)
            measure_from_host(image, questions, kind, stage.words);
    }
}

// ---- Construction, and floors ----

void print_phases(const Execution& execution) {
    for (const PhaseTime& phase : execution.phase_times())
        std::printf("    %-24s %8.1f ms\n", phase.name.c_str(), phase.seconds * 1e3);
}

std::vector<std::uint8_t> measure_build(const char* name, const Words& words) {
    std::vector<std::uint8_t> image;
    for (int pass = 0; pass < 2; ++pass) {
        Execution execution(every_core().threads());
        const Clock clock;
        auto built =
            gpu::build_trie(TrieStructure::front, words, {stream(), kMemory}, ring(), execution);
        const double seconds = clock.seconds();
        check(built.status());
        image = std::move(*built);
        if (pass == 0) continue;
        std::printf("%s: %zu words, %.2f GB of text, in %.1f ms; image %.1f MB\n", name,
                    words.size(), 1e-9 * static_cast<double>(words.byte_count()), seconds * 1e3,
                    1e-6 * static_cast<double>(image.size()));
        print_phases(execution);
        std::fflush(stdout);
    }
    return image;
}

OwnWords words_in(const std::vector<std::uint8_t>& image) {
    const auto trie = open_trie(image);
    check(trie.status());
    OwnWords words;
    words.bytes.reserve((*trie)->stats().text_bytes);
    words.begins.reserve(std::size_t{(*trie)->stats().words} + 1);
    for (const auto cursor = (*trie)->cursor({0, (*trie)->stats().words}); cursor->next();)
        words.add(cursor->word());
    return words;
}

void measure_floor() {
    constexpr unsigned kBlocks = 132 * 8, kRounds = 64;
    DeviceBuffer<uint4> memory;
    DeviceBuffer<std::uint32_t> sums;
    check(memory.allocate(std::size_t{1} << 26, stream()));
    check(cuda_status(cudaMemsetAsync(memory.data(), 1, std::size_t{1} << 30, stream()),
                      "the benchmark"));
    check(sums.allocate(kBlocks * bench::kPeerThreads, stream()));
    for (const std::size_t megabytes : {5, 24, 48, 64, 128, 1024}) {
        const double ms = device_ms([&] {
            bench::read_lines<<<kBlocks, bench::kPeerThreads, 0, stream()>>>(
                memory.data(), (megabytes << 20) / 64, kRounds, sums.data());
            check(gpu::launched("the benchmark"));
        });
        std::printf("random reads of 64 bytes in %5zu MB: %6.1f e9/s\n", megabytes,
                    8.0 * kRounds * kBlocks * bench::kPeerThreads / ms * 1e-6);
    }
    std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 3) {
        std::fprintf(stderr, "usage: gpu_trie_bench FILE STAGE...\n");
        return 1;
    }
    const Clock clock;
    const bench::MarkovWords model(bench::read_words(argv[1]));
    OwnWords sorted;
    for (int i = 2; i < argc; ++i) {
        if (std::strcmp(argv[i], "floor") == 0) {
            measure_floor();
        } else if (std::strncmp(argv[i], "build", 5) == 0) {
            const std::size_t millions = std::strtoull(argv[i] + 5, nullptr, 10);
            const OwnWords words = model.make(millions * 1000000, millions > 20, 1, every_core());
            measure_build(argv[i], words.view());
        } else {
            if (sorted.size() == 0) {
                const OwnWords drawn = model.make(26000000, false, 2, every_core());
                sorted = words_in(measure_build("vocabulary", drawn.view()));
                std::printf("%zu different words, made in %.1f s\n", sorted.size(),
                            clock.seconds());
            }
            measure_lookup(LookupStage(argv[i]), sorted);
        }
    }
    std::printf("%.1f s in all\n", clock.seconds());
}
