// extension/rows/token_reader.hpp - reads the words of texts in order, for functions of
// neighbouring words

#pragma once

#include "extension/base/postgres.hpp"

extern "C" {
#include "utils/array.h"
}

#include <string_view>
#include <vector>

#include "cpp/base/vocabulary.hpp"
#include "cpp/thesaurus/cooccurrences.hpp"
#include "extension/rows/packed_rows.hpp"
#include "extension/rows/text_parser.hpp"

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

    void append(const std::vector<std::uint32_t>& words,
                const std::vector<std::uint32_t>& positions);
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

/// Reads one text after another and numbers their words. Every token that the server's text search
/// finds takes a place, whether it is a stop word or not, and so does each element of an array.
/// Functions raise errors, after which it is of no use.
class TokenReader {
public:
    /// `config` is the text search configuration of texts.
    TokenReader(Oid config, std::size_t memory_limit) : parser_(config), packed_(memory_limit) {}

    void read_text(const varlena* text);
    /// Reads words of a text[]; nulls keep their places.
    void read_array(const ArrayType* words);

    std::size_t texts() const { return texts_; }
    std::size_t bytes() const { return packed_.size(); }
    const Vocabulary& vocabulary() const { return vocabulary_; }
    /// How often a word of the vocabulary occurs.
    std::uint64_t count(std::uint32_t number) const { return counts_[number]; }

    /// Chooses the `most` most frequent words among those that occur at least `min_count` times;
    /// among equally frequent words, those whose bytes come first.
    void choose(std::uint64_t min_count, std::size_t most, ChosenWords& chosen) const;

    /// After the last text: appends their chosen words, numbered by their order. Gives the
    /// reader's own memory back, but for the vocabulary.
    void take_chosen(const ChosenWords& chosen, TokenRows& rows);

private:
    struct Token {
        std::uint32_t number, position;
    };

    void add_piece();
    std::uint32_t number_of(std::uint32_t lexeme);
    std::uint32_t number_of(std::string_view word);
    void add_token(std::uint32_t number, std::uint64_t position);
    void append_tokens();
    void end_text(std::uint64_t next);
    void renumber(std::size_t begin, std::size_t end);

    TextParser parser_;
    std::vector<std::uint32_t> numbers_;  // in the vocabulary, of lexemes that last
    Vocabulary vocabulary_;
    std::vector<std::uint64_t> counts_;  // of the vocabulary
    std::vector<Token> tokens_;          // on their way
    PackedBytes packed_;                 // tokens
    std::uint64_t next_ = 1;             // the first position that nothing has
    std::size_t texts_ = 0;
    std::vector<std::uint32_t> order_;  // of the chosen words, by their numbers in the vocabulary
    std::vector<std::uint32_t> part_words_, part_positions_;
};

}  // namespace gputext
