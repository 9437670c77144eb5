// extension/rows/token_reader.hpp - reads the words of texts in their order, in one process

#pragma once

#include "extension/base/postgres.hpp"

extern "C" {
#include "utils/array.h"
}

#include <string_view>
#include <vector>

#include "extension/rows/stretch_reader.hpp"
#include "extension/rows/text_parser.hpp"

namespace gputext {

/// A word at a position, which is counted from 1 in each stretch of texts. The output of a
/// TokenReader consists of them.
struct Token {
    /// The number behind the last word of a row, with TextKind::words_of_rows.
    static constexpr std::uint32_t kEndOfRow = UINT32_MAX;

    std::uint32_t number, position;
};

/// Reads one text after another and numbers their words. Every token that the server's text search
/// finds takes a position, whether it is a stop word or not, and so does each element of an array.
/// Functions raise errors, after which it is of no use.
class TokenReader final : public StretchReader {
public:
    /// `kind` is one of words; `config` is the text search configuration of texts.
    TokenReader(TextKind kind, Oid config, std::size_t memory_limit)
        : StretchReader(memory_limit), kind_(kind), parser_(config) {}

    bool read_row(const Datum* values) override;
    std::uint64_t end_stretch() override;
    const Vocabulary& vocabulary() const override { return vocabulary_; }
    std::span<const std::uint64_t> counts() const override { return counts_; }

private:
    void read_text(const varlena* text);
    /// Reads words of a text[]; nulls keep their places.
    void read_array(const ArrayType* words);
    void add_piece();
    std::uint32_t number_of(std::uint32_t lexeme);
    std::uint32_t number_of(std::string_view word);
    void add_token(std::uint32_t number, std::uint64_t position);
    void append_tokens();
    void end_text(std::uint64_t next);

    TextKind kind_;
    TextParser parser_;
    std::vector<std::uint32_t> numbers_;  // in the vocabulary, of lexemes that last
    Vocabulary vocabulary_;
    std::vector<std::uint64_t> counts_;  // of the vocabulary
    std::vector<Token> tokens_;          // on their way
    std::uint64_t next_ = 1;             // the first position of the stretch that nothing has
};

/// Raises an error for more positions than there are numbers.
void check_positions(std::uint64_t positions);

}  // namespace gputext
