// cpp/link/word_similarity.hpp - counting, weighing and comparing words
// (cpp/thesaurus/word_similarity.hpp) at gputextd

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "cpp/base/status.hpp"
#include "cpp/base/stop.hpp"
#include "cpp/link/answers.hpp"
#include "cpp/link/input_files.hpp"
#include "cpp/link/wire.hpp"
#include "cpp/thesaurus/cooccurrence_table.hpp"
#include "cpp/thesaurus/cooccurrences.hpp"
#include "cpp/thesaurus/feature_weights.hpp"
#include "cpp/thesaurus/word_similarity.hpp"

namespace gputext {

constexpr WordWeight last_of(WordWeight) {
    return WordWeight::count;
}

constexpr WordMeasure last_of(WordMeasure) {
    return WordMeasure::jaccard;
}

void fields(auto& archive, Like<CooccurrenceShape> auto& shape) {
    archive(shape.words, shape.window, shape.positions);
}

void fields(auto& archive, Like<WeightParameters> auto& weighting) {
    archive(weighting.weight, weighting.discount, weighting.features);
}

void fields(auto& archive, Like<SimilarityParameters> auto& parameters) {
    archive(parameters.measure, parameters.top_k, parameters.memory_limit);
}

/// The neighbors of words by what stands beside them in texts, or by counts of that; in the
/// answer, distances are similarities. Files: u32 words[rows] and u32 positions[rows] of a stream
/// of tokens (cpp/thesaurus/cooccurrences.hpp), each in a sealed memfd or a plain file; when
/// counted, CountedTriple[rows] (cpp/thesaurus/cooccurrence_table.hpp), in such a file, and u32
/// order[words], in a sealed memfd.
struct SubmitWordSimilarity {
    static constexpr std::uint16_t type = 23;
    static constexpr const char* operation = "word_similarity";
    JobLimits limits;
    CooccurrenceShape shape;  // of counts: words alone
    bool counted = false;
    std::uint64_t count = 0;  // of tokens, or of triples
    WeightParameters weighting;
    SimilarityParameters parameters;

    static void fields(auto& archive, auto& self) {
        archive(self.limits, self.shape, self.counted, self.count, self.weighting, self.parameters);
    }
    bool consistent() const { return shape.words != UINT32_MAX && count <= kMostStored; }
    std::size_t files() const { return 2; }
    std::uint64_t rows() const { return count; }
    std::uint64_t bytes() const {
        return count * (counted ? sizeof(CountedTriple) : 2 * sizeof(std::uint32_t));
    }
};

/// Tokens of texts, in files as in VectorFiles; or counts, and the order of their words.
struct WordSimilarityRequest {
    using Packed = PackedRequest<SubmitWordSimilarity, KnnAnswer>;

    CooccurrenceShape shape;               // of counts: words alone
    bool counted = false;                  // else tokens
    std::uint64_t rows = 0;                // tokens, or CountedTriples
    int first = -1;                        // the words of the tokens; or the CountedTriples
    int second = -1;                       // the positions of the tokens
    std::span<const std::uint32_t> order;  // of the words that are counted; it is copied
    WeightParameters weighting;
    SimilarityParameters parameters;  // of all words; simd is the server's own choice
    JobLimits limits = {};

    Status pack(Packed& packed, Stop stop) const {
        SubmitWordSimilarity& message = packed.message;
        message.shape = shape;
        message.counted = counted;
        message.count = rows;
        message.weighting = weighting;
        message.parameters = parameters;
        packed.expected.queries = packed.expected.items = shape.words;
        packed.files.add(first);
        if (counted) return packed.files.add_copy(order, stop);
        packed.files.add(second);
        return {};
    }
};

}  // namespace gputext
