// extension/texts/token_reader.hpp - reads the words of texts in their order, in one process

#pragma once

#include "extension/base/postgres.hpp"

extern "C" {
#include "utils/array.h"
}

#include <vector>

#include "extension/texts/stretch_reader.hpp"

namespace gputext {

/// Reads one text after another and numbers their words. Every token that the server's text search
/// finds takes a position, whether it is a stop word or not, and so does each element of an array.
/// Functions raise errors, after which it is of no use. Takes 8 bytes for each word of a text. The
/// output of a row is a record of TextForm::words (cpp/terms/chunked_texts.hpp).
class TokenReader final : public StretchReader {
public:
    /// `kind` is one of words; `config` is the text search configuration of texts.
    TokenReader(TextKind kind, Oid config, std::size_t memory_limit)
        : StretchReader(config, memory_limit), kind_(kind) {}

    bool read_row(const Datum* values) override;

private:
    void read_text(const varlena* text);
    /// Reads words of a text[]; nulls keep their places.
    void read_array(const ArrayType* words);
    void add_piece();
    void put_row();

    TextKind kind_;
    std::vector<PlacedWord> words_;  // of a row
    std::uint64_t positions_ = 0;    // that it takes so far
};

/// Raises an error for more positions than there are numbers.
void check_positions(std::uint64_t positions);

}  // namespace gputext
