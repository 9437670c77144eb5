// cpp/link/word2vec.hpp - a training (cpp/embeddings/word2vec.hpp) at gputextd

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "cpp/base/status.hpp"
#include "cpp/base/stop.hpp"
#include "cpp/embeddings/trainer.hpp"
#include "cpp/embeddings/word2vec.hpp"
#include "cpp/link/input_files.hpp"
#include "cpp/link/mapped_file.hpp"
#include "cpp/link/wire.hpp"

namespace gputext {

constexpr WordModel last_of(WordModel) {
    return WordModel::cbow;
}

void fields(auto& archive, Like<TrainingParameters> auto& parameters) {
    archive(parameters.model, parameters.dimensions, parameters.window, parameters.negative,
            parameters.epochs, parameters.replicas, parameters.batch, parameters.learning_rate,
            parameters.damping, parameters.seed, parameters.far_count, parameters.farthest_from,
            parameters.average_every);
}

/// Vectors of words from the texts that they stand in, and from those that the first words have
/// already. Files: u32 words[tokens] and u32 positions[tokens] of a stream of tokens, each in a
/// sealed memfd or a plain file; u64 counts[words], in a sealed memfd; with known words, float
/// vectors[known * dimensions] and as many of their output vectors, in a sealed memfd or a plain
/// file.
struct SubmitWord2Vec {
    static constexpr std::uint16_t type = 24;
    static constexpr const char* operation = "word2vec";
    JobLimits limits;
    std::uint64_t host_memory_limit = 0;
    std::uint32_t words = 0;  // of the vocabulary
    std::uint64_t tokens = 0;
    std::uint32_t known = 0;  // words that have vectors, the first ones
    TrainingParameters parameters;
    double sample = 0;  // as in word_sampling()

    static void fields(auto& archive, auto& self) {
        archive(self.limits, self.host_memory_limit, self.words, self.tokens, self.known,
                self.parameters, self.sample);
    }
    bool consistent() const {
        return words != UINT32_MAX && known <= words && tokens <= kMostStored &&
               parameters.dimensions <= TrainerParameters::kMostDimensions;
    }
    std::size_t files() const { return known > 0 ? 4 : 3; }
    std::uint64_t rows() const { return tokens; }
    std::uint64_t bytes() const {
        return 2 * tokens * sizeof(std::uint32_t) + words * sizeof(std::uint64_t) +
               known_floats() * sizeof(float);
    }
    std::uint64_t known_floats() const { return std::uint64_t{2} * known * parameters.dimensions; }
};

/// File: float vectors[words * dimensions] and as many of the output vectors, in a sealed memfd.
struct Word2VecReply {
    static constexpr std::uint16_t type = 25;
    JobReport report;
    std::uint32_t words = 0;
    std::uint32_t dimensions = 0;
    std::uint64_t hub_lists = 0;  // as in Training::Hub
    std::uint64_t hub_of = 0;     // the same

    static void fields(auto& archive, auto& self) {
        archive(self.report, self.words, self.dimensions, self.hub_lists, self.hub_of);
    }
    bool consistent() const {
        return words != UINT32_MAX && dimensions <= TrainerParameters::kMostDimensions;
    }
};

/// Finite numbers.
struct Word2VecAnswer {
    std::uint32_t words = 0;       // of the request
    std::uint32_t dimensions = 0;  // the same
    Word2VecReply summary;
    MappedFile file;

    // As in KnnAnswer.
    Result<std::uint64_t> file_size() const;
    Result<TrainingModel> read(Stop stop = {}) const noexcept;
};

/// Tokens of texts, in files as in VectorFiles.
struct Word2VecRequest {
    using Packed = PackedRequest<SubmitWord2Vec, Word2VecAnswer>;

    TrainingParameters parameters;
    double sample = 0;                      // of word_sampling()
    std::uint64_t tokens = 0;               // of the stream
    int words = -1;                         // theirs
    int positions = -1;                     // theirs
    std::span<const std::uint64_t> counts;  // of the vocabulary; they are copied
    std::uint32_t known_words = 0;          // the first ones, which have vectors
    int known = -1;                         // their vectors, and then their outputs
    std::uint64_t host_memory_limit = 0;
    JobLimits limits = {};

    Status pack(Packed& packed, Stop stop) const;
};

}  // namespace gputext
