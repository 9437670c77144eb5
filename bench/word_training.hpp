// bench/word_training.hpp - shared code of the benchmarks of word2vec

#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "bench/options.hpp"
#include "bench/word_corpus.hpp"
#include "cpp/embeddings/word2vec.hpp"

namespace gputext::bench {

/// By their names, the defaults where they are not given.
inline TrainingParameters training_parameters(const Options& options) {
    TrainingParameters p;
    p.model = options.text("model") == "cbow" ? WordModel::cbow : WordModel::skipgram;
    p.dimensions = options.whole("dimensions", p.dimensions);
    p.window = options.whole("window", p.window);
    p.negative = options.whole("negative", p.negative);
    p.epochs = options.whole("epochs", p.epochs);
    p.replicas = options.whole("replicas", p.replicas);
    p.average_every = options.whole("average_every", p.average_every);
    p.batch = options.whole("batch", p.batch);
    p.learning_rate = static_cast<float>(options.number("learning_rate", p.learning_rate));
    p.damping = static_cast<float>(options.number("damping", p.damping));
    p.seed = options.whole("seed", p.seed);
    p.far_count = options.whole("farthest", p.far_count);
    p.farthest_from = options.whole("farthest_from", p.epochs / 2);
    return p;
}

inline std::vector<std::uint64_t> word_counts(const WordCorpus& corpus) {
    std::vector<std::uint64_t> counts(corpus.names.size());
    for (const std::uint32_t word : corpus.stream().words) ++counts[word];
    return counts;
}

/// In the text format of word2vec.
inline bool write_vectors(const std::string& to, const WordCorpus& corpus,
                          const TrainingModel& model, std::uint32_t dimensions) {
    std::FILE* const file = std::fopen(to.c_str(), "w");
    if (file == nullptr) return false;
    std::fprintf(file, "%zu %u\n", corpus.names.size(), dimensions);
    for (std::size_t word = 0; word < corpus.names.size(); ++word) {
        std::fputs(corpus.names[word].c_str(), file);
        for (std::uint32_t i = 0; i < dimensions; ++i)
            std::fprintf(file, " %.6g", static_cast<double>(model.vectors[word * dimensions + i]));
        std::fputc('\n', file);
    }
    return std::fclose(file) == 0;
}

}  // namespace gputext::bench
