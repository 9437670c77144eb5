#include "extension/rows/token_query.hpp"

extern "C" {
#include "catalog/pg_type.h"
#include "parser/parse_coerce.h"
#include "utils/builtins.h"
}

#include <optional>
#include <vector>

#include "extension/base/failure.hpp"
#include "extension/base/owned.hpp"
#include "extension/rows/id_column.hpp"
#include "extension/rows/inner_query.hpp"
#include "extension/rows/row_ids.hpp"
#include "extension/rows/row_order.hpp"
#include "extension/server/activity.hpp"
#include "extension/server/settings.hpp"

namespace gputext {
namespace {

const char* const kWanted =
    "The inner query must give a text or an array of words, alone or after an id.";

/// The rows of a query until they are read; dies with its memory context.
struct KeptTexts {
    explicit KeptTexts(std::size_t memory_limit) : texts(memory_limit) {}

    StoredValues texts;
    std::optional<RowIds> ids;
    std::vector<std::uint32_t> order;
};

class TextReceiver final : public RowReceiver {
public:
    TextReceiver(TextWords& words, KeptTexts& kept) : words_(words), kept_(kept) {}

    WantedColumns wanted_columns() const override { return {1, 2, kWanted}; }
    int versioned_column() const override { return kLastColumn; }
    void check_columns(TupleDesc columns) override;
    void forget_row_versions() override { kept_.texts.forget_row_versions(); }
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
    KeptTexts& kept_;
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
    if (column_ == 1 && !query().ordered)
        attempt_or_raise([&, id_type = id_type_of(base_type_of_column(columns, 0))] {
            kept_.ids.emplace(id_type, words_.memory_limit());
        });
}

void TextReceiver::take_row(const Datum* values, const bool* nulls) {
    kept_.texts.append(values[column_], !query().parallel_safe, row());
    null_id_ = null_id_ || nulls[0];
    if (kept_.ids && !null_id_) kept_.ids->append(values[0]);
    show_rows(kept_.texts.size(), kept_.texts.unpacked_bytes());
}

void TextReceiver::end_rows() {
    if (kept_.ids) {
        kept_.ids->finish();
        if (!null_id_) order_by_id(*kept_.ids, kept_.order);
        kept_.ids->release();
    }
    kept_.texts.finish(kept_.order);
    words_.read(kept_.texts, array_);
}

}  // namespace

void read_tokens(const char* sql, TextWords& words) {
    auto* const kept = make_owned<KeptTexts>(CurrentMemoryContext, words.memory_limit());
    TextReceiver receiver(words, *kept);
    run_inner_query({sql, InvalidOid}, receiver);
}

}  // namespace gputext
