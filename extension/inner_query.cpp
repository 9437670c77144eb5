#include "extension/inner_query.hpp"

extern "C" {
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "nodes/parsenodes.h"
#include "tcop/cmdtag.h"
#include "tcop/dest.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/plancache.h"
}

#include "extension/activity.hpp"
#include "extension/ctph.hpp"
#include "extension/failure.hpp"
#include "extension/text_arguments.hpp"

namespace gputext {
namespace {

/// Takes the rows as the executor makes them. The executor knows the first member only.
struct DocumentReceiver {
    DestReceiver receiver;
    DocumentRows* rows;
    IdType id_type;
    bool has_signatures;
    int64 nulls;
    MemoryContext row_context;  // for what one row needs
};

const char* const kWanted =
    "Wanted are an id, a document of type text or bytea, and optionally its signature of type "
    "ctph, in this order.";

Oid base_type_of_column(TupleDesc columns, int column) {
    return getBaseType(TupleDescAttr(columns, column)->atttypid);
}

void check_id_column(TupleDesc columns, Oid wanted) {
    const Oid found = TupleDescAttr(columns, 0)->atttypid;
    if (found == wanted) return;
    ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
                    errmsg("the ids of the inner query are of type %s, not %s",
                           format_type_be(found), format_type_be(wanted)),
                    errhint("Add the argument id_type => NULL::%s behind the inner query.",
                            format_type_be(found))));
}

bool is_text(Oid type) {
    return type == TEXTOID || type == VARCHAROID;
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

void check_columns(TupleDesc columns, const IdType& id_type) {
    if (columns->natts != 2 && columns->natts != 3)
        ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
                        errmsg_plural("the inner query has %d column, not 2 or 3",
                                      "the inner query has %d columns, not 2 or 3",
                                      static_cast<unsigned long>(columns->natts), columns->natts),
                        errdetail("%s", kWanted)));
    const Oid document = base_type_of_column(columns, 1);
    if (!is_text(document) && document != BYTEAOID)
        ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
                        errmsg("the documents of the inner query are of type %s, not text or bytea",
                               format_type_be(TupleDescAttr(columns, 1)->atttypid)),
                        errdetail("%s", kWanted),
                        errhint("Other types can be cast in the inner query, as in body::text.")));
    if (columns->natts == 3 && !is_ctph(base_type_of_column(columns, 2)))
        ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
                        errmsg("the signatures of the inner query are of type %s, not ctph",
                               format_type_be(TupleDescAttr(columns, 2)->atttypid)),
                        errdetail("%s", kWanted)));
    check_id_column(columns, id_type.oid);
}

void start(DestReceiver* self, int, TupleDesc columns) {
    auto* receiver = reinterpret_cast<DocumentReceiver*>(self);
    check_columns(columns, receiver->id_type);
    receiver->rows->binary = base_type_of_column(columns, 1) == BYTEAOID;
    receiver->has_signatures = columns->natts == 3;
}

void append_row(DocumentReceiver* receiver, const TupleTableSlot* slot) {
    DocumentRows& rows = *receiver->rows;
    const std::size_t id_begin = append_id(rows.bytes, receiver->id_type, slot->tts_values[0]);
    const varlena* document = PG_DETOAST_DATUM_PACKED(slot->tts_values[1]);
    const Bytes bytes = bytes_of(document);
    const Extent extent{rows.bytes.size(), bytes.size()};
    rows.bytes.append(bytes.data(), bytes.size());
    const StoredCtph* signature = receiver->has_signatures && !slot->tts_isnull[2]
                                      ? ctph_argument(slot->tts_values[2])
                                      : nullptr;
    Failure failure;
    if (!attempt(failure, [&]() -> Status {
            rows.id_begins.push_back(id_begin);
            rows.extents.push_back(extent);
            if (receiver->has_signatures) rows.signatures.emplace_back();
            if (signature != nullptr) rows.signatures.back() = read_ctph(*signature);
            return {};
        }))
        raise_failure(failure);
}

