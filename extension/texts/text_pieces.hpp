// extension/texts/text_pieces.hpp - cuts long texts into pieces to parse

#pragma once

#include "extension/base/postgres.hpp"

#include <string_view>

namespace gputext {

/// Where the piece of about 1 MB ends that begins there: behind a line, or else behind a blank. A
/// piece without any is cut at about 2 MB, behind a character that ends a word if there is one near
/// that place. If there is none, the word at that place has more than the 2047 bytes that
/// to_tsvector() takes, and so do both parts of it.
std::size_t end_of_piece(std::string_view text, std::size_t begin);

}  // namespace gputext
