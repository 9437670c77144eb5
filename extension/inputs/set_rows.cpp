#include "extension/inputs/set_rows.hpp"

extern "C" {
#include "catalog/pg_type.h"
#include "utils/builtins.h"
}

#include "extension/base/failure.hpp"
#include "extension/base/owned.hpp"
#include "extension/order/row_order.hpp"
#include "extension/server/activity.hpp"

namespace gputext {

namespace {

/// Sets are numbered with 32 bits.
constexpr std::size_t kMostSets = PG_UINT32_MAX - 1;

const char* const kWanted = "The inner query must give an id and a text or an array, in this order.";

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
};

void SetReceiver::check_columns(TupleDesc columns) {
    const RecordType type = record_type_of(columns, 1);
    if (type.kind() != FieldKind::text && type.kind() != FieldKind::set)
        ereport(ERROR,
                (errcode(ERRCODE_DATATYPE_MISMATCH),
                 errmsg("the sets of the inner query are of type %s, neither texts nor arrays",
                        format_type_be(TupleDescAttr(columns, 1)->atttypid)),
                 errdetail("%s", kWanted),
                 type.type == TSVECTOROID
                     ? errhint("Its lexemes are an array, as in tsvector_to_array(words).")
                     : errhint("Other types can be cast in the inner query, as in body::text.")));
    if (&ids_ == &rows_.second_ids_ && type.kind() != rows_.kind_)
        ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
                        errmsg("texts cannot be compared with arrays"),
                        errhint("Give texts, or arrays, in both inner queries.")));
    rows_.kind_ = type.kind();
    rows_.column_.begin_rows(columns, 1);
}

void SetReceiver::take_row(const Datum* values, const bool* nulls) {
    if (rows_.size() == kMostSets)
        ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
                        errmsg("there are more than %zu sets", kMostSets)));
    ids_.append(values[0]);
    rows_.column_.append(values, nulls);
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

void SetRows::read(const InnerQuery& first, const InnerQuery* second) {
    {
        SetReceiver receiver(*this, ids_);
        run_inner_query(first, receiver);
    }
    if (second != nullptr) {
        SetReceiver receiver(*this, second_ids_);
        run_inner_query(*second, receiver);
    }
    column_.finish();
}

}  // namespace gputext
