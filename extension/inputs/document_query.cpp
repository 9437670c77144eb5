#include "extension/inputs/document_query.hpp"

extern "C" {
#include "catalog/pg_type.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
}

#include "extension/base/failure.hpp"
#include "extension/base/owned.hpp"
#include "extension/order/row_order.hpp"
#include "extension/resident/resident_column.hpp"
#include "extension/server/activity.hpp"
#include "extension/types/column_types.hpp"
#include "extension/types/ctph_value.hpp"
#include "extension/values/row_fill.hpp"

namespace gputext {
namespace {

const char* const kWanted =
    "The inner query must give an id and a document of type text or bytea, in this order.";
const char* const kWantedWithSignatures =
    "The inner query must give an id, a document of type text or bytea, and optionally its "
    "signature of type "
    "ctph, in this order.";

bool is_text(Oid type) {
    return type == TEXTOID || type == VARCHAROID;
}

bool is_document(Oid type) {
    return is_text(type) || type == BYTEAOID;
}

/// The type is found by its functions, since it may lie in any schema, and others of its name too.
bool is_ctph(Oid type) {
    Oid input_function;
    Oid io_parameter;
    if (!OidIsValid(type) || get_typtype(type) != TYPTYPE_BASE) return false;
    getTypeInputInfo(type, &input_function, &io_parameter);
    FmgrInfo info;
    fmgr_info(input_function, &info);
    return info.fn_addr == gputext_ctph_in;
}

void check_types(TupleDesc columns, const WantedColumns& wanted) {
    const Oid document = base_type_of_column(columns, 1);
    if (!is_document(document))
        ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
                        errmsg("the documents of the inner query are of type %s, not text or bytea",
                               format_type_be(TupleDescAttr(columns, 1)->atttypid)),
                        errdetail("%s", wanted.detail),
                        is_document(base_type_of_column(columns, 0))
                            ? errhint("Write the id before the document, as in SELECT id, body.")
                            : errhint("Other types can be cast in the inner query, as in "
                                      "body::text.")));
    if (columns->natts == 3 && !is_ctph(base_type_of_column(columns, 2)))
        ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
                        errmsg("the signatures of the inner query are of type %s, not ctph",
                               format_type_be(TupleDescAttr(columns, 2)->atttypid)),
                        errdetail("%s", wanted.detail)));
}

/// Documents, as gputextd may keep them.
class Documents final : public ColumnReader {
public:
    /// `extents` are those of all of them.
    Documents(StoredValues& values, const std::vector<Extent>& extents)
        : values_(values), extents_(extents) {}

    ValueKind kind() const override {
        return {MyDatabaseId, ValueForm::document, ElementType::float32, 0, 0};
    }
    std::uint64_t size(std::size_t row) const override { return extents_[row].size; }
    std::uint64_t read(ChosenRows rows, LaidOutBytes& bytes) const override {
        if (rows.empty()) {
            fill_documents(values_, rows, extents_, bytes);
        } else {
            auto* const extents = make_owned<std::vector<Extent>>(CurrentMemoryContext);
            lay_out_documents(values_, rows, *extents);
            fill_documents(values_, rows, *extents, bytes);
        }
        return values_.size();
    }

private:
    StoredValues& values_;
    const std::vector<Extent>& extents_;
};

/// What the queries of a call share while they run.
struct DocumentQueries {
    DocumentQueries(DocumentRows& documents, unsigned queries) : rows(documents), count(queries) {}

    DocumentRows& rows;
    const unsigned count;              // of the queries
    unsigned done = 0;                 // of them
    std::vector<std::uint32_t> order;  // of all rows, once a query's rows are not in order
};

/// The rows of the query that runs next.
class DocumentReceiver : public RowReceiver {
public:
    explicit DocumentReceiver(DocumentQueries& queries)
        : queries_(queries),
          rows_(queries.rows),
          ids_(queries.done == 0 ? rows_.ids : rows_.second_ids),
          begin_(rows_.values.size()) {}

    WantedColumns wanted_columns() const override {
        if (rows_.takes_signatures) return {2, 3, kWantedWithSignatures};
        return {2, 2, kWanted};
    }
    void check_columns(TupleDesc columns) override;
    int versioned_column() const override { return 1; }
    bool takes_any_order() const override { return true; }
    void forget_row_versions() override { rows_.values.forget_row_versions(); }
    bool left_out(const bool* nulls) const override { return nulls[1]; }
    void take_row(const Datum* values, const bool* nulls) override;
    void end_rows() override;
    void report_nulls(int64 rows, const char* among) override {
        ereport(NOTICE, (errmsg_plural("skipped %lld document that is null%s",
                                       "skipped %lld documents that are null%s",
                                       static_cast<unsigned long>(rows),
                                       static_cast<long long>(rows), among)));
    }

private:
    void order();
    void finish_order();
    void finish();

