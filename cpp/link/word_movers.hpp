// cpp/link/word_movers.hpp - word_movers_distances() (cpp/embeddings/word_movers.hpp) at gputextd

#pragma once

#include <cstddef>
#include <cstdint>

#include "cpp/base/status.hpp"
#include "cpp/base/stop.hpp"
#include "cpp/embeddings/word_movers.hpp"
#include "cpp/link/answers.hpp"
#include "cpp/link/input_files.hpp"
#include "cpp/link/wire.hpp"

namespace gputext {

constexpr MoversMethod last_of(MoversMethod) {
    return MoversMethod::relaxed;
}

void fields(auto& archive, Like<MoversParameters> auto& parameters) {
    archive(parameters.method, parameters.memory_limit);
}

/// Answered by a distance for each pair of texts. Files: the matrix of the model's vectors; of the
/// pairs (cpp/embeddings/word_movers.hpp), u64 begins[2 * pairs + 1] and u32 totals[pairs], each in
/// a sealed memfd, and WordMass[masses], in a sealed memfd or a plain file.
struct SubmitWordMovers {
    static constexpr std::uint16_t type = 26;
    static constexpr const char* operation = "word_movers_distance";
    JobLimits limits;
    MatrixShape vectors;  // of the model's words: dense, float32
    std::uint32_t pairs = 0;
    std::uint64_t masses = 0;  // of all pairs
    MoversParameters parameters;

    static void fields(auto& archive, auto& self) {
        archive(self.limits, self.vectors, self.pairs, self.masses, self.parameters);
    }
    bool consistent() const {
        return vectors.consistent_model() && pairs != UINT32_MAX && masses <= kMostStored;
    }
    std::size_t files() const { return vectors.files() + 3; }
    std::uint64_t rows() const { return pairs; }
    std::uint64_t bytes() const { return vectors.bytes() + masses * sizeof(WordMass); }
};

struct WordMoversRequest {
    using Packed = PackedRequest<SubmitWordMovers, ScoresAnswer>;

    MoversParameters parameters;  // simd is the server's own choice
    WordVectors vectors;
    int elements = -1;  // of the vectors, as in VectorFiles
    TextPairs pairs;    // begins and totals are copied
    int masses = -1;    // pairs.masses and nothing else, as elements
    JobLimits limits = {};

    Status pack(Packed& packed, Stop stop) const {
        if (pairs.size() >= UINT32_MAX) return too_many("pairs");
        SubmitWordMovers& message = packed.message;
        message.pairs = static_cast<std::uint32_t>(pairs.size());
        message.masses = pairs.masses.size();
        message.parameters = parameters;
        packed.expected.rows = message.pairs;
        GPUTEXT_TRY(packed.files.add(model_files(vectors, elements), message.vectors, stop));
        GPUTEXT_TRY(packed.files.add_copy(pairs.begins, stop));
        GPUTEXT_TRY(packed.files.add_copy(pairs.totals, stop));
        packed.files.add(masses);
        return {};
    }
};

}  // namespace gputext
