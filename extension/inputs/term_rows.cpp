#include "extension/inputs/term_rows.hpp"

extern "C" {
#include "catalog/pg_type.h"
#include "parser/parse_coerce.h"
}

#include <vector>

#include "cpp/base/numbered_words.hpp"
#include "cpp/terms/chunked_texts.hpp"
#include "extension/base/failure.hpp"
#include "extension/base/owned.hpp"
#include "extension/queries/inner_query.hpp"
#include "extension/server/session_job.hpp"
#include "extension/texts/column_texts.hpp"
#include "extension/types/column_types.hpp"

namespace gputext {
namespace {

/// char(n), too, whose blanks are no terms; and citext, which is stored as text is.
bool is_text(Oid type) {
    return type == BPCHAROID || IsBinaryCoercible(type, TEXTOID);
}

std::size_t columns_of(TermSource source) {
    return source == TermSource::weights ? 2 : 1;
}

TextKind kind_of(TermSource source) {
    switch (source) {
        case TermSource::text:
            return TextKind::terms_of_text;
        case TermSource::tsvector:
            return TextKind::terms_of_tsvector;
        case TermSource::weights:
            return TextKind::terms_of_weights;
    }
    pg_unreachable();
}

/// What was read of the rows, on its way to them.
struct TermTexts {
    TermTexts(TermSource source, Oid config, std::size_t memory_limit)
        : texts(kind_of(source), config, memory_limit) {}

    ColumnTexts texts;
    std::vector<std::vector<ChunkWord>> words;  // as list_words() gives them
    std::vector<WordRun> runs;                  // the same
    ChunkNumbers numbers;

    Status number_words(TermNumbers& terms, Execution& execution);
};

Status TermTexts::number_words(TermNumbers& terms, Execution& execution) {
    const ChunkedTexts read = texts.texts();
    for (const Words& chunk : read.chunks) numbers.emplace_back(chunk.size(), Vocabulary::kNone);
    GPUTEXT_TRY(list_words(read, words, execution));
    // A chunk that was parsed for this query has the words of a text side by side.
    for (const std::vector<ChunkWord>& list : words)
        for (const ChunkWord& word : list) append_word(runs, word.chunk, word.word);
    return gputext::number_words(read.chunks, runs, terms.closed, terms.vocabulary, numbers,
                                 execution);
}

void append_terms(TermTexts& read, TermNumbers& terms, VectorRows& rows) {
    run_threaded([&](Execution& execution) { return read.number_words(terms, execution); });
    rows.take_terms({read.texts.texts(), &read.numbers}, terms.closed);
}

/// The row again, in the session, for what is wrong with it.
[[noreturn]] void raise_fault(TermSource source, Oid config, std::size_t row, VectorRows& rows) {
    TermReader* const reader =
        make_owned<TermReader>(CurrentMemoryContext, source, config, SIZE_MAX);
    Datum values[2] = {};
    for (std::size_t column = 0; column < columns_of(source); ++column)
        values[column] = rows.values(column).detoasted(row);
    raise_term_fault(reader->read(values), rows.name_of(rows.id(row)));
}

}  // namespace

std::optional<TermSource> term_source_of(TupleDesc columns) {
    const Oid type = base_type_of_column(columns, 1);
    if (columns->natts > 2 && type == INT4ARRAYOID &&
        base_type_of_column(columns, 2) == FLOAT4ARRAYOID)
        return TermSource::weights;
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

void collect_terms(TermSource source, const Datum* values, const InnerQueryTraits& query,
                   const RowOrigin& row, VectorRows& rows) {
    rows.collect(values[0], {values + 1, columns_of(source)}, query, row);
}

void read_terms(TermSource source, Oid config, TermNumbers& terms, VectorRows& rows) {
    if (rows.size() > 0) {
        TermTexts* const read =
            make_owned<TermTexts>(CurrentMemoryContext, source, config, rows.memory_limit());
        StoredValues* columns[2] = {};
        for (std::size_t column = 0; column < columns_of(source); ++column)
            columns[column] = &rows.values(column);
        const std::uint64_t fault = read->texts.read({columns, columns_of(source)});
        if (fault < rows.size()) raise_fault(source, config, fault, rows);
        rows.release_values();
        append_terms(*read, terms, rows);
        read->texts.release();
    }
    rows.finish();
}

void report_null_terms(TermSource source, int64 rows, const char* among) {
    const auto count = static_cast<long long>(rows);
    const auto plural = static_cast<unsigned long>(rows);
    if (source == TermSource::weights)
        ereport(NOTICE, (errmsg_plural("skipped %lld row whose terms or weights are null%s",
                                       "skipped %lld rows whose terms or weights are null%s",
                                       plural, count, among)));
    else
        ereport(NOTICE,
                (errmsg_plural("skipped %lld text that is null%s",
                               "skipped %lld texts that are null%s", plural, count, among)));
}

}  // namespace gputext
