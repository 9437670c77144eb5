#include "extension/inputs/token_query.hpp"

extern "C" {
#include "catalog/pg_type.h"
#include "parser/parse_coerce.h"
#include "utils/builtins.h"
}

#include <cstdint>

#include "extension/base/failure.hpp"
#include "extension/base/owned.hpp"
#include "extension/queries/collected_rows.hpp"
#include "extension/queries/inner_query.hpp"
#include "extension/server/activity.hpp"
#include "extension/server/settings.hpp"
#include "extension/types/column_types.hpp"

namespace gputext {
namespace {

const char* const kWanted =
    "The inner query must give a text or an array of words, alone or after an id.";

class TextReceiver final : public RowReceiver {
public:
    TextReceiver(TextWords& words, CollectedRows& rows) : words_(words), rows_(rows) {}

    WantedColumns wanted_columns() const override { return {1, 2, kWanted}; }
    int versioned_column() const override { return kLastColumn; }
    void check_columns(TupleDesc columns) override;
    void forget_row_versions() override { rows_.forget_row_versions(); }
    bool left_out(const bool* nulls) const override { return nulls[column_]; }
    void take_row(const Datum* values, const bool* nulls) override;
    void end_rows() override;
    void report_nulls(int64 rows, const char*) override {
        ereport(NOTICE,
                (errmsg_plural("skipped %lld text that is null", "skipped %lld texts that are null",
                               static_cast<unsigned long>(rows), static_cast<long long>(rows))));
    }

private:
    TextWords& words_;
    CollectedRows& rows_;
    std::uint64_t count_ = 0;  // of rows
    int column_ = 0;
    bool array_ = false;
    bool null_id_ = false;
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
    rows_.set_columns(1);
    if (column_ == 1 && !query().ordered)
        attempt_or_raise([&, id_type = id_type_of(base_type_of_column(columns, 0))] {
            rows_.set_id_type(id_type);
        });
}

void TextReceiver::take_row(const Datum* values, const bool* nulls) {
    rows_.append_values({values + column_, 1}, query(), row());
    null_id_ = null_id_ || nulls[0];
    if (rows_.has_ids() && !null_id_) rows_.append_id(values[0]);
    show_rows(++count_, rows_.unpacked_bytes());
}

/// Rows of which one has no id stay in the order of their coming.
void TextReceiver::end_rows() {
    rows_.end(query().ordered || null_id_);
    if (rows_.has_ids()) rows_.ids().release();
    words_.read(rows_.values(0), array_);
}

}  // namespace

void read_tokens(const char* sql, TextWords& words) {
    auto* const rows = make_owned<CollectedRows>(CurrentMemoryContext, words.memory_limit());
    TextReceiver receiver(words, *rows);
    run_inner_query({sql, InvalidOid}, receiver);
}

}  // namespace gputext
