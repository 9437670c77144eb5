// extension/texts/term_reader.hpp - reads the terms of rows in one process: parsed by the server's
// text search, or given

#pragma once

#include "extension/base/postgres.hpp"

extern "C" {
#include "tsearch/ts_type.h"
}

#include <string_view>
#include <utility>
#include <vector>

#include "cpp/terms/counts.hpp"
#include "extension/texts/stretch_reader.hpp"
#include "extension/types/vector_type.hpp"

namespace gputext {

/// The columns behind the id: a text, a tsvector, or an integer[] of terms and a real[] of weights.
enum class TermSource { text, tsvector, weights };

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
/// with which weight. The bytes of integers are ordered as the integers are. Functions raise
/// errors, after which it is of no use. The output of a row is a record of TextForm::terms
/// (cpp/terms/chunked_texts.hpp).
class TermReader final : public StretchReader {
public:
    /// `config` is the text search configuration of texts.
    TermReader(TermSource source, Oid config, std::size_t memory_limit)
        : StretchReader(config, memory_limit), source_(source) {}

    /// The values are those of the columns behind the id.
    TermFault read(const Datum* values);
    bool read_row(const Datum* values) override { return read(values) == TermFault::none; }

private:
    /// Counts every occurrence, as to_tsvector() finds them but without its limits. A text above
    /// 1 MB is parsed in pieces of about that, each of which ends where a line or a word does.
    TermFault read_text(const varlena* text);
    /// Counts the positions, one for a lexeme that has none.
    TermFault read_tsvector(TSVector vector);
    /// An integer[] and a real[] of the same length: terms of the user's, in any order but each
    /// once, and what they weigh. Those that weigh nothing are left out.
    TermFault read_weights(Datum terms, Datum weights);

    void end_counted_row();
    void put_row(std::span<const std::uint32_t> terms, const void* values);

    TermSource source_;
    TermCounts counts_;                                      // of a text
    std::vector<std::pair<std::int32_t, float>> given_;      // by a user
    std::vector<std::pair<std::uint32_t, float>> numbered_;  // the same
    std::vector<std::uint32_t> terms_;
    std::vector<float> weights_;
};

}  // namespace gputext
