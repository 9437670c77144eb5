#include "extension/inputs/frequency_query.hpp"

extern "C" {
#include "utils/builtins.h"
}

#include <algorithm>
#include <numeric>

#include "cpp/base/stoppable.hpp"
#include "extension/base/failure.hpp"
#include "extension/base/owned.hpp"
#include "extension/order/row_ids.hpp"
#include "extension/order/row_order.hpp"
#include "extension/queries/inner_query.hpp"
#include "extension/server/activity.hpp"
#include "extension/server/settings.hpp"
#include "extension/types/column_types.hpp"
#include "extension/types/count_column.hpp"
#include "extension/types/text_arguments.hpp"

namespace gputext {
namespace {

/// Words between two looks for an interrupt.
constexpr std::size_t kPart = std::size_t{1} << 12;

const char* const kWanted =
    "The inner query for frequencies must give a term and the number of documents that have it, as "
    "tfidf_frequencies gives them, and after them the first id, if wanted, and how often the "
    "documents have it; and in a row whose term is null the number of all documents.";

/// Frequencies in the order in which they came.
struct FrequencyRows {
    Vocabulary terms;
    std::vector<std::uint32_t> documents;
    RowIds* first_ids = nullptr;
    bool ordered = false;  // by the query
    bool has_all = false;
    std::uint32_t all = 0;
    int64 all_occurrences = 0;         // of terms in all documents
    std::vector<std::uint32_t> order;  // of the terms
    std::vector<std::uint32_t> by_id;  // of the terms in their order
};

class FrequencyReceiver final : public RowReceiver {
public:
    FrequencyReceiver(MemoryContext context, bool lengths, FrequencyRows& rows)
        : context_(context), lengths_(lengths), rows_(rows) {}

    WantedColumns wanted_columns() const override { return {2, 4, kWanted}; }
    void check_columns(TupleDesc columns) override;
    bool left_out(const bool*) const override { return false; }
    void take_row(const Datum* values, const bool* nulls) override;
    void end_rows() override;
    void report_nulls(int64, const char*) override {}

private:
    std::uint32_t documents_of(Datum value, bool is_null) const;
    void take_all(std::uint32_t documents, const Datum* values, const bool* nulls);
    void take_term(Datum term, std::uint32_t documents);
    void check_counts() const;
    void order_terms();

    const MemoryContext context_;  // outlives the query
    const bool lengths_;           // whether occurrences are wanted
    FrequencyRows& rows_;
    Oid count_type_ = InvalidOid;
    Oid occurrence_type_ = InvalidOid;
};

void FrequencyReceiver::check_columns(TupleDesc columns) {
    count_type_ = count_type_of(columns, "frequencies", kWanted);
    rows_.ordered = query().ordered;
    if (columns->natts > 3) occurrence_type_ = base_type_of_column(columns, 3);
    if (columns->natts > 3 ? !is_count_type(occurrence_type_) : lengths_)
        ereport(ERROR,
                (errcode(ERRCODE_DATATYPE_MISMATCH),
                 errmsg("the frequencies do not say how many terms the documents have"),
                 errdetail("BM25 needs the average length of all documents. %s", kWanted),
                 errhint("Sum the column occurrences of tfidf_frequencies, too, and pass it as the "
                         "fourth column, of type bigint, integer or numeric.")));
    if (columns->natts < 3) return;
    const Oid id_type = base_type_of_column(columns, 2);
    if (!has_order(id_type))
        ereport(ERROR,
                (errcode(ERRCODE_UNDEFINED_FUNCTION),
                 errmsg("first ids of type %s cannot be compared", format_type_be(id_type)),
                 errdetail("The type has no default operator class for access method \"btree\".")));
    rows_.first_ids = make_owned<RowIds>(context_, id_type_of(id_type), host_memory_limit());
}

std::uint32_t FrequencyReceiver::documents_of(Datum value, bool is_null) const {
    if (is_null)
        ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
                        errmsg("a number of documents of the frequencies is null")));
    const int64 count = count_of(count_type_, value);
    if (count < 0)
        ereport(ERROR, (errcode(ERRCODE_DATA_EXCEPTION),
                        errmsg("a number of documents of the frequencies is negative: %lld",
                               static_cast<long long>(count))));
    if (count > int64{PG_UINT32_MAX})
        ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                        errmsg("the frequencies are of more than %u documents", PG_UINT32_MAX)));
    return static_cast<std::uint32_t>(count);
}