bool receive(TupleTableSlot* slot, DestReceiver* self) {
    auto* receiver = reinterpret_cast<DocumentReceiver*>(self);
    slot_getallattrs(slot);
    if (slot->tts_isnull[0])
        ereport(
            ERROR,
            (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("an id of the inner query is null"),
             errdetail("It is that of row %lld.",
                       static_cast<long long>(static_cast<int64>(receiver->rows->extents.size()) +
                                              receiver->nulls + 1))));
    if (slot->tts_isnull[1]) {
        ++receiver->nulls;
        return true;
    }
    MemoryContext before = MemoryContextSwitchTo(receiver->row_context);
    append_row(receiver, slot);
    MemoryContextSwitchTo(before);
    MemoryContextReset(receiver->row_context);
    show_rows(receiver->rows->extents.size(), receiver->rows->bytes.size());
    return true;
}

void shut_down(DestReceiver*) {}

/// Refuses all but a statement that reads, before any of it runs. Functions that it calls may still
/// write, as they may below a stable function.
void check_statement(SPIPlanPtr plan, const char* sql) {
    const List* statements = SPI_plan_get_plan_sources(plan);
    if (list_length(statements) != 1)
        ereport(ERROR, (errcode(ERRCODE_SYNTAX_ERROR),
                        list_length(statements) == 0
                            ? errmsg("the inner query is empty")
                            : errmsg("the inner query must be a single statement, not %d",
                                     list_length(statements)),
                        errcontext("SQL statement \"%s\"", sql)));
    const auto* statement = static_cast<const CachedPlanSource*>(linitial(statements));
    const char* refused = nullptr;
    if (statement->commandTag != CMDTAG_SELECT) {
        refused = GetCommandTagName(statement->commandTag);
    } else {
        const auto* query = static_cast<const Query*>(linitial(statement->query_list));
        if (query->commandType != CMD_SELECT) refused = "SELECT INTO";
        if (query->hasModifyingCTE) refused = "WITH that changes data";
        if (query->rowMarks != NIL) refused = "locking of rows";
    }
    if (refused != nullptr)
        ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                        errmsg("%s is not allowed in the inner query", refused),
                        errdetail("It may be a SELECT, VALUES or TABLE that only reads."),
                        errcontext("SQL statement \"%s\"", sql)));
}

[[noreturn]] void raise_spi_error(int result, const char* sql) {
    ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE),
                    errmsg("could not run the inner query: %s", SPI_result_code_string(result)),
                    errcontext("SQL statement \"%s\"", sql)));
    pg_unreachable();
}

void report_nulls(int64 nulls) {
    if (nulls > 0)
        ereport(NOTICE,
                (errmsg_plural("skipped %lld document that is null",
                               "skipped %lld documents that are null",
                               static_cast<unsigned long>(nulls), static_cast<long long>(nulls))));
}

}  // namespace

void run_document_query(const DocumentQuery& query, DocumentRows& rows) {
    DocumentReceiver receiver{};
    receiver.receiver.receiveSlot = receive;
    receiver.receiver.rStartup = start;
    receiver.receiver.rShutdown = shut_down;
    receiver.receiver.rDestroy = shut_down;
    receiver.receiver.mydest = DestNone;
    receiver.rows = &rows;
    receiver.id_type = id_type_of(query.id_type);
    receiver.row_context =
        AllocSetContextCreate(CurrentMemoryContext, "gputext row", ALLOCSET_DEFAULT_SIZES);

    SPI_connect();
    SPIPrepareOptions preparation{};
    preparation.cursorOptions = CURSOR_OPT_PARALLEL_OK;
    SPIPlanPtr plan = SPI_prepare_extended(query.sql, &preparation);
    if (plan == nullptr) raise_spi_error(SPI_result, query.sql);
    check_statement(plan, query.sql);

    SPIExecuteOptions options{};
    options.read_only = true;
    options.must_return_tuples = true;
    options.dest = &receiver.receiver;
    const int result = SPI_execute_plan_extended(plan, &options);
    if (result < 0) raise_spi_error(result, query.sql);
    SPI_finish();

    MemoryContextDelete(receiver.row_context);
    report_nulls(receiver.nulls);
    rows.bytes.finish();
}

}  // namespace gputext
