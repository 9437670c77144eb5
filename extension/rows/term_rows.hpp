// extension/rows/term_rows.hpp - packs rows of terms from the columns of an inner query

#pragma once

#include "extension/base/postgres.hpp"

extern "C" {
#include "access/tupdesc.h"
}

#include <optional>

#include "extension/rows/term_reader.hpp"
#include "extension/rows/vector_query.hpp"

namespace gputext {

/// The columns behind the id: a text, a tsvector, or an integer[] of terms and a real[] of weights.
enum class TermSource { text, tsvector, weights };

/// Nothing for other types. There are two columns or three.
std::optional<TermSource> term_source_of(TupleDesc columns);

/// Whether the row has no terms since one of the columns is null.
bool terms_are_null(TermSource source, const bool* nulls);

/// Before the first row is appended.
void set_term_type(TermSource source, VectorRows& rows);

/// Reads and appends a row with its id; raises an error that names it. Not before
/// VectorRows::set_dimensions() can anything be computed of the rows.
void append_terms(TermSource source, const Datum* values, TermReader& reader, VectorRows& rows);

/// Says how many rows were left out, since their terms are null.
void report_null_terms(TermSource source, int64 rows);

}  // namespace gputext
