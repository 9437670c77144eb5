// extension/inputs/term_rows.hpp - packs rows of terms from the columns of an inner query

#pragma once

#include "extension/base/postgres.hpp"

extern "C" {
#include "access/tupdesc.h"
}

#include <optional>

#include "cpp/base/vocabulary.hpp"
#include "extension/inputs/vector_query.hpp"
#include "extension/texts/term_reader.hpp"

namespace gputext {

/// Nothing for other types. There are at least two columns: an integer[] and a real[] behind the id
/// are terms and weights, whatever follows.
std::optional<TermSource> term_source_of(TupleDesc columns);

/// Whether the row has no terms since one of the columns is null.
bool terms_are_null(TermSource source, const bool* nulls);

/// Before the first row is appended.
void set_term_type(TermSource source, VectorRows& rows);

/// The terms of rows, numbered.
struct TermNumbers {
    Vocabulary vocabulary;
    bool closed = false;  // terms that are new are left out
};

/// Collects the columns of a row behind its id, to be read by read_terms(). `row`: as
/// VectorRows::collect().
void collect_terms(TermSource source, const Datum* values, const InnerQueryTraits& query,
                   const RowOrigin& row, VectorRows& rows);

/// Reads the rows that were collected, after VectorRows::end_rows(): takes from gputextd the terms
/// that it keeps, and parses the others in parallel workers; `config` is the text search
/// configuration of texts. Raises an error that names the first wrong row. Terms are numbered in
/// the order in which rows have them; new ones of a row in the order of their bytes. Not before
/// VectorRows::set_dimensions() can anything be computed of the rows.
void read_terms(TermSource source, Oid config, TermNumbers& terms, VectorRows& rows);

/// Says how many rows were left out, since their terms are null.
void report_null_terms(TermSource source, int64 rows, const char* among);

}  // namespace gputext
