#include "extension/rows/token_query.hpp"

extern "C" {
#include "catalog/pg_type.h"
#include "parser/parse_coerce.h"
#include "utils/builtins.h"
}

#include "extension/rows/inner_query.hpp"
#include "extension/server/activity.hpp"

namespace gputext {
namespace {

const char* const kWanted =
    "The inner query must give a text or an array of words, alone or behind an id.";

class TextReceiver final : public RowReceiver {
public:
    explicit TextReceiver(TokenReader& reader) : reader_(reader) {}

    WantedColumns wanted_columns() const override { return {1, 2, kWanted}; }
    void check_columns(TupleDesc columns) override;
    bool left_out(const bool* nulls) const override { return nulls[column_]; }
    void take_row(const Datum* values, const bool*) override;
    void report_nulls(int64 rows) override {
        ereport(NOTICE,
                (errmsg_plural("skipped %lld text that is null", "skipped %lld texts that are null",
                               static_cast<unsigned long>(rows), static_cast<long long>(rows))));
    }

private:
    TokenReader& reader_;
    int column_ = 0;
    bool array_ = false;
};

void TextReceiver::check_columns(TupleDesc columns) {
    column_ = columns->natts - 1;
    const Oid type = base_type_of_column(columns, column_);
    array_ = type == TEXTARRAYOID || type == VARCHARARRAYOID;
    if (!array_ && !IsBinaryCoercible(type, TEXTOID))
        ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
                        errmsg("the inner query gives no texts, but values of type %s",
                               format_type_be(TupleDescAttr(columns, column_)->atttypid)),
                        errdetail("%s", kWanted),
                        errhint("Other types can be cast in the inner query, as in body::text.")));
}

void TextReceiver::take_row(const Datum* values, const bool*) {
    if (array_)
        reader_.read_array(DatumGetArrayTypeP(values[column_]));
    else
        reader_.read_text(PG_DETOAST_DATUM_PACKED(values[column_]));
    show_rows(reader_.texts(), reader_.bytes());
}

}  // namespace

void read_tokens(const char* sql, TokenReader& reader) {
    TextReceiver receiver(reader);
    run_inner_query({sql, InvalidOid}, receiver);
}

}  // namespace gputext
