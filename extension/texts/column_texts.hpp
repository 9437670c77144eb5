// extension/texts/column_texts.hpp - the texts of a column: from gputextd what it keeps, and parsed
// what it does not
//
// Resident are records of texts (cpp/terms/chunked_texts.hpp), and of a chunk the words that
// they number. The session uses chunks as they lie: it numbers terms by walks over its own rows, so
// that numbers, and with them sums, are those that it would find if it parsed all texts.

#pragma once

#include "extension/base/postgres.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "cpp/link/resident_answers.hpp"
#include "cpp/terms/chunked_texts.hpp"
#include "extension/resident/resident_request.hpp"
#include "extension/texts/text_chunk.hpp"
#include "extension/texts/text_work.hpp"
#include "extension/values/stored_values.hpp"

namespace gputext {

/// Functions raise errors.
class ColumnTexts {
public:
    ColumnTexts(TextKind kind, Oid config, std::size_t memory_limit)
        : kind_(kind), config_(config), memory_limit_(memory_limit) {}

    /// Reads all rows, whose columns these are. Does without gputextd where there is little to
    /// read, none runs, or it fails. Returns the first row with which something is wrong, or the
    /// number of rows; anything else is of use only without one.
    std::uint64_t read(std::span<StoredValues* const> columns);

    /// What was read, in the order of rows; valid until release().
    ChunkedTexts texts() const;

    void release();

private:
    std::uint64_t parse(std::span<StoredValues* const> columns, ChosenRows rows);
    std::uint64_t read_with(ResidentRequest& request, std::uint64_t source, StoredValues& values);
    std::uint64_t parse_and_keep(ResidentRequest& request, std::uint64_t source,
                                 StoredValues& values);
    std::uint64_t parse_missing_and_take(ResidentRequest& request, std::uint64_t source,
                                         StoredValues& values);
    bool keep(ResidentRequest& request, std::uint64_t source);
    bool make_chunk();
    bool take(ValueStore& store);
    bool list_taken();

    TextKind kind_;
    Oid config_;
    std::size_t memory_limit_;
    // One of these has the texts:
    std::optional<ReadTexts> parsed_;
    std::optional<TextChunk> chunk_;  // what was parsed, in place of that
    std::optional<MappedTerms> taken_;
    // Of what was taken:
    std::vector<ChunkText> texts_;
    std::vector<Words> words_;
    std::uint64_t size_ = 0;
};

}  // namespace gputext
