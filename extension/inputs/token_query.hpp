// extension/inputs/token_query.hpp - reads the texts of an inner query as sequences of words

#pragma once

#include "extension/base/postgres.hpp"

#include "extension/texts/text_words.hpp"

namespace gputext {

/// Runs the query, which gives a text or an array of words (text[]) in its only column, or behind
/// an id. Texts are taken in the order of the query; where it has none and gives ids, in the order
/// of these, unless one is null. Texts that are null are left out, with a notice. Raises an error
/// for other columns.
void read_tokens(const char* sql, TextWords& words);

}  // namespace gputext
