// bench/gpu_word2vec_bench.cu - word2vec training on one GPU, on a file of words
//
// Arguments: the file, a line a text, and name=value for what bench/word2vec_bench.cpp says, but
// threads and simd, and for
//
//     passes (1)  of which the fastest is told of
//     runs        a file with more such arguments, a training a line, all on the same words
//     binary      of the n-th training (from 0) the vectors go to this name, n and .f32, and the
//                 words to this name and words.txt
//
// Words a second are those of the texts, those that subsampling leaves out included, as many times
// as there are epochs, by the seconds that the trainer takes for its parts; and by those of the
// whole training, which copies the vectors to the host after each epoch. Bytes are those of the
// rows that windows read and of the sums that they add to, each as often as it is in a window.

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "bench/gpu_resources.hpp"
#include "bench/word_training.hpp"
#include "cpp/knn/knn.hpp"
#include "kernels/embeddings/trainer.hpp"
#include "kernels/knn/knn.hpp"

using namespace gputext;
using bench::check;
using bench::Clock;
using bench::every_core;
using bench::Options;

namespace {

gpu::DeviceWork work() {
    return {bench::stream(), std::size_t{60} << 30};
}

/// Says how long parts take.
class TimedTrainer final : public WordTrainer {
public:
    explicit TimedTrainer(WordTrainer& trainer) : trainer_(trainer) {}

    Status load(const TrainingModel& model) override { return trainer_.load(model); }
    Status store(TrainingModel& model) override { return trainer_.store(model); }
    Status train(const TrainingPart& part, Execution& execution, TrainingCount& count) override {
        const Clock clock;
        TrainingCount own;
        const Status status = trainer_.train(part, execution, own);
        seconds += clock.seconds();
        losses.resize(part.epoch + 1);
        losses[part.epoch] = own.loss / static_cast<double>(own.steps);
        count.add(own);
        return status;
    }

    double seconds = 0;
    std::vector<double> losses;  // a step, of each epoch

private:
    WordTrainer& trainer_;
};

struct Measured {
    double seconds = 0, whole = 0;
    TrainingCount count;
    gpu::WordTrainerTimes times;
    std::vector<double> losses;
    TrainingModel model;
};

Measured train(const TrainingParameters& parameters, const bench::WordCorpus& corpus,
               const WordSampling& sampling) {
    Measured measured;
    const std::size_t words = corpus.names.size();
    auto trainer = gpu::word_trainer(parameters, sampling, corpus.stream(), work(), bench::ring(),
                                     every_core(), &measured.times);
    check(trainer.status());
    TimedTrainer timed(**trainer);
    TrainingModel model;
    check(start_vectors(parameters, words, model, every_core()));
    Training training(parameters, words, corpus.stream().words.size(), std::move(model));
    const FarthestSearch search = farthest_search(
        parameters,
        [](const KnnParameters& wanted, const Vectors& queries, const Vectors& items,
           Execution& execution, Neighbors& answer) -> Status {
            auto found = gpu::knn(wanted, queries, items, {}, work(), bench::ring(), execution);
            if (found.ok()) answer = std::move(*found);
            return found.status();
        });
    const Clock clock;
    check(training.take_part(timed, search, every_core()));
    measured.whole = clock.seconds();
    measured.seconds = timed.seconds;
    measured.losses = timed.losses;
    measured.count = training.count();
    measured.model = training.model();
    return measured;
}

void tell(const std::string& what, const TrainingParameters& parameters, const Measured& measured) {
    const auto words = static_cast<double>(measured.count.tokens);
    const auto windows = static_cast<double>(measured.count.windows);
    const double outputs = parameters.negative + 1;
    const double contexts = parameters.model == WordModel::cbow
                                ? parameters.window + 1  // on average, but for the ends of texts
                                : static_cast<double>(measured.count.steps) / windows / outputs;
    const double bytes = windows * (contexts + outputs) * parameters.dimensions * 8;
    std::printf(
        "%s: %.1f M words/s (%.1f M with copies to the host); %.3f s, on the device entries "
        "%.1f ms, steps %.1f ms in %llu launches; %.1f M windows/s, %.2f us a step, %.0f GB/s; "
        "loss",
        what.c_str(), words / measured.seconds / 1e6, words / measured.whole / 1e6,
        measured.seconds, measured.times.entries_ms, measured.times.steps_ms,
        static_cast<unsigned long long>(measured.times.launches),
        windows / measured.times.steps_ms / 1e3,
        measured.times.steps_ms * 1e3 / static_cast<double>(measured.times.steps),
        bytes / measured.times.steps_ms / 1e6);
    for (const double loss : measured.losses) std::printf(" %.4f", loss);
    std::printf("\n");
    std::fflush(stdout);
}

void write_binary(const std::string& to, const TrainingModel& model) {
    std::ofstream file(to, std::ios::binary);
    file.write(reinterpret_cast<const char*>(model.vectors.data()),
               static_cast<std::streamsize>(model.vectors.size() * sizeof(float)));
}

/// One training of those that are asked for.
void run(const std::string& what, const Options& options, const bench::WordCorpus& corpus,
         const std::vector<std::uint64_t>& counts, const std::string& binary) {
    const TrainingParameters parameters = bench::training_parameters(options);
    check(check_training(parameters, counts.size()));
    const WordSampling sampling = word_sampling(counts, options.number("sample", 1e-4));
    Measured best;
    for (int pass = 0; pass < options.whole("passes", 1); ++pass) {
        Measured measured = train(parameters, corpus, sampling);
        if (pass == 0 || measured.seconds < best.seconds) best = std::move(measured);
    }
    tell(what, parameters, best);
    if (!binary.empty()) write_binary(binary, best.model);
    if (const std::string out = options.text("out");
        !out.empty() && !bench::write_vectors(out, corpus, best.model, parameters.dimensions))
        check({ErrorCode::io_error, "could not write " + out});
}

}  // namespace

int main(int count, char** arguments) {
    if (count < 2) {
        std::fprintf(stderr, "usage: gpu_word2vec_bench FILE [name=value...]\n");
        return 2;
    }
    const Options options(count, arguments);
    const bench::WordCorpus corpus(arguments[1], CooccurrenceShape::kMostWindow,
                                   options.whole<std::uint64_t>("min_count", 5), UINT32_MAX);
    const std::vector<std::uint64_t> counts = bench::word_counts(corpus);
    std::printf("%zu words, %zu of the texts are among them\n", counts.size(),
                corpus.stream().words.size());
    const std::string runs = options.text("runs"), binary = options.text("binary");
    if (!binary.empty()) {
        std::ofstream names(binary + "words.txt");
        for (const std::string& name : corpus.names) names << name << '\n';
    }
    const auto name_of = [&](int number) {
        return binary.empty() ? "" : binary + std::to_string(number) + ".f32";
    };
    if (runs.empty()) {
        run("training", options, corpus, counts, name_of(0));
        return 0;
    }
    std::ifstream file(runs);
    int number = 0;
    for (std::string line; std::getline(file, line); ++number) {
        std::vector<std::string> words(arguments, arguments + count);
        std::istringstream stream(line);
        for (std::string word; stream >> word;) words.push_back(word);
        std::vector<char*> pointers;
        for (std::string& word : words) pointers.push_back(word.data());
        run(line, Options(static_cast<int>(pointers.size()), pointers.data()), corpus, counts,
            name_of(number));
    }
    return 0;
}
