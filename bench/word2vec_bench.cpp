// bench/word2vec_bench.cpp - word2vec training on the CPU, on a file of words
//
// Arguments: the file, a line a text, and name=value for
//
//     threads (2), model (skipgram, cbow), dimensions (100), window (5), negative (5), epochs (5)
//     learning_rate (0.05), sample (1e-4), min_count (5), seed (1), batch (4096), damping (0.5)
//     farthest (0), farthest_from (half of the epochs, counted from 0), replicas (1), average_every
//     (4194304) simd (the best: avx512, avx2, portable) out     a file to write the vectors to, in
//     the text format of word2vec

#include <chrono>
#include <cstdio>
#include <string>

#include "bench/word_training.hpp"

using namespace gputext;
using bench::Options;

namespace {

Simd simd_of(const std::string& name) {
    for (const Simd simd : {Simd::portable, Simd::avx2, Simd::avx512})
        if (name == simd_name(simd)) return simd;
    return best_simd();
}

int fail(const Status& status) {
    std::fprintf(stderr, "%s\n", status.message().c_str());
    return 1;
}

}  // namespace

int main(int count, char** arguments) {
    if (count < 2) {
        std::fprintf(stderr, "usage: word2vec_bench FILE [name=value...]\n");
        return 2;
    }
    const Options options(count, arguments);
    const TrainingParameters parameters = bench::training_parameters(options);
    const bench::WordCorpus corpus(arguments[1], CooccurrenceShape::kMostWindow,
                                   options.whole<std::uint64_t>("min_count", 5), UINT32_MAX);
    const std::vector<std::uint64_t> counts = bench::word_counts(corpus);
    if (Status status = check_training(parameters, counts.size()); !status.ok())
        return fail(status);

    const WordSampling sampling = word_sampling(counts, options.number("sample", 1e-4));
    TrainingModel model;
    Execution execution(options.whole("threads", 2u));
    if (Status status = start_vectors(parameters, counts.size(), model, execution); !status.ok())
        return fail(status);
    const TokenStream tokens = corpus.stream();
    auto trainer = cpu_word_trainer(parameters, sampling, tokens, simd_of(options.text("simd")));
    if (!trainer.ok()) return fail(trainer.status());
    Training training(parameters, counts.size(), tokens.words.size(), std::move(model));
    const auto begin = std::chrono::steady_clock::now();
    const Status status =
        training.take_part(**trainer, farthest_search(parameters, nearest_on_cpu), execution);
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (!status.ok()) return fail(status);
    const TrainingCount done = training.count();
    std::printf("%zu words, %.0f trained on in %.2f s: %.0f words/s on %u threads, loss %.4f\n",
                counts.size(), static_cast<double>(done.tokens), seconds,
                static_cast<double>(done.tokens) / seconds, execution.threads(),
                done.loss / static_cast<double>(done.steps));
    if (const std::string out = options.text("out");
        !out.empty() && !bench::write_vectors(out, corpus, training.model(), parameters.dimensions))
        return 1;
    return 0;
}
