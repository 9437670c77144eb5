// extension/rows/stretch_reader.hpp - what reads the texts of rows in one process (text_work.hpp)

#pragma once

#include "extension/base/postgres.hpp"

#include <cstdint>
#include <span>

#include "cpp/base/vocabulary.hpp"
#include "extension/rows/packed_rows.hpp"

namespace gputext {

/// What the columns behind the ids are, and what is wanted of them.
enum class TextKind {
    words_of_text,  // words in their order: token_reader.hpp
    words_of_array,
    words_of_rows,  // words of texts, with the end of each row
    terms_of_text,  // how often each row has each of its terms: term_reader.hpp
    terms_of_tsvector,
    terms_of_weights
};

/// Reads row after row in one process. Functions raise errors, after which it is of no use.
class StretchReader {
public:
    explicit StretchReader(std::size_t memory_limit) : output_(memory_limit) {}
    virtual ~StretchReader() = default;

    /// Reads the columns of a row; false when there is something wrong with it.
    virtual bool read_row(const Datum* values) = 0;
    /// Ends a stretch of rows; returns the positions that its texts take.
    virtual std::uint64_t end_stretch() = 0;
    virtual const Vocabulary& vocabulary() const = 0;
    /// How often the texts have each word of the vocabulary, or nothing.
    virtual std::span<const std::uint64_t> counts() const { return {}; }
    PackedBytes& output() { return output_; }

protected:
    PackedBytes output_;
};

}  // namespace gputext
