// cpp/documents/sketch_model_learner.hpp - learns models of sketches from documents
//
// Documents are divided into kinds by their characters: the kind of which sketches leave the most
// pairs is split in two by k-means (Steinbach, Karypis, Kumar 2000: bisecting k-means), again and
// again. Then each kind gets as many bins, and halves or not, as leave few pairs for the bytes that
// they take (a greedy choice by pairs excluded a byte, within the bytes of all).

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "cpp/base/characters.hpp"
#include "cpp/base/execution.hpp"
#include "cpp/base/status.hpp"
#include "cpp/base/stop.hpp"
#include "cpp/documents/sketch_model.hpp"

namespace gputext {

class SketchCounts;

/// A document that models are learned from.
struct LearnedDocument {
    std::uint32_t length;  // in characters
    std::array<std::uint16_t, kLetterCells> letters;
    std::array<std::uint16_t, 2 * kGramCells> grams;
};

/// Takes 4.6 KB for each document.
class SketchModelLearner {
public:
    SketchModelLearner();
    ~SketchModelLearner();

    /// Its first 32,768 bytes; ignores a document that is too short to tell something. When `stop`
    /// says so it ends early, with nothing learned.
    void add(Bytes document, const CharacterLengths& lengths, Stop stop = {});

    /// The number of added documents that were long enough.
    std::size_t documents() const { return documents_.size(); }

    /// So many models at most, whose sketches of the documents have so many bins at most on
    /// average; the same ones on any number of threads. O(models * bins * documents), with a fixed
    /// number of pairs for each document: about a second of one thread for 16 models of 3,200
    /// documents. Requires a document. Error: cancelled.
    Result<std::vector<OwnedSketchModel>> learn(std::size_t bins, std::size_t most_models,
                                                Execution& execution) const;

private:
    std::unique_ptr<SketchCounts> counts_;
    std::vector<LearnedDocument> documents_;
};

}  // namespace gputext
