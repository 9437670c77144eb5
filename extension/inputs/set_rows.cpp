#include "extension/inputs/set_rows.hpp"

extern "C" {
#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"
}

#include "extension/base/failure.hpp"
#include "extension/base/owned.hpp"
#include "extension/order/row_order.hpp"
#include "extension/server/activity.hpp"
#include "extension/types/column_types.hpp"

namespace gputext {

namespace {

/// Sets are numbered with 32 bits.
constexpr std::size_t kMostSets = PG_UINT32_MAX - 1;

const char* const kWanted =
    "The inner query must give an id and a text, an array or a tsvector, in this order.";

/// The type of the elements, as KeyNumbers are to have it; InvalidOid if they are equal exactly if
/// RecordColumn reads the same bytes.
Oid type_to_number(const RecordType& sets, Oid collation) {
    if (!sets.is_array) return InvalidOid;
    const Oid type = sets.type == VARCHAROID ? TEXTOID : sets.type;
    const bool other_text = sets.form == RecordForm::text && type != TEXTOID;  // as citext
    const bool by_bytes = sets.form != RecordForm::output && !other_text;
    const bool any_bytes = OidIsValid(collation) && !get_collation_isdeterministic(collation);
    return by_bytes && !any_bytes ? InvalidOid : type;
}

}  // namespace

class SetReceiver final : public RowReceiver {
public:
    SetReceiver(SetRows& rows, RowIds& ids) : rows_(rows), ids_(ids) {}

    WantedColumns wanted_columns() const override { return {2, 2, kWanted}; }
    void check_columns(TupleDesc columns) override;
    bool takes_any_order() const override { return true; }
    bool left_out(const bool* nulls) const override { return nulls[1]; }
    void take_row(const Datum* values, const bool* nulls) override;
    void end_rows() override { rows_.end_rows(ids_, query().ordered); }
    void report_nulls(int64 rows, const char* among) override {
        ereport(NOTICE, (errmsg_plural("skipped %lld set that is null%s",
                                       "skipped %lld sets that are null%s",
                                       static_cast<unsigned long>(rows),
                                       static_cast<long long>(rows), among)));
    }

private:
    SetRows& rows_;
    RowIds& ids_;
    bool lexemes_ = false;  // of tsvector
};

void SetReceiver::check_columns(TupleDesc columns) {
    const Oid type = TupleDescAttr(columns, 1)->atttypid;
    lexemes_ = base_type_of_column(columns, 1) == TSVECTOROID;
    if (lexemes_) {
        columns = CreateTupleDescCopy(columns);
        TupleDescAttr(columns, 1)->atttypid = TEXTARRAYOID;
    }
    const RecordType sets = record_type_of(columns, 1);
    const FieldKind kind = sets.kind();
    if (kind != FieldKind::text && kind != FieldKind::set)
        ereport(ERROR,
                (errcode(ERRCODE_DATATYPE_MISMATCH),
                 errmsg("the sets of the inner query are of type %s, neither texts, arrays nor "
                        "tsvector",
                        format_type_be(type)),
                 errdetail("%s", kWanted),
                 errhint("Other types can be cast in the inner query, as in body::text.")));
    const bool second = &ids_ == &rows_.second_ids_;
    if (second && kind != rows_.kind_)
        ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
                        errmsg("texts cannot be compared with arrays or tsvector"),
                        errhint("Give sets of one kind in both inner queries.")));
    const Oid collation = lexemes_ ? InvalidOid : TupleDescAttr(columns, 1)->attcollation;
    const Oid numbered = type_to_number(sets, collation);
    if (second && sets.is_array)
        common_collation(rows_.collation_, collation, "elements", "items");
    if (second && (!rows_.column_.fits(columns, 1) || numbered != rows_.elements_.type()))
        ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
                        errmsg("the old sets are of type %s, which cannot be compared with the type "
                               "of the new ones, %s",
                               format_type_be(type), format_type_be(rows_.type_)),
                        errhint("Cast both to one type in the inner queries, as in %s::text[].",
                                quote_identifier(NameStr(TupleDescAttr(columns, 1)->attname)))));
    rows_.kind_ = kind;
    rows_.type_ = type;
    rows_.collation_ = collation;
    if (!second && OidIsValid(numbered)) rows_.elements_.set_type(numbered, collation);
    rows_.column_.number_elements_by(OidIsValid(numbered) ? &rows_.elements_ : nullptr);
    rows_.column_.begin_rows(columns, 1);
}

void SetReceiver::take_row(const Datum* values, const bool* nulls) {
    if (rows_.size() == kMostSets)
        ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                        errmsg("there are more than %zu sets", kMostSets)));
    ids_.append(values[0]);
    const Datum lexemes[] = {
        0, lexemes_ ? DirectFunctionCall1(tsvector_to_array, values[1]) : Datum{0}};
    rows_.column_.append(lexemes_ ? lexemes : values, nulls);
    show_rows(rows_.size(), rows_.bytes());
}

void SetRows::end_rows(RowIds& ids, bool ordered) {
    auto* const order = make_owned<std::vector<std::uint32_t>>(CurrentMemoryContext);
    put_in_order(ids, ordered, *order);
    const std::size_t begin = size() - ids.size();
    attempt_or_raise([&] {
        if (order->empty() && order_.empty()) return;
        while (order_.size() < begin) order_.push_back(static_cast<std::uint32_t>(order_.size()));
        for (std::size_t place = 0; place < ids.size(); ++place)
            order_.push_back(
                static_cast<std::uint32_t>(begin + (order->empty() ? place : (*order)[place])));
        *order = {};
    });
}

void SetRows::read(const InnerQueries& queries) {
    {
        SetReceiver receiver(*this, ids_);
        run_inner_query(queries.first, receiver);
    }
    if (queries.two) {
        SetReceiver receiver(*this, second_ids_);
        run_inner_query(queries.second, receiver);
    }
    column_.finish();
    elements_.release();
}

}  // namespace gputext
