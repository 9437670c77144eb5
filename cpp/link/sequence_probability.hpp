// cpp/link/sequence_probability.hpp - sequence_probabilities()
// (cpp/embeddings/sequence_probability.hpp) at gputextd

#pragma once

#include <cstddef>
#include <cstdint>

#include "cpp/base/status.hpp"
#include "cpp/base/stop.hpp"
#include "cpp/embeddings/sequence_probability.hpp"
#include "cpp/link/input_files.hpp"
#include "cpp/link/mapped_file.hpp"
#include "cpp/link/wire.hpp"

namespace gputext {

/// How likely sequences of a model's words are. Files: the matrices of the model's vectors and of
/// its output vectors; of the sequences, u64 begins[sequences + 1], in a sealed memfd, and u32
/// tokens[tokens], in a sealed memfd or a plain file.
struct SubmitSequenceProbability {
    static constexpr std::uint16_t type = 28;
    static constexpr const char* operation = "sequence_probability";
    JobLimits limits;
    MatrixShape vectors;  // of the model's words: dense, float32
    MatrixShape outputs;  // of the same shape
    std::uint32_t sequences = 0;
    std::uint64_t tokens = 0;  // of all sequences

    static void fields(auto& archive, auto& self) {
        archive(self.limits, self.vectors, self.outputs, self.sequences, self.tokens);
    }
    bool consistent() const {
        return vectors.consistent_model() && outputs.consistent_model() &&
               vectors.rows == outputs.rows && vectors.dimensions == outputs.dimensions &&
               sequences != UINT32_MAX && tokens <= kMostStored;
    }
    std::size_t files() const { return vectors.files() + outputs.files() + 2; }
    std::uint64_t rows() const { return sequences; }
    std::uint64_t bytes() const {
        return vectors.bytes() + outputs.bytes() + tokens * sizeof(std::uint32_t);
    }
};

/// File: double[sequences] and float[tokens], in a sealed memfd.
struct SequenceProbabilityReply {
    static constexpr std::uint16_t type = 29;
    JobReport report;
    std::uint32_t sequences = 0;
    std::uint64_t tokens = 0;

    static void fields(auto& archive, auto& self) {
        archive(self.report, self.sequences, self.tokens);
    }
    bool consistent() const { return tokens <= kMostStored; }
};

struct SequenceProbabilityAnswer {
    std::uint32_t sequences = 0;  // of the request
    std::uint64_t tokens = 0;     // the same
    SequenceProbabilityReply summary;
    MappedFile file;

    // As in KnnAnswer.
    Result<std::uint64_t> file_size() const;
    Result<SequenceProbabilities> read(Stop stop = {}) const noexcept;
};

struct SequenceProbabilityRequest {
    using Packed = PackedRequest<SubmitSequenceProbability, SequenceProbabilityAnswer>;

    NextWordModel model;
    int elements = -1;         // of the vectors, as in VectorFiles
    int output_elements = -1;  // of the output vectors
    TokenSequences sequences;  // begins are copied
    int tokens = -1;           // sequences.tokens and nothing else, as elements
    JobLimits limits = {};

    Status pack(Packed& packed, Stop stop) const;
};

}  // namespace gputext
