#include "extension/operators/tfidf_items.hpp"

extern "C" {
#include "utils/builtins.h"
}

#include <optional>

#include "extension/server/activity.hpp"

namespace gputext {
namespace {

const char* const kWanted =
    "The inner query must give an id and a text or tsvector, in this order.";

class TextReceiver final : public RowReceiver {
public:
    TextReceiver(Oid config, TfidfItems& items) : config_(config), items_(items) {}

    WantedColumns wanted_columns() const override { return {2, 2, kWanted}; }
    int versioned_column() const override { return 1; }
    void check_columns(TupleDesc columns) override;
    bool takes_any_order() const override { return true; }
    void forget_row_versions() override { items_.rows.forget_row_versions(); }
    bool left_out(const bool* nulls) const override { return nulls[1]; }
    void take_row(const Datum* values, const bool*) override {
        keep_terms(source_, values, query(), row(), items_.rows);
        show_rows(items_.rows.size(), items_.rows.bytes());
    }
    void report_nulls(int64 rows, const char* among) override { report_null_terms(source_, rows, among); }
    void end_rows() override {
        items_.rows.end_rows(query());
        read_terms(source_, config_, items_.terms, items_.rows);
        items_.rows.set_dimensions(items_.terms.vocabulary.size());
    }

private:
    const Oid config_;
    TfidfItems& items_;
    TermSource source_{};
};

void TextReceiver::check_columns(TupleDesc columns) {
    const std::optional<TermSource> source = term_source_of(columns);
    if (!source)
        ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
                        errmsg("the inner query gives no texts, but values of type %s",
                               format_type_be(TupleDescAttr(columns, 1)->atttypid)),
                        errdetail("%s", kWanted),
                        errhint("Other types can be cast in the inner query, as in body::text.")));
    source_ = *source;
    set_term_type(source_, items_.rows);
}

}  // namespace

void read_tfidf_items(const InnerQuery& query, Oid config, TfidfItems& items) {
    TextReceiver receiver(config, items);
    run_inner_query(query, receiver);
}

}  // namespace gputext
