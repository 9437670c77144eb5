// extension/texts/text_source.hpp - what terms of texts are made by, as a number
//
// gputextd keeps the terms that were made of a text. They are right for another statement only if
// that one would make the same terms of it. What decides this for a text is its text search
// configuration: the parser, which dictionaries take which types of tokens, their options, and the
// files that these name. All of it goes into one number, the source. A tsvector and an array of
// words are read as they are stored.
//
// Each catalogue row goes in with its content and with the transaction that made it, so that two
// states of a configuration never have one source, even if a third state has been between them.
// Nothing is kept for a configuration with a parser other than PostgreSQL's own, or with a
// dictionary of a template other than simple, synonym, ispell and snowball: nobody knows what
// decides about those. A thesaurus is such a template, too, as it looks at more than one token.
//
// Files. PostgreSQL reads the files of a dictionary when a process first uses it, and again when a
// dictionary's catalogue row has changed. A parallel worker reads them in each statement. Files go
// in with device, inode, size and times. Nothing is kept while one of them is younger than what
// this process may still have loaded: that is, unless it was last changed before the session began,
// or before the last change of a dictionary's row that the session has seen. So ALTER TEXT SEARCH
// DICTIONARY after the edit of a file, which PostgreSQL's documentation demands, lets sessions keep
// terms again, and a file that was edited without it is read by sessions as ever. What is left is a
// file whose change has an earlier time than it had: on a file system whose clock is late by more
// than a second.

#pragma once

#include "extension/base/postgres.hpp"

#include <cstdint>

#include "extension/texts/stretch_reader.hpp"

namespace gputext {

/// The source of what is made of texts now, by this text search configuration where they are
/// parsed; 0 where nothing must be kept. Sees what other transactions have committed. Some lookups
/// in catalogues, and one stat() for each file. Raises errors.
std::uint64_t source_of_texts(TextKind kind, Oid config);

}  // namespace gputext
