#include "extension/operators/knn_rows.hpp"

extern "C" {
#include "utils/builtins.h"
}

#include "extension/rows/term_rows.hpp"
#include "extension/rows/vector_type.hpp"
#include "extension/server/activity.hpp"
#include "extension/server/settings.hpp"

namespace gputext {
namespace {

const char* const kWanted =
    "The inner query must give an id and a vector of type real[], double precision[], integer[], "
    "or pgvector's "
    "vector, halfvec or sparsevec; or an id and a text or tsvector; or an id, terms of type "
    "integer[] and their weights of type real[]; in this order.";

const char* name_of(RowKind kind) {
    switch (kind) {
        case RowKind::vectors:
            return "vectors";
        case RowKind::texts:
            return "texts";
        case RowKind::weights:
            return "weights of terms";
    }
    pg_unreachable();
}

class KnnReceiver final : public RowReceiver {
public:
    /// Appends to `side`, which is one of the `rows`.
    KnnReceiver(const KnnInput& input, KnnRows& rows, VectorRows& side)
        : input_(input), rows_(rows), side_(side) {}

    WantedColumns wanted_columns() const override { return {2, 3, kWanted}; }
    int versioned_column() const override { return 1; }
    void forget_row_versions() override { side_.forget_row_versions(); }
    void check_columns(TupleDesc columns) override;
    bool left_out(const bool* nulls) const override {
        return kind_ == RowKind::vectors ? nulls[1] : terms_are_null(source_, nulls);
    }
    void take_row(const Datum* values, const bool* nulls) override;
    void end_rows() override;
    bool takes_kept_rows() const override { return true; }
    bool take_kept_rows(const std::shared_ptr<const KeptVectors>& kept) override {
        if (kind_ != RowKind::vectors || !side_.take(kept)) return false;
        show_all_rows();
        return true;
    }
    void copy_rows(std::size_t most, std::shared_ptr<const KeptVectors>& copied) const override {
        if (kind_ == RowKind::vectors) side_.copy(most, copied);
    }
    void report_nulls(int64 rows) override {
        if (kind_ == RowKind::vectors)
            report_null_vectors(rows);
        else
            report_null_terms(source_, rows);
    }

private:
    void set_types(TupleDesc columns);
    void check_call() const;
    void show_all_rows() const {
        show_rows(rows_.items.size() + rows_.queries.size(),
                  rows_.items.bytes() + rows_.queries.bytes());
    }

    const KnnInput& input_;
    KnnRows& rows_;
    VectorRows& side_;
    RowKind kind_{};
    TermSource source_{};
};

[[noreturn]] void raise_wrong_types(TupleDesc columns) {
    const char* const second = format_type_be(TupleDescAttr(columns, 1)->atttypid);
    if (columns->natts == 3)
        ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
                        errmsg("the inner query gives %s and %s, not terms of type integer[] and "
                               "weights of type real[]",
                               second, format_type_be(TupleDescAttr(columns, 2)->atttypid)),
                        errdetail("%s", kWanted)));
    ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
                    errmsg("the inner query gives neither vectors nor texts, but values of type %s",
                           second),
                    errdetail("%s", kWanted),
                    errhint("Other types can be cast in the inner query, as in embedding::real[] "
                            "or body::text.")));
    pg_unreachable();
}

/// Sets `kind_` and the types of one inner query from its columns.
void KnnReceiver::set_types(TupleDesc columns) {
    const auto vector = columns->natts == 2 ? vector_type_of(base_type_of_column(columns, 1))
                                            : std::optional<VectorType>();
    if (vector) {
        kind_ = RowKind::vectors;
        side_.set_type(*vector);
        return;
    }
    const std::optional<TermSource> source = term_source_of(columns);
    if (!source) raise_wrong_types(columns);
    kind_ = *source == TermSource::weights ? RowKind::weights : RowKind::texts;
    source_ = *source;
    set_term_type(source_, side_);
}

/// What of the call depends on what the rows are.
void KnnReceiver::check_call() const {
    if (kind_ != RowKind::vectors && input_.metric != Metric::cosine)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("metric must be 'cosine' for %s", name_of(kind_))));
    if (kind_ == RowKind::vectors && input_.min_document_frequency != 1)
        ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                        errmsg("min_document_frequency is not for vectors"),
                        errdetail("It is for texts and for weights of terms.")));
}

void KnnReceiver::check_columns(TupleDesc columns) {
    set_types(columns);
    if (&side_ == &rows_.items) {
        rows_.kind = kind_;
        check_call();
    } else if (kind_ != rows_.kind) {
        const bool text_for_vector = kind_ != RowKind::weights && rows_.kind != RowKind::weights;
        ereport(ERROR,
                (errcode(ERRCODE_DATATYPE_MISMATCH),
                 errmsg("queries that are %s cannot be compared with items that are %s",
                        name_of(kind_), name_of(rows_.kind)),
                 text_for_vector ? errhint("A vector that is written as text can be cast in the "
                                           "inner query, as in '{0.1,0.2}'::real[].")
                                 : 0));
    }
}

void KnnReceiver::take_row(const Datum* values, const bool*) {
    if (kind_ == RowKind::vectors)
        side_.keep(values[0], {values + 1, 1}, query(), row());
    else
        keep_terms(source_, values, query(), row(), side_);
    show_all_rows();
}

void KnnReceiver::end_rows() {
    side_.end_rows(query());
    // Where a device searches, the session itself looks at no item.
    const bool later = &side_ == &rows_.items && device_setting() != DeviceSetting::cpu;
    if (kind_ == RowKind::vectors)
        side_.read_vectors(later ? Arrival::later : Arrival::awaited);
    else
        read_terms(source_, input_.config, *rows_.terms, side_);
}

void run_query(const InnerQuery& query, const KnnInput& input, KnnRows& rows, VectorRows& side) {
    KnnReceiver receiver(input, rows, side);
    run_inner_query(query, receiver);
}

}  // namespace

void read_knn_rows(const KnnInput& input, KnnRows& rows) {
    run_query(input.items, input, rows, rows.items);
    rows.terms->closed = true;
    run_query(input.queries, input, rows, rows.queries);
    if (rows.kind == RowKind::vectors) {
        check_same_dimensions(rows.queries, rows.items);
    } else {
        rows.items.set_dimensions(rows.terms->vocabulary.size());
        rows.queries.set_dimensions(rows.terms->vocabulary.size());
    }
    rows.terms.reset();
    if (input.exclude_self) number_ids(rows.queries, rows.items, rows.numbers);
}

}  // namespace gputext