void FrequencyReceiver::take_all(std::uint32_t documents, const Datum* values, const bool* nulls) {
    if (rows_.has_all)
        ereport(ERROR, (errcode(ERRCODE_DATA_EXCEPTION),
                        errmsg("the frequencies have several rows without a term"),
                        errhint("Sum the frequencies of several servers by GROUP BY term.")));
    rows_.has_all = true;
    rows_.all = documents;
    if (!lengths_) return;
    if (nulls[3])
        ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
                        errmsg("the number of all terms of the frequencies' documents is null")));
    rows_.all_occurrences = count_of(occurrence_type_, values[3]);
    if (rows_.all_occurrences < 0)
        ereport(ERROR, (errcode(ERRCODE_DATA_EXCEPTION),
                        errmsg("the number of all terms of the frequencies' documents is "
                               "negative: %lld",
                               static_cast<long long>(rows_.all_occurrences))));
}

void FrequencyReceiver::take_term(Datum term, std::uint32_t documents) {
    const varlena* const text = PG_DETOAST_DATUM_PACKED(term);
    bool is_new = false;
    attempt_or_raise([&] {
        is_new = rows_.terms.add(view_of(text)) == rows_.documents.size();
        if (is_new) rows_.documents.push_back(documents);
    });
    if (!is_new)
        ereport(ERROR, (errcode(ERRCODE_DATA_EXCEPTION),
                        errmsg("the frequencies have the term \"%s\" several times",
                               text_to_cstring(text)),
                        errhint("Sum the frequencies of several servers by GROUP BY term.")));
}

void FrequencyReceiver::take_row(const Datum* values, const bool* nulls) {
    const std::uint32_t documents = documents_of(values[1], nulls[1]);
    if (nulls[0]) return take_all(documents, values, nulls);
    if (rows_.first_ids != nullptr) {
        if (nulls[2])
            ereport(ERROR, (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
                            errmsg("a first id of the frequencies is null")));
        rows_.first_ids->append(values[2]);
    }
    take_term(values[0], documents);
    show_rows(rows_.terms.size(), rows_.terms.bytes());
}

void FrequencyReceiver::check_counts() const {
    if (!rows_.has_all)
        ereport(ERROR, (errcode(ERRCODE_DATA_EXCEPTION),
                        errmsg("the frequencies do not say how many documents there are"),
                        errdetail("%s", kWanted)));
    for (std::uint32_t term = 0; term < rows_.terms.size(); ++term)
        if (rows_.documents[term] > rows_.all) {
            const std::string_view name = rows_.terms.term(term);
            ereport(ERROR,
                    (errcode(ERRCODE_DATA_EXCEPTION),
                     errmsg("the frequencies have the term \"%s\" in %u of %u documents",
                            pnstrdup(name.data(), name.size()), rows_.documents[term], rows_.all)));
        }
}

/// Sets `order`, by the bytes of the terms, and `by_id` of the terms in that order.
void FrequencyReceiver::order_terms() {
    attempt_or_raise([&] {
        rows_.order.resize(rows_.terms.size());
        std::iota(rows_.order.begin(), rows_.order.end(), 0u);
        const auto before = [&](std::uint32_t a, std::uint32_t b) {
            return rows_.terms.term(a) < rows_.terms.term(b);
        };
        stoppable_sort(rows_.order.begin(), rows_.order.end(), before, stop_on_interrupt());
    });
    if (rows_.first_ids == nullptr) return;
    rows_.first_ids->reorder(rows_.order);
    order_by_id(*rows_.first_ids, rows_.by_id);
}

void FrequencyReceiver::end_rows() {
    check_counts();
    if (rows_.first_ids != nullptr) rows_.first_ids->finish();
    if (!rows_.ordered) order_terms();
    if (rows_.first_ids != nullptr) rows_.first_ids->release();
}

}  // namespace

void read_frequencies(const char* sql, bool lengths, TermNumbers& terms,
                      GivenFrequencies& frequencies) {
    auto* const rows = make_owned<FrequencyRows>(CurrentMemoryContext);
    FrequencyReceiver receiver(CurrentMemoryContext, lengths, *rows);
    run_inner_query({sql, InvalidOid}, receiver);
    attempt_or_raise([&] {
        frequencies.given = true;
        frequencies.all = rows->all;
        if (rows->all > 0)
            frequencies.average_length = static_cast<double>(rows->all_occurrences) / rows->all;
        frequencies.documents.reserve(rows->documents.size());
        terms.vocabulary.reserve(rows->terms.size());
        const Stop stop = stop_on_interrupt();
        for (std::uint32_t number = 0; number < rows->terms.size(); ++number) {
            if (number % kPart == 0 && stop()) return;
            std::uint32_t term = rows->by_id.empty() ? number : rows->by_id[number];
            if (!rows->order.empty()) term = rows->order[term];
            terms.vocabulary.add(rows->terms.term(term));
            frequencies.documents.push_back(rows->documents[term]);
        }
        terms.closed = true;
        *rows = FrequencyRows();
    });
}

}  // namespace gputext
