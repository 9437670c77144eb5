// extension/inputs/word_counts.hpp - reads how often words occur, from an inner query

#pragma once

#include "extension/base/postgres.hpp"

#include <cstdint>

#include "cpp/base/vocabulary.hpp"

namespace gputext {

/// Runs the inner query, whose rows are (word, count), and adds to `chosen`, which is empty, the
/// `most` most frequent words among those that occur at least `min_count` times, the most frequent
/// first, and among equally frequent words those whose bytes come first: as TextWords::choose()
/// does of texts. Raises an error for other columns, nulls, negative counts, and a word that comes
/// twice.
void read_word_counts(const char* sql, std::uint64_t min_count, std::size_t most,
                      Vocabulary& chosen);

}  // namespace gputext
