// bench/gpu_movers_bench.cu - Word Mover's Distances and sequences' probabilities on one GPU
//
// usage: gpu_movers_bench [DIRECTORY]
//
// Pairs of texts of as many different words each, with counts of 1 to 3, over a model of random
// vectors; then mutants of small programs: lines as tokens, each program the edits of another one.
// Resident is the device's time between events with the input there, job what the operator takes
// from the caller's memory and back, CPU the same on the host's cores, whose bits are compared.
// With a DIRECTORY some pairs are written there for bench/peers/pot_movers.py.

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <numeric>
#include <random>
#include <vector>

#include "bench/gpu_resources.hpp"
#include "bench/movers_corpus.hpp"
#include "cpp/embeddings/sequence_probability.hpp"
#include "cpp/embeddings/word_movers.hpp"
#include "kernels/base/stream_event.hpp"
#include "kernels/embeddings/sequence_probability.hpp"
#include "kernels/embeddings/word_movers.hpp"

using namespace gputext;
using namespace gputext::bench;

namespace {

/// Pairs and their model on the device.
class ResidentPairs {
public:
    ResidentPairs(const WordVectors& vectors, const TextPairs& pairs) {
        const auto scale = movers_scale(vectors, every_core());
        check(scale.status());
        check(model_.upload({vectors.elements, vectors.words * vectors.dimensions}, stream()));
        check(begins_.upload(pairs.begins, stream()));
        check(masses_.upload(pairs.masses, stream()));
        check(costs_.allocate(pairs.size(), stream()));
        check(counter_.allocate(1, stream()));
        std::vector<std::uint32_t> list(pairs.size());
        std::iota(list.begin(), list.end(), 0u);
        check(list_.upload(list, stream()));
        all_ = {model_.data(),
                static_cast<std::uint32_t>(vectors.dimensions),
                std::ldexp(1.0f, *scale),
                begins_.data(),
                masses_.data(),
                0,
                costs_.data()};
        wait();
    }

