// extension/rows/term_reader.hpp - reads the terms of rows: parsed by the server's text search, or
// given

#pragma once

#include "extension/base/postgres.hpp"

extern "C" {
#include "tsearch/ts_type.h"
}

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "cpp/base/vocabulary.hpp"
#include "cpp/terms/counts.hpp"
#include "extension/rows/text_parser.hpp"
#include "extension/rows/vector_type.hpp"

namespace gputext {

/// What is wrong with the terms of a row, of which a message can say whose they are.
enum class TermFault {
    none,
    too_often,
    several_dimensions,
    null_element,
    not_finite,
    different_lengths,
    repeated
};

/// Raises the fault as an error about `whose`: "item 17".
[[noreturn]] void raise_term_fault(TermFault fault, const char* whose);

/// Reads the terms of one row after another: numbers them, and tells how often the row has each, or
/// with which weight. New terms of a row get their numbers in the order of their bytes, or of the
/// user's integers: as a tsvector has them, and whatever the order in which the row gives them.
/// Functions raise errors, after which it is of no use.
class TermReader {
public:
    /// `config` is the text search configuration of texts.
    explicit TermReader(Oid config) : parser_(config) {}

    /// From here on terms that are new are left out.
    void close_vocabulary() {
        closed_ = true;
        numbers_.clear();
    }
    const Vocabulary& vocabulary() const { return vocabulary_; }

    /// Counts every occurrence, as to_tsvector() finds them but without its limits. A text above
    /// 1 MB is parsed in pieces of about that, each of which ends where a line or a word does.
    TermFault read_text(const varlena* text);
    /// Counts the positions, one for a lexeme that has none.
    TermFault read_tsvector(TSVector vector);
    /// An integer[] and a real[] of the same length: terms of the user's, in any order but each
    /// once, and what they weigh. Those that weigh nothing are left out.
    TermFault read_weights(Datum terms, Datum weights);

    /// The row that was read last without a fault: terms in ascending order, their counts (int32)
    /// or weights (float32). Valid until the next row is read. The row has no dimensions, since the
    /// number of terms is not known yet.
    const VectorValue& row() const { return row_; }

private:
    /// Nothing for a term to leave out.
    std::optional<std::uint32_t> number_of(std::string_view term);
    void number_lexemes();
    std::uint32_t known_number_of(std::uint32_t lexeme);
    bool count_piece();
    void end_counted_row();

    TextParser parser_;
    std::vector<std::uint32_t> numbers_;  // in the vocabulary, of lexemes that last
    Vocabulary vocabulary_;
    bool closed_ = false;
    VectorValue row_{};
    TermCounts counts_;                                      // of a text
    std::vector<std::uint32_t> new_;                         // lexemes of a piece of it
    std::vector<std::pair<std::int32_t, float>> given_;      // by a user
    std::vector<std::pair<std::uint32_t, float>> numbered_;  // the same
    std::vector<std::uint32_t> terms_;
    std::vector<float> weights_;
};

}  // namespace gputext
