// extension/rows/parsed_pieces.hpp - parses long texts piece by piece with the server's text search

#pragma once

#include "extension/base/postgres.hpp"

extern "C" {
#include "tsearch/ts_utils.h"
}

#include <string_view>

namespace gputext {

/// Where the piece of about 1 MB ends that begins there: behind a line, or else behind a blank. A
/// piece without any is cut at about 2 MB, behind a character that ends a word if there is one near
/// that place. If there is none, the word at that place has more than the 2047 bytes that
/// to_tsvector() takes, and so do both parts of it.
std::size_t end_of_piece(std::string_view text, std::size_t begin);

/// The words of a piece in their order, as to_tsvector() finds them, in memory of the current
/// context.
ParsedText parse_piece(Oid config, std::string_view piece);

/// Whether the token has given the same lexeme before, as other variants of a compound word can; a
/// tsvector has it once at its position.
bool seen_at_position(const ParsedWord* words, int32 index);

}  // namespace gputext
