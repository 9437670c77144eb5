#include "extension/rows/term_rows.hpp"

extern "C" {
#include "catalog/pg_type.h"
#include "parser/parse_coerce.h"
}

#include "extension/rows/inner_query.hpp"

namespace gputext {
namespace {

/// char(n), too, whose blanks are no terms; and citext, which is stored as text is.
bool is_text(Oid type) {
    return type == BPCHAROID || IsBinaryCoercible(type, TEXTOID);
}

TermFault read(TermSource source, const Datum* values, TermReader& reader) {
    switch (source) {
        case TermSource::text:
            return reader.read_text(PG_DETOAST_DATUM_PACKED(values[1]));
        case TermSource::tsvector:
            return reader.read_tsvector(DatumGetTSVector(values[1]));
        case TermSource::weights:
            return reader.read_weights(values[1], values[2]);
    }
    pg_unreachable();
}

}  // namespace

std::optional<TermSource> term_source_of(TupleDesc columns) {
    const Oid type = base_type_of_column(columns, 1);
    if (columns->natts == 3)
        return type == INT4ARRAYOID && base_type_of_column(columns, 2) == FLOAT4ARRAYOID
                   ? std::optional(TermSource::weights)
                   : std::nullopt;
    if (type == TSVECTOROID) return TermSource::tsvector;
    return is_text(type) ? std::optional(TermSource::text) : std::nullopt;
}

bool terms_are_null(TermSource source, const bool* nulls) {
    return nulls[1] || (source == TermSource::weights && nulls[2]);
}

void set_term_type(TermSource source, VectorRows& rows) {
    rows.set_type({VectorType::Form::sparse,
                   source == TermSource::weights ? ElementType::float32 : ElementType::int32});
}

void append_terms(TermSource source, const Datum* values, TermReader& reader, VectorRows& rows) {
    const TermFault fault = read(source, values, reader);
    if (fault != TermFault::none) raise_term_fault(fault, rows.name_of(values[0]));
    rows.append(values[0], reader.row());
}

void report_null_terms(TermSource source, int64 rows) {
    const auto count = static_cast<long long>(rows);
    const auto plural = static_cast<unsigned long>(rows);
    if (source == TermSource::weights)
        ereport(NOTICE, (errmsg_plural("skipped %lld row whose terms or weights are null",
                                       "skipped %lld rows whose terms or weights are null", plural,
                                       count)));
    else
        ereport(NOTICE, (errmsg_plural("skipped %lld text that is null",
                                       "skipped %lld texts that are null", plural, count)));
}

}  // namespace gputext
