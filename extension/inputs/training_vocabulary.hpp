// extension/inputs/training_vocabulary.hpp - vocabulary of a training: the words of the texts and
// of an earlier model

#pragma once

#include "extension/base/postgres.hpp"

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "extension/inputs/model_query.hpp"
#include "extension/texts/text_words.hpp"
#include "extension/values/packed_rows.hpp"

namespace gputext {

/// Numbers words as cpp/embeddings/word2vec.hpp wants them: those that are known first, then
/// new ones, either by how often they occur in all, and among equals by their bytes. The numbers
/// depend on no order of rows. Functions raise errors.
class TrainingVocabulary {
public:
    TrainingVocabulary(Oid config, std::size_t memory_limit)
        : model(memory_limit),
          texts(config, memory_limit),
          tokens(memory_limit),
          known(memory_limit) {}

    // Filled in this order.
    ModelRows model;  // that training goes on from, perhaps empty
    TextWords texts;

    /// Once both are read: chooses the words of the model and those that the texts have so often,
    /// and fills what follows. Gives the memory of the model's vectors back.
    void choose(std::uint32_t min_count);

    ChosenWords chosen;  // by their numbers; Vocabulary::kNone for a word that the texts have not
    TokenRows tokens;
    PackedBytes known;  // vectors of the known words, and behind all of these their outputs

    std::uint32_t size() const { return static_cast<std::uint32_t>(chosen.numbers.size()); }
    std::uint32_t known_words() const { return static_cast<std::uint32_t>(model.words()); }
    std::span<const float> known_vectors() const;
    std::string_view word(std::uint32_t number) const;
    /// All numbers, the most frequent word's first. Inside attempt().
    std::vector<std::uint32_t> by_frequency() const;
    /// As PackedBytes::release().
    void release();

private:
    bool more_frequent(std::uint32_t a, std::uint32_t b) const;
    void choose_known();
    void choose_new(std::uint32_t min_count);
    void pack_known();

    std::vector<std::uint32_t> rows_;  // of the model, by the known words' numbers
    ChosenWords of_texts_;             // while they are chosen
};

}  // namespace gputext