    DocumentQueries& queries_;
    DocumentRows& rows_;
    RowIds& ids_;
    std::size_t begin_;  // of the query's rows
    bool has_signatures_ = false;
};

void check_kind(bool binary, const DocumentQueries& queries) {
    if (queries.done > 0 && binary != queries.rows.binary)
        ereport(ERROR,
                (errcode(ERRCODE_DATATYPE_MISMATCH),
                 errmsg("documents that are %s cannot be compared with documents that are %s",
                        queries.rows.binary ? "bytea" : "texts", binary ? "bytea" : "texts"),
                 errhint("Texts can be converted in the inner query, as in "
                         "convert_to(body, 'UTF8').")));
}

void DocumentReceiver::check_columns(TupleDesc columns) {
    check_types(columns, wanted_columns());
    const bool binary = base_type_of_column(columns, 1) == BYTEAOID;
    check_kind(binary, queries_);
    rows_.binary = binary;
    has_signatures_ = columns->natts == 3;
    // What this query calls may do away with values that an earlier one has left in their tables.
    if (queries_.done > 0 && !query().parallel_safe) rows_.values.fetch_all();
}

void DocumentReceiver::take_row(const Datum* values, const bool* nulls) {
    ids_.append(values[0]);
    rows_.values.append(values[1], !query().parallel_safe, row());
    const StoredCtph* signature = has_signatures_ && !nulls[2] ? ctph_argument(values[2]) : nullptr;
    if (has_signatures_)
        attempt_or_raise([&] {
            rows_.signatures.resize(rows_.values.size());
            if (signature != nullptr) rows_.signatures.back() = read_ctph(*signature);
        });
    show_rows(rows_.values.size(), rows_.values.unpacked_bytes());
}

/// Appends numbers up to `end` where rows are in order.
void append_in_order(std::vector<std::uint32_t>& order, std::size_t end) {
    while (order.size() < end) order.push_back(static_cast<std::uint32_t>(order.size()));
}

void DocumentReceiver::order() {
    auto* const order = make_owned<std::vector<std::uint32_t>>(CurrentMemoryContext);
    put_in_order(ids_, query().ordered, *order);
    if (order->empty()) return;
    attempt_or_raise([&] {
        append_in_order(queries_.order, begin_);
        for (const std::uint32_t row : *order)
            queries_.order.push_back(static_cast<std::uint32_t>(begin_ + row));
    });
}

void DocumentReceiver::finish_order() {
    attempt_or_raise([&] {
        if (!queries_.order.empty()) append_in_order(queries_.order, rows_.values.size());
        // Documents of a query that gives no signatures.
        if (!rows_.signatures.empty()) rows_.signatures.resize(rows_.values.size());
    });
    rows_.values.finish(queries_.order);
    if (queries_.order.empty() || rows_.signatures.empty()) return;
    attempt_or_raise([&] {
        std::vector<std::optional<Ctph>> ordered;
        ordered.reserve(queries_.order.size());
        for (const std::uint32_t row : queries_.order)
            ordered.push_back(std::move(rows_.signatures[row]));
        rows_.signatures.swap(ordered);
    });
}

void DocumentReceiver::end_rows() {
    order();
    if (++queries_.done == queries_.count) finish();
}

void DocumentReceiver::finish() {
    finish_order();
    if (!rows_.values.plain()) {
        lay_out_documents(rows_.values, {}, rows_.extents);
        read_column(rows_.values, Documents(rows_.values, rows_.extents), rows_.laid_out);
        rows_.values.release();
        return;
    }
    attempt_or_raise([&] {
        rows_.extents.reserve(rows_.values.size());
        for (std::size_t row = 0; row < rows_.values.size(); ++row)
            rows_.extents.push_back(rows_.values.plain_extent(row));
    });
}

}  // namespace

void run_document_queries(const InnerQueries& queries, DocumentRows& rows) {
    auto* const shared =
        make_owned<DocumentQueries>(CurrentMemoryContext, rows, queries.two ? 2u : 1u);
    for (const InnerQuery* query : {&queries.first, &queries.second}) {
        if (shared->done == shared->count) break;
        DocumentReceiver receiver(*shared);
        run_inner_query(*query, receiver);
    }
}

}  // namespace gputext
