#include "extension/rows/term_rows.hpp"

extern "C" {
#include "catalog/pg_type.h"
#include "parser/parse_coerce.h"
}

#include <vector>

#include "cpp/terms/numbered_rows.hpp"
#include "extension/base/failure.hpp"
#include "extension/base/owned.hpp"
#include "extension/rows/inner_query.hpp"
#include "extension/rows/text_work.hpp"

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

    ReadTexts texts;
    std::vector<std::vector<std::uint32_t>> numbers;  // of each process's terms
    std::vector<TermStretch> stretches;

    void number_terms(const TextStretch& stretch, TermNumbers& terms);
    void list_stretches();
};

/// Terms that are new to the process in this stretch; those that are new to the query are among
/// them. Inside attempt().
void TermTexts::number_terms(const TextStretch& stretch, TermNumbers& terms) {
    const Words words = texts.words(stretch.process);
    std::vector<std::uint32_t>& mine = numbers[stretch.process];
    mine.resize(stretch.end_terms);
    for (std::uint32_t term = stretch.begin_terms; term < stretch.end_terms; ++term)
        mine[term] =
            terms.closed ? terms.vocabulary.find(words[term]) : terms.vocabulary.add(words[term]);
}

/// Inside attempt().
void TermTexts::list_stretches() {
    for (const TextStretch& stretch : texts.stretches())
        stretches.push_back(
            {reinterpret_cast<const std::uint32_t*>(texts.output(stretch.process) + stretch.begin),
             stretch.rows, numbers[stretch.process].data()});
}

void append_terms(TermTexts& read, TermNumbers& terms, VectorRows& rows) {
    attempt_or_raise([&] { read.numbers.resize(read.texts.processes()); });
    for (const TextStretch& stretch : read.texts.stretches()) {
        CHECK_FOR_INTERRUPTS();
        attempt_or_raise([&] { read.number_terms(stretch, terms); });
    }
    attempt_or_raise([&] { read.list_stretches(); });
    rows.take_terms(read.stretches, terms.closed);
}

/// The row again, in the session, for what is wrong with it.
[[noreturn]] void raise_fault(TermSource source, Oid config, std::size_t row, VectorRows& rows) {
    TermReader* const reader =
        make_owned<TermReader>(CurrentMemoryContext, source, config, SIZE_MAX);
    Datum values[2] = {};
    for (std::size_t column = 0; column < columns_of(source); ++column)
        values[column] = rows.kept(column).reader().at(row);
    raise_term_fault(reader->read(values), rows.name_of(rows.id(row)));
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

void keep_terms(TermSource source, const Datum* values, const InnerQueryTraits& query,
                VectorRows& rows) {
    rows.keep(values[0], {values + 1, columns_of(source)}, query);
}

void read_terms(TermSource source, Oid config, TermNumbers& terms, VectorRows& rows) {
    if (rows.size() > 0) {
        TermTexts* const read =
            make_owned<TermTexts>(CurrentMemoryContext, source, config, rows.memory_limit());
        StoredValues* columns[2] = {};
        for (std::size_t column = 0; column < columns_of(source); ++column)
            columns[column] = &rows.kept(column);
        const std::uint64_t fault = read->texts.read({columns, columns_of(source)});
        if (fault < rows.size()) raise_fault(source, config, fault, rows);
        rows.forget_kept();
        append_terms(*read, terms, rows);
        read->texts.release();
    }
    rows.finish();
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