    /// The least of some passes, in seconds.
    double run(MoversMethod method, unsigned words) {
        double least = 1e30;
        for (int pass = 0; pass < 3; ++pass) {
            gpu::StreamTimer timer(true, stream());
            timer.begin();
            check(gpu::run_word_movers(method, all_, words, {list_.data(), list_.size()},
                                       counter_.data(), stream()));
            timer.end();
            wait();
            least = std::min(least, 1e-3 * timer.milliseconds());
        }
        return least;
    }

private:
    DeviceBuffer<float> model_;
    DeviceBuffer<std::uint64_t> begins_, costs_;
    DeviceBuffer<WordMass> masses_;
    DeviceBuffer<std::uint32_t> list_, counter_;
    gpu::DevicePairs all_;
};

std::size_t differing(std::span<const double> a, std::span<const double> b) {
    std::size_t count = 0;
    for (std::size_t i = 0; i < a.size(); ++i)
        count += std::bit_cast<std::uint64_t>(a[i]) != std::bit_cast<std::uint64_t>(b[i]);
    return count;
}

unsigned class_of(std::uint32_t words) {
    return *std::lower_bound(std::begin(gpu::kMovedWords), std::end(gpu::kMovedWords), words);
}

void move_words(std::uint32_t words, std::size_t dimensions, std::size_t count, std::size_t checked,
                const char* directory) {
    const auto elements = random_vectors(kVocabulary, dimensions, 1);
    const WordVectors vectors{elements.data(), kVocabulary, dimensions};
    const Pairs pairs = random_pairs(count, words, words);
    ResidentPairs resident(vectors, pairs.view());
    const double exact = resident.run(MoversMethod::exact, class_of(words));
    const double relaxed = resident.run(MoversMethod::relaxed, class_of(words));
    std::vector<double> distances(count);
    double job = 1e30;
    for (int pass = 0; pass < 2; ++pass) {
        const Clock clock;
        check(gpu::word_movers_distances({}, vectors, pairs.view(),
                                         {stream(), std::size_t{16} << 30}, ring(), every_core(),
                                         distances));
        job = std::min(job, clock.seconds());
    }
    const Clock clock;
    const auto here = word_movers_distances({}, vectors, pairs.first(checked), every_core());
    const double cpu = clock.seconds();
    check(here.status());
    std::printf(
        "%u words, %zu dimensions: exact %.3f M pairs/s resident, %.3f M as a job, %.4f M on %u "
        "cores; relaxed %.3f M resident; %zu of %zu differ from the CPU's\n",
        words, dimensions, 1e-6 * static_cast<double>(count) / exact,
        1e-6 * static_cast<double>(count) / job, 1e-6 * static_cast<double>(checked) / cpu,
        every_core().threads(), 1e-6 * static_cast<double>(count) / relaxed,
        differing(std::span(distances).first(checked), *here), checked);
    std::fflush(stdout);
    if (directory != nullptr) write_pairs(directory, vectors, pairs.first(1000), distances);
}

// ---- Mutants ----

void score_mutants(std::size_t count) {
    const auto vectors = random_vectors(kLines, kLineDimensions, 0.3f);
    const auto outputs = random_vectors(kLines, kLineDimensions, 0.3f);
    const NextWordModel model{{vectors.data(), kLines, kLineDimensions},
                              {outputs.data(), kLines, kLineDimensions}};
    std::mt19937 random(5);
    std::vector<std::uint64_t> begins{0};
    std::vector<std::uint32_t> tokens;
    Pairs pairs;
    double packing = 0;
    for (std::size_t i = 0; i < count; ++i) {
        auto reference = random_program(random);
        auto mutant = reference;
        mutate(mutant, random);
        tokens.insert(tokens.end(), mutant.begin(), mutant.end());
        begins.push_back(tokens.size());
        const Clock clock;
        pairs.append(mutant, reference);
        packing += clock.seconds();
    }

    gpu::ResidentNextWords resident;
    check(resident.load(model, ring(), stream(), every_core()));
    DeviceBuffer<std::uint64_t> begins_there;
    DeviceBuffer<std::uint32_t> tokens_there;
    DeviceBuffer<double> scratch, probabilities;
    DeviceBuffer<float> token_probabilities;
    check(begins_there.upload(begins, stream()));
    check(tokens_there.upload(tokens, stream()));
    check(scratch.allocate(tokens.size(), stream()));
    check(probabilities.allocate(count, stream()));
    check(token_probabilities.allocate(tokens.size(), stream()));
    const auto contexts = contexts_of({begins, tokens}, kLines, {});
    check(contexts.status());
    ResidentPairs resident_pairs(model.vectors, pairs.view());
    double sums = 1e30, look_ups = 1e30;
    for (int pass = 0; pass < 3; ++pass) {
        Clock clock;
        check(resident.sum(*contexts, std::uint64_t{8} << 30, stream(), every_core()));
        sums = std::min(sums, clock.seconds());
        gpu::StreamTimer timer(true, stream());
        timer.begin();
        check(resident.look_up(
            {begins_there.data(), static_cast<std::uint32_t>(count), tokens_there.data(), 0,
             tokens.size(), scratch.data(), token_probabilities.data(), probabilities.data()},
            stream()));
        timer.end();
        wait();
        look_ups = std::min(look_ups, 1e-3 * timer.milliseconds());
    }
    const double moved = resident_pairs.run(MoversMethod::exact, 32);
    const double all = sums + look_ups + moved;
    std::printf(
        "%zu mutants of %.1f lines: softmax of %zu lines %.2f ms, Prob %.2f ms, Dist %.2f ms: %.1f "
        "M programs/s resident; masses made in %.0f ms on one core\n",
        count, static_cast<double>(tokens.size()) / static_cast<double>(count), contexts->size(),
        1e3 * sums, 1e3 * look_ups, 1e3 * moved, 1e-6 * static_cast<double>(count) / all,
        1e3 * packing);

    const Clock job;
    const auto found = gpu::sequence_probabilities(
        model, {begins, tokens}, {}, {stream(), std::size_t{16} << 30}, ring(), every_core());
    const double job_seconds = job.seconds();
    const Clock cpu;
    const auto here = sequence_probabilities(model, {begins, tokens}, best_simd(), every_core());
    const double cpu_seconds = cpu.seconds();
    check(found.status());
    check(here.status());
    std::printf("Prob as a job %.1f ms, on %u cores %.1f ms; %zu of %zu differ from the CPU's\n",
                1e3 * job_seconds, every_core().threads(), 1e3 * cpu_seconds,
                differing(found->sequences, here->sequences), count);
}

/// The sums of a large vocabulary, each word a context.
void sum_vocabulary(std::size_t words, std::size_t dimensions) {
    const auto vectors = random_vectors(words, dimensions, 0.1f);
    const WordVectors view{vectors.data(), words, dimensions};
    gpu::ResidentNextWords resident;
    check(resident.load({view, view}, ring(), stream(), every_core()));
    std::vector<std::uint32_t> contexts(words);
    std::iota(contexts.begin(), contexts.end(), 0u);
    double least = 1e30;
    for (int pass = 0; pass < 2; ++pass) {
        const Clock clock;
        check(resident.sum(contexts, std::uint64_t{8} << 30, stream(), every_core()));
        least = std::min(least, clock.seconds());
    }
    std::printf("softmax of %zu words, %zu dimensions, each after each: %.0f ms, %.1f T FMA/s\n",
                words, dimensions, 1e3 * least,
                1e-12 * static_cast<double>(words) * static_cast<double>(words) *
                    static_cast<double>(dimensions) / least);
}

}  // namespace

int main(int argc, char** argv) {
    const char* const directory = argc > 1 ? argv[1] : nullptr;
    move_words(8, 100, 1'000'000, 100'000, nullptr);
    move_words(16, 100, 1'000'000, 50'000, nullptr);
    move_words(32, 100, 500'000, 20'000, directory);
    move_words(32, 300, 200'000, 10'000, nullptr);
    move_words(64, 100, 50'000, 2'000, nullptr);
    move_words(96, 100, 20'000, 1'000, nullptr);
    move_words(160, 100, 5'000, 300, nullptr);
    score_mutants(1'000'000);
    sum_vocabulary(50'000, 100);
}
