// extension/texts/stretch_reader.hpp - what reads the texts of rows in one process (text_work.hpp)

#pragma once

#include "extension/base/postgres.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpp/base/vocabulary.hpp"
#include "cpp/terms/chunked_texts.hpp"
#include "extension/texts/text_parser.hpp"
#include "extension/values/packed_rows.hpp"

namespace gputext {

/// What the columns behind the ids are, and what is wanted of them.
enum class TextKind {
    words_of_text,  // words in their order: token_reader.hpp
    words_of_array,
    terms_of_text,  // how often each row has each of its terms: term_reader.hpp
    terms_of_tsvector,
    terms_of_weights
};

/// What the records of rows are.
constexpr TextForm form_of(TextKind kind) {
    return kind == TextKind::words_of_text || kind == TextKind::words_of_array ? TextForm::words
                                                                               : TextForm::terms;
}

/// Reads row after row in one process, and appends a record of each to its output
/// (cpp/terms/chunked_texts.hpp). Functions raise errors, after which it is of no use.
class StretchReader {
public:
    /// `config` is the text search configuration of texts.
    StretchReader(Oid config, std::size_t memory_limit) : output_(memory_limit), parser_(config) {}
    virtual ~StretchReader() = default;

    /// Reads the columns of a row; false when there is something wrong with it.
    virtual bool read_row(const Datum* values) = 0;
    const Vocabulary& vocabulary() const { return vocabulary_; }
    PackedBytes& output() { return output_; }

protected:
    /// Calls visit(number, lexeme) for each lexeme of the piece of text that was parsed last, with
    /// its number in the vocabulary, until that returns false; returns whether it never did. Inside
    /// attempt().
    template <class Visit>
    bool for_each_lexeme(const Visit& visit) {
        numbers_.resize(parser_.lasting(), Vocabulary::kNone);
        for (const Lexeme& lexeme : parser_.lexemes())
            if (!visit(number_of(lexeme.number), lexeme)) return false;
        return true;
    }

    PackedBytes output_;
    TextParser parser_;
    Vocabulary vocabulary_;

private:
    std::uint32_t number_of(std::uint32_t lexeme) {
        if (lexeme >= TextParser::kLasting) return vocabulary_.add(parser_.text(lexeme));
        std::uint32_t& number = numbers_[lexeme];
        if (number == Vocabulary::kNone) number = vocabulary_.add(parser_.text(lexeme));
        return number;
    }

    std::vector<std::uint32_t> numbers_;  // in the vocabulary, of lexemes that last
};

}  // namespace gputext
