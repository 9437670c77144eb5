// extension/rows/stretch_reader.hpp - what reads the texts of rows in one process (text_work.hpp)

#pragma once

#include "extension/base/postgres.hpp"

#include <cstddef>

#include "cpp/base/vocabulary.hpp"
#include "cpp/terms/chunked_texts.hpp"
#include "extension/rows/packed_rows.hpp"

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
    explicit StretchReader(std::size_t memory_limit) : output_(memory_limit) {}
    virtual ~StretchReader() = default;

    /// Reads the columns of a row; false when there is something wrong with it.
    virtual bool read_row(const Datum* values) = 0;
    virtual const Vocabulary& vocabulary() const = 0;
    PackedBytes& output() { return output_; }

protected:
    PackedBytes output_;
};

}  // namespace gputext
