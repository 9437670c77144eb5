#include "extension/inner_query.hpp"

extern "C" {
#include "executor/spi.h"
#include "nodes/parsenodes.h"
#include "tcop/cmdtag.h"
#include "tcop/dest.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/plancache.h"
}

namespace gputext {
namespace {

/// Takes the rows as the executor makes them. The executor knows the first member only.
struct Destination {
    DestReceiver receiver;
    const InnerQuery* query;
    RowReceiver* rows;
    int64 seen;
    int64 nulls;
    MemoryContext row_context;  // for what one row needs
};

void check_id_column(TupleDesc columns, const InnerQuery& query) {
    const Oid found = TupleDescAttr(columns, 0)->atttypid;
    if (found == query.id_type || !OidIsValid(query.id_type)) return;
    ereport(ERROR, (errcode(ERRCODE_DATATYPE_MISMATCH),
                    errmsg("the ids of the inner query are of type %s, not %s",
                           format_type_be(found), format_type_be(query.id_type)),
                    errhint("Add the argument id_type => NULL::%s %s.", format_type_be(found),
                            query.id_type_place)));
}

void start(DestReceiver* self, int, TupleDesc columns) {
    auto* destination = reinterpret_cast<Destination*>(self);
    destination->rows->check_columns(columns);
    check_id_column(columns, *destination->query);
}

bool receive(TupleTableSlot* slot, DestReceiver* self) {
    auto* destination = reinterpret_cast<Destination*>(self);
    slot_getallattrs(slot);
    ++destination->seen;
    if (slot->tts_isnull[0] && OidIsValid(destination->query->id_type))
        ereport(
            ERROR,
            (errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED), errmsg("an id of the inner query is null"),
             errdetail("Row %lld has a null id.", static_cast<long long>(destination->seen))));
    if (destination->rows->left_out(slot->tts_isnull)) {
        ++destination->nulls;
        return true;
    }
    MemoryContext before = MemoryContextSwitchTo(destination->row_context);
    destination->rows->take_row(slot->tts_values, slot->tts_isnull);
    MemoryContextSwitchTo(before);
    MemoryContextReset(destination->row_context);
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

}  // namespace

Oid base_type_of_column(TupleDesc columns, int column) {
    return getBaseType(TupleDescAttr(columns, column)->atttypid);
}

void run_inner_query(const InnerQuery& query, RowReceiver& receiver) {
    Destination destination{};
    destination.receiver.receiveSlot = receive;
    destination.receiver.rStartup = start;
    destination.receiver.rShutdown = shut_down;
    destination.receiver.rDestroy = shut_down;
    destination.receiver.mydest = DestNone;
    destination.query = &query;
    destination.rows = &receiver;
    destination.row_context =
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
    options.dest = &destination.receiver;
    const int result = SPI_execute_plan_extended(plan, &options);
    if (result < 0) raise_spi_error(result, query.sql);
    SPI_finish();

    MemoryContextDelete(destination.row_context);
    if (destination.nulls > 0) receiver.report_nulls(destination.nulls);
}

}  // namespace gputext
