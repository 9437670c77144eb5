// extension/texts/text_words.hpp - the words of texts in order, for functions of neighboring words

#pragma once

#include "extension/base/postgres.hpp"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "cpp/base/vocabulary.hpp"
#include "cpp/thesaurus/cooccurrences.hpp"
#include "extension/texts/column_texts.hpp"
#include "extension/values/packed_rows.hpp"

namespace gputext {

/// Words of texts, mostly the most frequent ones.
struct ChosenWords {
    /// Theirs in the reader's vocabulary, the most frequent first; Vocabulary::kNone for one that
    /// the texts do not have.
    std::vector<std::uint32_t> numbers;
    std::vector<std::uint64_t> counts;  // how often each occurs
};

/// The words of the vocabulary in the texts, as cpp/thesaurus/cooccurrences.hpp wants them.
class TokenRows {
public:
    explicit TokenRows(std::size_t memory_limit)
        : words_(memory_limit / 2), positions_(memory_limit / 2) {}

    void append(std::span<const std::uint32_t> words, std::span<const std::uint32_t> positions);
    void finish();
    void release();
    TokenStream view() const;
    std::size_t size() const { return words_.size() / sizeof(std::uint32_t); }
    std::size_t bytes() const { return words_.size() + positions_.size(); }

    /// For another process: the words and the positions.
    PackedBytes& words() { return words_; }
    PackedBytes& positions() { return positions_; }

private:
    PackedBytes words_, positions_;
};

/// The words of all texts of a query, numbered. Functions raise errors.
class TextWords {
public:
    /// `config` is the text search configuration of texts.
    TextWords(Oid config, std::size_t memory_limit)
        : config_(config), memory_limit_(memory_limit) {}

    /// Reads the texts, or arrays of words.
    void read(StoredValues& texts, bool arrays);

    std::size_t memory_limit() const { return memory_limit_; }
    const Vocabulary& vocabulary() const { return vocabulary_; }
    /// How often a word of the vocabulary occurs.
    std::uint64_t count(std::uint32_t number) const { return counts_[number]; }

    /// Gives the memory of the texts back, in the place of take_chosen().
    void release();

    /// Chooses the `most` most frequent words among those that occur at least `min_count` times;
    /// among equally frequent words, those whose bytes come first.
    void choose(std::uint64_t min_count, std::size_t most, ChosenWords& chosen) const;

    /// Appends the chosen words of the texts, numbered by their order. Gives the memory of the
    /// texts back, and keeps the vocabulary.
    void take_chosen(const ChosenWords& chosen, TokenRows& rows);

private:
    void count_words();
    Status add_words(Execution& execution);

    Oid config_;
    std::size_t memory_limit_;
    std::optional<ColumnTexts> texts_;
    Vocabulary vocabulary_;
    std::vector<std::uint64_t> counts_;                     // of the vocabulary
    std::vector<std::vector<std::uint64_t>> chunk_counts_;  // of the words of chunks
    std::vector<std::uint64_t> positions_;                  // before each part of the texts
    ChunkNumbers numbers_;                                  // of the words of chunks
};

}  // namespace gputext
